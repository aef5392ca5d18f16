"""Silence is a decision that can be read later."""


async def test_silence_is_recorded_with_its_reason(stage):
    stage.desk.on("thanks").waits("thanks need no answer")
    said = stage.ana.terminal("thanks")
    assert (await said.settles()).silence == "thanks need no answer"
    assert said.after() == []
    assert "**stayed silent**: thanks need no answer" in await stage.terminal.look("trace", "m1")


async def test_silence_on_telegram_sends_nothing(stage):
    stage.desk.on("thanks").waits("thanks need no answer")
    stage.desk.on("more").replies("Yes?")
    thanks = stage.ana.telegram("thanks.")
    await stage.until(lambda: stage.lane().turns == 1)
    await stage.ana.telegram("one more.").sees("Yes?")
    assert thanks.after() == ["Yes?"]


async def test_words_beside_a_wait_are_not_sent(stage):
    thanks = stage.desk.on("thanks").calls(stage.call("wait", reason="an aside"), saying="(thinking aloud)")
    said = stage.ana.terminal("thanks")
    assert (await said.settles()).silence == "an aside"
    assert said.after() == []
    assert len(thanks.requests) == 1


async def test_why_is_in_the_trace(stage):
    stage.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    stage.worker.on("Book Rome").responds("Booked")
    await stage.ana.terminal("Book Rome.").sees("Booked")
    trace = await stage.terminal.look("trace")
    assert "**started** booking for Ana: Book Rome" in trace
    assert "**said** on terminal" in trace
    assert "decided by the model openai/scripted" in trace
    assert "100 + 20 tokens" in trace
