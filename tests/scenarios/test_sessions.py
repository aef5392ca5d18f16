"""A persistent action responds and waits, with all it knows; a one-off ends."""

from brain.tools import tool_name


async def test_a_follow_up_wakes_the_same_session_with_its_variables(stage):
    stage.desk.on("February").acts("sales", "Total February")
    stage.desk.on("now March").interjects("sales")
    stage.worker.on("Total February").runs("rows = [1, 2, 3]\nprint(sum(rows))", stateful=True)
    stage.worker.on("now March").runs("rows.append(4)\nprint(sum(rows))", stateful=True)
    await stage.ana.telegram("Total February?").sees("6")
    await stage.phase("sales", "awaiting_input")
    await stage.ana.telegram("Great, now March.").sees("10")
    assert stage.lane().actions_made == 1


async def test_a_session_knows_what_was_said_in_it(stage):
    stage.desk.on("February").acts("sales", "Total February")
    stage.desk.on("now March").interjects("sales")
    stage.worker.on("Total February").responds("6")
    march = stage.worker.on("now March").responds("10")
    await stage.ana.telegram("Total February?").sees("6")
    await stage.ana.telegram("Great, now March.").sees("10")
    before, after = stage.worker.requests
    assert after.messages[: len(before.messages)] == before.messages
    assert march.requests == [after]


async def test_a_session_outlives_a_clean_stop_with_its_variables(stage):
    stage.desk.on("February").acts("sales", "Total February")
    stage.desk.on("now March").interjects("sales")
    stage.worker.on("Total February").runs("rows = [1, 2, 3]\nprint(sum(rows))", stateful=True)
    stage.worker.on("now March").runs("rows.append(4)\nprint(sum(rows))", stateful=True)
    await stage.ana.telegram("Total February?").sees("6")
    await stage.phase("sales", "awaiting_input")
    await stage.stop()
    await stage.start()
    await stage.ana.telegram("Great, now March.").sees("10")


async def test_a_one_off_ends_with_its_response(stage):
    stage.desk.on("time").acts("time", "What time is it", persist=False)
    later = stage.desk.on("thanks").waits()
    stage.worker.on("What time").responds("Noon")
    await stage.ana.telegram("What time is it?").sees("Noon")
    await stage.phase("time", "succeeded")
    await stage.ana.terminal("thanks").settles()
    names = (await later.asked()).tool_names
    assert tool_name("ask", stage.view("time")) in names
    assert tool_name("interject", stage.view("time")) not in names


async def test_steering_tools_exist_only_while_they_are_legal(stage):
    stage.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    while_it_works = stage.desk.on("one").replies("first")
    after = stage.desk.on("two").replies("second")
    held = stage.worker.on("Book Rome").responds("Booked").held()
    await stage.ana.telegram("Book Rome.").sees("On it")
    await held.streaming()
    await stage.ana.telegram("one.").sees("first")
    held.release()
    await stage.ana.sees("Booked")
    await stage.ana.telegram("two.").sees("second")

    def verbs(names):
        return [name.partition("_booking__")[0] for name in names if "_booking__" in name]

    assert verbs((await while_it_works.asked()).tool_names) == ["interject", "ask", "pause", "stop"]
    assert verbs((await after.asked()).tool_names) == ["interject", "ask", "stop"]
