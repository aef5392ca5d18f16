"""What a model may write, and a person say, at an odd moment: nothing runs that should not, nothing is stuck."""

import json

import pytest

from actors.bounds import means_no
from actors.entries import Generated, Interjected, JobStarted, Notified, Responded
from actors.workshop import Limits
from gateway.events import (
    ActionAnswered,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationRequested,
    CommandRefused,
)
from gateway.llm.model import Generation, ModelError, RawCall, Request, tool_call
from gateway.llm.written_calls import written_calls
from tests.actors.rules import texts
from tests.actors.shop import Held, Shop, call, code

LONG = "\x00" * 300_000
HUGE = "ab" * 150_000
WRITTEN = '{"name": "execute_code", "arguments": {"code": "print(6 * 7)"}}'


def cut(text: str):
    return lambda request: Generation(text=text, finish="length", cut=True)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (call("execute_code", code=["print(1)"]), "code must be a text"),
        (call("execute_code", code="print(1)", stateful="true"), "stateful must be true or false"),
        (call("execute_code", code=None), "code is missing"),
        (call("continue_code", cell="cell1", seconds=True), "seconds must be a number"),
        (call("request_clarification", question="Which?", options="a"), "options must be a list of texts"),
        (call("request_clarification", question="Which?", hours="2"), "hours must be a number"),
        (call("request_clarification", question="x" * 30_000), "put it into a file"),
        (call("act", query=HUGE), "the arguments are too long"),
        (call("steer", action="child1", verb="fire"), "child1 does not work for you"),
        (RawCall(name="exécute code" * 20, arguments="{}"), "there is no tool exécute code"),
        (RawCall(name="", arguments="{}"), "there is no tool"),
        (call("execute_code", code=HUGE), "the arguments are too long"),
    ],
)
async def test_a_call_that_does_not_fit_its_tool_is_not_run_and_may_be_mended(shop, bad, why):
    shop.model.on("February", bad, "Well then")
    await shop.start("a1", "Do February")
    assert (await shop.fact("a1", ActionResponded)).text == "Well then"
    (result,) = [line for line in texts(await shop.state("a1")) if line.startswith("tool: ")]
    assert result.startswith("tool: Not run: ")
    assert why in result
    assert not [one for one in await shop.log("a1") if isinstance(one, JobStarted)]


def test_a_name_that_no_provider_takes_is_never_sent_back():
    assert tool_call("c00000000", "exécute code", "{}")["function"]["name"] == "ex_cute_code"
    assert tool_call("c00000000", "", "{}")["function"]["name"] == "unnamed"
    assert len(tool_call("c00000000", "x" * 99, "{}")["function"]["name"]) == 64


@pytest.mark.parametrize(
    "text", [WRITTEN, f"```json\n{WRITTEN}\n```", f"<tool_call>\n{WRITTEN}\n</tool_call>"], ids=["bare", "fence", "tag"]
)
async def test_a_call_that_is_written_as_text_is_the_call(shop, text):
    shop.model.on("February", text, "It is 42")
    await shop.start("a1", "Do February")
    await shop.fact("a1", ActionResponded)
    assert "tool: cell1 ended: ok.\n42" in texts(await shop.state("a1"))


@pytest.mark.parametrize("code", ["print('```python')", "print('<tool_call>')", "a = '[TOOL_CALLS]'", "x(1)  # ```"])
def test_lm03_code_that_holds_such_marks_is_run_as_it_stands_or_not_at_all(code):
    body = json.dumps({"name": "execute_code", "arguments": {"code": code}})
    for text in (body, f"```json\n{body}\n```", f"<tool_call>{body}</tool_call>"):
        (made,) = written_calls(text, {"execute_code"})
        assert made.parsed() == {"code": code}
    tagged = "<function=execute_code><parameter=code>print('</parameter>')</parameter></function>"
    assert written_calls(tagged, {"execute_code"}) == ()


@pytest.mark.parametrize("value", ["{[]: 1}", "{(1, 2): 3}", "{[1]}", "(" * 5_000])
def test_python_that_means_no_arguments_is_a_text(value):
    assert written_calls(f"execute_code(code={value})", {"execute_code"}) == ()


def test_what_only_mentions_a_call_is_a_text():
    names = {"execute_code"}
    two = f"<tool_call>{WRITTEN}</tool_call>" * 2
    assert [one.name for one in written_calls(two, names)] == ["execute_code"] * 2
    for text in (
        f"Call it so: {WRITTEN}",
        '{"name": "rm", "arguments": {}}',
        f"First <tool_call>{WRITTEN}</tool_call>",
    ):
        assert written_calls(text, names) == ()


async def test_half_a_written_call_is_not_the_response(shop):
    shop.model.on("February", '<tool_call>{"name": "execute_code", "argu', "It is 42")
    await shop.start("a1", "Do February")
    assert (await shop.fact("a1", ActionResponded)).text == "It is 42"


async def test_a_text_that_was_cut_off_is_not_the_response(shop):
    shop.model.on("February", cut("The first half of"), "All of it, shorter")
    await shop.start("a1", "Do February")
    assert (await shop.fact("a1", ActionResponded)).text == "All of it, shorter"
    shop.model.on("March", cut("Half"))
    await shop.start("a2", "Do March")
    ended = await shop.fact("a2", ActionEnded)
    assert ended.end == "failed"
    assert "were cut off several times" in ended.text


async def test_answers_that_are_none_in_turn_meet_the_bound_of_steps(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_steps=5)) as shop:
        shop.model.on("February", *["", cut("Half")] * 9)
        await shop.start("a1", "Do February")
        assert "5 steps" in (await shop.fact("a1", ClarificationRequested)).text
        assert len(shop.model.asked("February")) == 5


async def test_what_is_larger_than_an_entry_stops_nothing(shop):
    many = [call("notify", text=f"{n}") for n in range(80)]
    shop.model.on("February", call("notify", text=LONG[:20_000]), many, HUGE)
    await shop.start("a1", "Do February")
    responded = await shop.fact("a1", ActionResponded)
    assert responded.text.count("characters left out") == 1
    assert 10_000 < len(responded.text) < 60_000
    calls = [len(one.calls) for one in await shop.log("a1") if isinstance(one, Generated)]
    assert calls == [1, 50, 0]


async def test_thoughts_and_signatures_larger_than_an_entry_stop_nothing(shop):
    thoughts = {"reasoning_content": "字" * 100_000}
    signed = RawCall(name="notify", arguments='{"text": "1"}', fields={"extra_content": {"signature": "x" * 300_000}})
    blocks = {"thinking_blocks": [{"type": "thinking", "thinking": "hm" * 150_000, "signature": "s"}]}
    answers = [
        Generation(calls=(call("notify", text="0"),), fields=thoughts),
        Generation(calls=(signed,), fields=blocks),
    ]
    shop.model.on("February", *(lambda request, one=one: one for one in answers), "Done")
    await shop.start("a1", "Do February")
    await shop.fact("a1", ActionResponded)
    first, second, _ = [one for one in await shop.log("a1") if isinstance(one, Generated)]
    assert 50_000 < len(first.fields["reasoning_content"].encode()) < 250_000
    assert (second.fields, second.calls[0].fields) == (None, None)
    assert len(shop.model.asked("February")) == 3


async def test_all_the_notes_that_there_may_be_stop_no_work(tmp_path):
    async def notes(person, conversation):
        return tuple(f"{n:03d}" + "字" * 497 for n in range(200))

    shop = Shop(tmp_path)
    shop.notes = notes
    async with shop:
        shop.model.on("February", "Done")
        await shop.start("a1", "Do February")
        await shop.fact("a1", ActionResponded)
        (asked,) = shop.model.asked("February")
        brief = asked.messages[1]["content"]
        assert [brief.count(f"\n- {n:03d}") for n in (0, 60, 100, 199)] == [0, 1, 1, 1]


async def test_words_that_no_entry_holds_are_refused_and_stop_nothing(shop):
    shop.model.on("February", call("request_clarification", question="Which?"))
    await shop.start("a1", "Do February")
    asked = await shop.fact("a1", ClarificationRequested)
    await shop.answer("a1", asked.question, "字" * 60_000)
    refused = await shop.fact("a1", CommandRefused)
    assert (refused.verb, "too long to be kept" in refused.why) == ("answer", True)
    await shop.ask("a1", "字" * 75_000)
    await shop.fact("a1", ActionAnswered)
    shop.model.then("February", "Done")
    await shop.answer("a1", asked.question, "This one")
    assert (await shop.fact("a1", ActionResponded)).text == "Done"


async def test_a_task_that_cannot_begin_is_refused_once(tmp_path):
    async def notes(person, conversation):
        raise RuntimeError

    shop = Shop(tmp_path)
    shop.notes = notes
    async with shop:
        shop.model.on("February", "Done")
        await shop.start("a1", "Do February")
        refused = await shop.fact("a1", CommandRefused)
        assert (refused.verb, "again and again" in refused.why) == ("start", True)
        await shop.again()
        shop.notes = notes
        shop.model.on("March", "Done")
        await shop.interject("a1", "Hurry")
        await shop.fact("a1", CommandRefused, 2)
        assert len(shop.notices) == 1


async def test_a_stop_with_many_long_questions_open_stops(shop):
    asks = "import asyncio\nawait asyncio.gather(*(primitives.request_clarification('字' * 6000) for _ in range(20)))"
    shop.model.on("February", code(asks))
    await shop.start("a1", "Do February")
    await shop.fact("a1", ClarificationRequested, 20)
    await shop.stop("a1")
    assert (await shop.fact("a1", ActionEnded)).end == "stopped"


async def test_calls_after_the_response_are_not_run(shop):
    shop.model.on("February", [call("respond", text="Done"), call("respond", text="Again"), code("print(1)")], "More")
    await shop.start("a1", "Do February")
    await shop.fact("a1", ActionResponded)
    await shop.interject("a1", "And March?")
    assert (await shop.fact("a1", ActionResponded, 2)).text == "More"
    log = await shop.log("a1")
    assert not [one for one in log if isinstance(one, JobStarted)]
    assert [one.text for one in log if isinstance(one, Responded)] == ["Done", "More"]


async def test_an_ask_whose_model_only_calls_is_answered_in_words(shop):
    gate = Held("Done")
    shop.model.on("February", gate, "Done")
    asked: list[Request] = []

    def beside(request: Request):
        asked.append(request)
        return code("print(1)") if len(asked) == 1 else "Half." if len(asked) == 2 else ""

    shop.model.beside = beside
    await shop.start("a1", "Do February")
    await gate.asked.wait()
    await shop.ask("a1", "How far?")
    assert (await shop.fact("a1", ActionAnswered)).text == "Half."
    await shop.ask("a1", "And now?")
    assert (await shop.fact("a1", ActionAnswered, 2)).text == (
        "It gave no answer in words. State: running. Open: nothing."
    )


async def test_while_it_waits_for_its_model_only_a_word_makes_it_try_again(shop):
    down = ModelError("overloaded", "503", retryable=True)
    shop.model.on("February", code("for n in range(9): await primitives.notify(f'at {n}')"), down, "Done")
    await shop.start("a1", "Do February")
    await shop.fact("a1", ActionProgressed, 9)
    for n in (1, 2, 3):
        await shop.ask("a1", "How far?")
        await shop.fact("a1", ActionAnswered, n)
    assert len(shop.model.asked("February")) == 2
    await shop.interject("a1", "Try now")
    assert (await shop.fact("a1", ActionResponded)).text == "Done"


async def test_a_word_does_not_wait_for_all_that_code_has_to_say(shop):
    talks = "for n in range(400): primitives.notify(f'at {n}')"
    shop.model.on("February", code(talks), "Never mind")
    await shop.start("a1", "Do February")
    await shop.entry("a1", Notified)
    await shop.interject("a1", "Enough")
    await shop.entry("a1", Interjected)
    await shop.stop("a1")
    await shop.phase("a1", "stopped")
    assert sum(isinstance(one, Notified) for one in await shop.log("a1")) < 400


@pytest.mark.parametrize(
    ("kind", "says"),
    [("content_filtered", "its content filter"), ("context_too_long", "longer than my model can take")],
)
async def test_a_refusal_of_the_provider_is_told_as_what_it_is(shop, kind, says):
    shop.model.on("February", ModelError(kind, "refused", retryable=False))
    await shop.start("a1", "Do February", persist=False)
    ended = await shop.fact("a1", ActionEnded)
    assert (ended.end, says in ended.text) == ("failed", True)


async def test_a_no_at_a_bound_is_a_no(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_steps=1)) as shop:
        shop.model.on("February", call("notify", text="one"))
        shop.model.beside = lambda request: "This is what I have."
        await shop.start("a1", "Do February")
        asked = await shop.fact("a1", ClarificationRequested)
        await shop.answer("a1", asked.question, "No, that is enough")
        assert (await shop.fact("a1", ActionResponded)).text == "This is what I have."
        assert any("was answered by Ana: No, that is enough" in line for line in texts(await shop.state("a1")))
    assert [means_no(text) for text in ("Don’t", "no", "No problem, go on", "nothing else? yes", "go on")] == [
        True,
        True,
        False,
        False,
        False,
    ]


async def test_a_word_to_an_action_that_never_was_is_refused(shop):
    await shop.interject("a9", "Hurry")
    assert "there is no such action" in (await shop.fact("a9", CommandRefused)).why

    async def closed() -> bool:
        return shop.host.actor("a9") is None

    await shop.until(closed)
    await shop.again()
    shop.model.on("February", "Done")
    await shop.start("a9", "Do February")
    await shop.fact("a9", ActionResponded)


async def test_quick_corrections_a_stop_in_a_question_and_what_comes_too_late(shop):
    shop.model.on("February", call("request_clarification", question="Which?"))
    await shop.start("a1", "Do February")
    asked = await shop.fact("a1", ClarificationRequested)
    for n in range(5):
        await shop.interject("a1", f"word {n}")
    await shop.stop("a1")
    await shop.answer("a1", asked.question, "This one")
    await shop.interject("a1", "too late")
    await shop.pause("a1")
    await shop.ask("a1", "What was it?")
    await shop.fact("a1", ActionAnswered)
    ended = await shop.fact("a1", ActionEnded)
    assert "It was waiting for an answer to “Which?”." in ended.text
    refused = await shop.facts("a1", CommandRefused)
    assert [one.verb for one in refused] == ["answer", "interject", "pause"]
    assert all("while the action is stopped; possible now: ask" in one.why for one in refused)
    said = json.dumps((await shop.state("a1")).transcript.messages)
    assert [said.count(f"word {n}") for n in range(5)] == [1] * 5
