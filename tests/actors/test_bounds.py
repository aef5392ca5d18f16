"""Where an action stops by itself, asks, or fails, and what a person may say to that."""

import pytest

from actors.bounds import LAST_WORD
from actors.workshop import Limits
from gateway.events import ActionAnswered, ActionEnded, ActionResponded, ClarificationRequested
from gateway.llm.model import ModelError, RawCall, Usage
from tests.actors.rules import texts
from tests.actors.shop import Held, Shop, call, code


@pytest.mark.parametrize(
    ("limits", "asks"),
    [
        (Limits(max_steps=2), "I have worked on this for 2 steps. Shall I go on?"),
        (Limits(max_usd=0.02), "This has cost $0.02. Shall I go on?"),
        (Limits(max_tokens=200), "This has taken 240 tokens. Shall I go on?"),
    ],
)
async def test_at_a_bound_it_asks_and_goes_on_when_told(tmp_path, limits, asks):
    async with Shop(tmp_path, limits=limits) as shop:
        shop.model.on("February", call("notify", text="one"), call("notify", text="two"), "Done")
        await shop.start("a1", "Do February")
        asked = await shop.fact("a1", ClarificationRequested)
        assert (asked.text, asked.options) == (asks, ("go on", "stop here and say what you have"))
        await shop.again()
        await shop.answer("a1", asked.question, "go on")
        assert (await shop.fact("a1", ActionResponded)).text == "Done"
        assert len(await shop.facts("a1", ClarificationRequested)) == 1


async def test_minutes_are_those_since_the_last_word_also_after_a_restart(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_minutes=30)) as shop:
        first = Held(call("notify", text="one"))
        shop.model.on("February", first, "Done")
        await shop.start("a1", "Do February")
        await first.asked.wait()
        shop.clock.advance(minutes=31)
        first.release()
        asked = await shop.fact("a1", ClarificationRequested)
        assert "31 min" in asked.text
        await shop.interject("a1", "Go on, please")
        assert (await shop.fact("a1", ActionResponded)).text == "Done"


async def test_stop_here_ends_what_runs_and_says_what_there_is(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_steps=2)) as shop:
        shop.model.on("February", code("import time\nprint('half')\ntime.sleep(600)"), "Waiting", "never")
        shop.model.beside = lambda request: "I have half of it."
        await shop.start("a1", "Do February")
        await shop.output("a1", "cell1", "half")
        await shop.interject("a1", "Hurry")
        shop.model.then("February", call("notify", text="n"), call("notify", text="n"))
        asked = await shop.fact("a1", ClarificationRequested)
        await shop.answer("a1", asked.question, "stop here and say what you have")
        assert (await shop.fact("a1", ActionResponded)).text == "I have half of it."
        state = await shop.phase("a1", "awaiting_input")
        assert any("cell1 ended: interrupted" in line for line in texts(state))
        assert f"user: {LAST_WORD}" in texts(state)
        await shop.interject("a1", "All right, then go on")
        assert (await shop.phase("a1", "running")).transcript.winding_up == ""


async def test_money_adds_up_over_children_and_their_root_asks(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_usd=0.05)) as shop:
        parts = [call("act", query=f"Part {n}", name=f"p{n}") for n in (1, 2)]
        shop.model.on("February", parts, "Done")
        shop.model.on("Part", *[call("notify", text="step")] * 30, "Part done")
        await shop.start("a1", "Do February")
        asked = await shop.fact("a1", ClarificationRequested)
        assert "$0.05" in asked.text
        await shop.again()
        assert len(shop.model.asked("Part")) < 30
        before = len(shop.model.asked("Part"))
        await shop.ask("a1", "How far?")
        await shop.fact("a1", ActionAnswered)
        assert len(shop.model.asked("Part")) == before
        shop.model.usage = Usage(prompt_tokens=1)
        await shop.answer("a1", asked.question, "go on")
        assert (await shop.fact("a1", ActionResponded)).text == "Done"
        assert (await shop.state("a1")).spending.usd == pytest.approx(0.01 * (before + 2), abs=0.011)


async def test_several_at_once_do_not_exceed_it_further_than_one_alone(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_usd=0.05, max_children=8)) as shop:
        parts = [call("act", query=f"Part {n}", name=f"p{n}") for n in range(8)]
        shop.model.on("February", parts, "Done")
        gates = [Held("Part done") for _ in range(8)]
        shop.model.on("Part", *gates)
        await shop.start("a1", "Do February")
        await gates[3].asked.wait()
        for gate in gates:
            gate.release()
        asked = await shop.fact("a1", ClarificationRequested)
        assert "This has cost $0.05" in asked.text
        assert len(shop.model.asked("Part")) == 4
        await shop.answer("a1", asked.question, "go on")
        assert (await shop.fact("a1", ActionResponded)).text == "Done"


async def test_stop_here_stops_the_children_too(tmp_path):
    """What they spend until then is not asked about again."""
    async with Shop(tmp_path, limits=Limits(max_usd=0.03)) as shop:
        shop.model.on("February", call("act", query="Part 1"), "Done")
        shop.model.on("Part", call("notify", text="step"))
        shop.model.beside = lambda request: "Nothing yet."
        await shop.start("a1", "Do February", persist=False)
        asked = await shop.fact("a1", ClarificationRequested)
        shop.model.usage = Usage(prompt_tokens=100, completion_tokens=20, usd=1.0)
        await shop.answer("a1", asked.question, "stop here")
        ended = await shop.fact("a1", ActionEnded)
        assert (ended.end, ended.text) == ("succeeded", "Nothing yet.")
        assert (await shop.state("a1--child1")).phase == "stopped"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (
            code("int('x')"),
            "the same thing failed 3 times in a row: ValueError: invalid literal for int()",
        ),
        (call("fly", to="Rome"), "there is no tool fly"),
        ("", "my model answered nothing, several times"),
        (RawCall(name="execute_code", arguments='{"code": "tru', complete=False), "the call was cut off"),
    ],
)
async def test_a_model_that_fails_three_times_in_the_same_way_has_failed(shop, step, says):
    shop.model.on("February", step)
    await shop.start("a1", "Do February")
    ended = await shop.fact("a1", ActionEnded)
    assert ended.end == "failed"
    assert says in ended.text
    assert len(shop.model.asked("February")) == 3
    await shop.ask("a1", "What happened?")


async def test_different_failures_and_a_word_between_are_no_reason_to_give_up(shop):
    bad = code("int('x')")
    shop.model.on("February", bad, bad, code("1/0"), bad, bad, code("1"), bad, bad, "It does not work like that")
    await shop.start("a1", "Do February")
    assert (await shop.fact("a1", ActionResponded)).text == "It does not work like that"


async def test_a_session_without_its_model_is_kept_until_somebody_decides(shop):
    down = ModelError("key_refused", "the key was refused", retryable=False)
    shop.model.on("February", down, "Done")
    await shop.start("a1", "Do February")
    asked = await shop.fact("a1", ClarificationRequested)
    assert "cannot be reached" in asked.text
    assert shop.notices
    await shop.answer("a1", asked.question, "try again")
    assert (await shop.fact("a1", ActionResponded)).text == "Done"
    shop.model.on("March", down)
    await shop.start("a2", "Do March")
    asked = await shop.fact("a2", ClarificationRequested)
    await shop.answer("a2", asked.question, "give up")
    assert (await shop.fact("a2", ActionEnded)).end == "failed"


async def test_a_one_off_without_its_model_has_failed(shop):
    shop.model.on("February", ModelError("key_refused", "the key was refused", retryable=False))
    await shop.start("a1", "Do February", persist=False)
    assert (await shop.fact("a1", ActionEnded)).end == "failed"
