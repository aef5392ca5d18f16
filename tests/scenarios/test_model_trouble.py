"""Whatever the model does, nothing is lost: one honest line to the person, the mend to the operator, an answer."""

import pytest

from brain import outage, reading
from brain.hold import Pace
from tests.servers.openai import CONTEXT_TOO_LONG
from tests.stage import KEY
from tests.staging.models import Call, Cut, Error, Reply

WRONG_KEY = Error(401, "Incorrect API key provided: sk-of-the-tests", code="invalid_api_key")
UNKNOWN = Error(404, "The model does not exist", code="model_not_found")
DOWN = Error(503, "The server is overloaded")
IMPATIENT = Pace(quiet_seconds=0.1, outage_seconds=0.2)


@pytest.mark.parametrize(
    ("error", "line", "mend"),
    [
        (WRONG_KEY, outage.NOT_SET_UP, "model.api_key"),
        (UNKNOWN, outage.NOT_SET_UP, "model.name"),
        (DOWN, outage.NOT_REACHED, "503"),
    ],
    ids=["wrong key", "unknown model", "down"],
)
async def test_an_outage_is_told_once_and_the_message_answered_afterwards(opens, error, line, mend):
    tries = 3 if error is DOWN else 1
    async with opens(pace=IMPATIENT) as stage:
        stage.desk.on("Hello").gives(*[error] * 2 * tries).replies("Good morning")
        hello = stage.ana.telegram("Hello.")
        await hello.sees("Good morning")
        assert hello.after() == [line, "Good morning"]
        assert any(mend in notice and "Ana" in notice for notice in stage.notices)
        assert KEY not in str(stage.notices)


async def test_the_line_is_said_where_they_wrote(opens):
    async with opens(pace=IMPATIENT) as stage:
        stage.desk.on("Hello").gives(WRONG_KEY).replies("Good morning")
        hello = stage.ana.terminal("Hello.")
        await hello.sees("Good morning")
        assert hello.after() == [outage.NOT_SET_UP, "Good morning"]
        assert stage.ana.on_telegram() == []


async def test_what_is_said_during_an_outage_is_answered_with_it(opens):
    async with opens(pace=Pace(outage_seconds=600)) as stage:
        stage.desk.on("Hello").gives(WRONG_KEY)
        stage.desk.on("Hello", "anybody").replies("Yes, and good morning")
        hello = stage.ana.telegram("Hello.")
        await hello.sees(outage.NOT_SET_UP)
        await stage.ana.telegram("Is anybody there?").sees("Yes, and good morning")
        assert hello.after() == [outage.NOT_SET_UP, "Yes, and good morning"]


async def test_the_escape_hatches_work_without_a_model(stage):
    stage.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("Hello").gives(WRONG_KEY)
    stage.worker.on("Book Rome").responds("Booked").silent()
    await stage.ana.telegram("Book Rome.").sees("On it")
    await stage.ana.telegram("Hello.").sees(outage.NOT_SET_UP)
    assert "booking" in await stage.ana.telegram("/status").sees("running")
    await stage.ana.telegram("/stop").sees("Stopped “booking”")


async def test_a_fallback_answers_and_the_operator_hears_of_it(opens):
    async with opens(model='fallbacks = ["openai/second"]') as stage:

        def by_model(received):
            return WRONG_KEY if received.body["model"] == "scripted" else Reply(text="Good morning")

        stage.desk.on("Hello").decides(by_model)
        hello = stage.ana.telegram("Hello.")
        await hello.sees("Good morning")
        assert hello.after() == ["Good morning"]
        assert [notice for notice in stage.notices if "answering with openai/second" in notice]


@pytest.mark.parametrize("broken", [Cut(after=1), Cut(after=1, error=DOWN)], ids=["reset", "error in the stream"])
async def test_a_broken_stream_is_asked_again_and_shown_once(stage, broken):
    stage.desk.on("total").gives(broken).replies("The total is 42 and rising.")
    total = stage.ana.telegram("The total?")
    await total.sees("rising")
    assert total.after() == ["The total is 42 and rising."]


async def test_a_call_that_broke_off_with_the_stream_is_not_run(stage):
    half = Cut(after=2, reply=Reply(calls=[Call("act", '{"name": "x", "query": "all"}')]))
    stage.desk.on("Book").gives(half).replies("Where to?")
    await stage.ana.telegram("Book it.").sees("Where to?")
    assert stage.lane().actions_made == 0


async def test_a_worker_without_a_model_says_so_and_can_be_told_to_go_on(stage):
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.desk.on("go on").interjects("count")
    stage.worker.on("Count the rows").gives(WRONG_KEY)
    stage.worker.on("Count the rows", "go on").responds("42 rows")
    count = stage.ana.telegram("Count.")
    await count.sees("the person who runs me has been told")
    assert any("model.actor.api_key" in notice for notice in stage.notices)
    await stage.ana.telegram("Try again, go on.").sees("42 rows")
    assert stage.lane().actions_made == 1


async def test_a_worker_that_waits_for_its_model_can_be_stopped(stage):
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    down = stage.worker.on("Count the rows").gives(DOWN)
    await stage.ana.telegram("Count.").sees("On it")
    await down.over(times=3)
    await stage.ana.telegram("/stop").sees("Stopped “count”")
    assert len(down.requests) == 3


# --- calls that cannot be run ----------------------------------------------------------------------------------------

BAD_CALLS = {
    "half": Reply(calls=[Call("act", '{"name": "x", "query": "bo')]),
    "cut at the length": Reply(calls=[Call("act", '{"name": "x", "query": "all"}')], finish="length"),
    "null": Reply(calls=[Call("act", "null")]),
    "a list": Reply(calls=[Call("act", "[1]")]),
    "a text": Reply(calls=[Call("act", '"x"')]),
    "twice": Reply(calls=[Call("act", '{"name": "x", "query": "a"}{"name": "x", "query": "a"}')]),
    "a fence": Reply(calls=[Call("act", '{"name": "x", "query": "a"}\n```')]),
    "nothing": Reply(calls=[Call("act", "")]),
    "a field missing": Reply(calls=[Call("act", '{"name": "x"}')]),
    "unknown tool": Reply(calls=[Call("run_shell", '{"cmd": "rm -rf /"}')]),
}


@pytest.mark.parametrize("bad", BAD_CALLS.values(), ids=BAD_CALLS)
async def test_a_bad_call_is_refused_and_may_be_mended(stage, bad):
    rule = stage.desk.on("Book").gives(bad).replies("Where to?")
    await stage.ana.telegram("Book it.").sees("Where to?")
    assert rule.requests[1].messages[-1]["content"].startswith("Not done: ")
    assert stage.lane().actions_made == 0


async def test_words_that_broke_off_at_their_length_are_not_said_half(stage):
    rule = stage.desk.on("Tell").gives(Reply(text="Once upon a time the", finish="length")).replies("It ended well")
    tale = stage.ana.telegram("Tell me.")
    await tale.sees("It ended well")
    assert tale.after() == ["It ended well"]
    assert rule.requests[1].messages[-2:] == [
        {"role": "assistant", "content": "Once upon a time the"},
        {"role": "user", "content": f"Not sent: {reading.BROKE_OFF}"},
    ]


async def test_bad_calls_are_mended_twice_and_then_owned_up_to(stage):
    rule = stage.desk.on("Book").gives(BAD_CALLS["half"])
    book = stage.ana.telegram("Book it.")
    await book.sees("Could you say it differently?")
    assert len(rule.requests) == 3
    assert book.after() == [outage.NOTHING_CAME]
    stage.desk.on("Hello").replies("Good morning")
    await stage.ana.telegram("Hello.").sees("Good morning")


async def test_the_good_call_beside_a_bad_one_is_run_once(stage):
    good, bad = Call("act", '{"name": "rome", "query": "Book Rome"}'), Call("act", '{"name": "oslo", "query": "Bo')
    stage.desk.on("Book").calls(good, bad).replies("Rome is on its way; Oslo did not work")
    stage.worker.on("Book Rome").responds("Booked")
    await stage.ana.telegram("Book both.").sees("Rome is on its way")
    await stage.ana.sees("Booked")
    assert [action.name for action in stage.lane().actions.values()] == ["rome"]


HALF, OTHER = Call("execute_code", '{"code": "open(\'marker'), Call("exécute code", "{}")


@pytest.mark.parametrize("bad", [HALF, OTHER], ids=["half", "a name that no provider takes back"])
async def test_a_workers_bad_call_is_refused_and_never_run(stage, bad):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    stage.worker.on("Count").calls(bad)
    stage.worker.on("Not run: ").runs("print(6 * 7)")
    await stage.ana.telegram("Count.").sees("42")
    assert not list(stage.folder.rglob("marker"))


async def test_a_worker_that_only_writes_bad_calls_says_so(stage):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    bad = stage.worker.on().calls(Call("execute_code", '{"code": "pri'))
    await stage.ana.telegram("Count.").sees("my model keeps writing calls that cannot be run")
    assert len(bad.requests) == 3
    assert stage.view("count").phase == "failed"


# --- answers that are none -------------------------------------------------------------------------------------------

EMPTY = {
    "none": Reply(text=None),
    "blank": Reply(text="  \n"),
    "only reasoning": Reply(text="", reasoning="long hidden thoughts"),
    "only thoughts": Reply(text="<think>only thoughts</think>"),
}


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
async def test_an_empty_answer_is_asked_again_and_then_owned_up_to_once(stage, empty):
    rule = stage.desk.on("Hello").gives(empty)
    hello = stage.ana.telegram("Hello.")
    await hello.sees("Could you say it differently?")
    assert len(rule.requests) == 3
    assert hello.after() == [outage.NOTHING_CAME]
    again = stage.desk.on("Still there").replies("Yes")
    await stage.ana.telegram("Still there?").sees("Yes")
    blank = [m for m in (await again.asked()).messages if m["role"] == "assistant" and not (m["content"] or "").strip()]
    assert not blank


async def test_an_empty_answer_of_a_worker_is_owned_up_to(stage):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    stage.worker.on().gives(EMPTY["blank"])
    await stage.ana.telegram("Count.").sees("my model answered nothing")


# --- calls in text ---------------------------------------------------------------------------------------------------

WRITTEN = '{"name": "act", "arguments": {"name": "booking", "query": "Book Rome"}}'


@pytest.mark.parametrize(
    "text", [WRITTEN, f"```json\n{WRITTEN}\n```", f"```\n{WRITTEN}\n```"], ids=["bare", "json", "fence"]
)
async def test_a_call_that_is_written_as_text_is_the_call_and_never_shown(stage, text):
    stage.desk.on("Book").replies(text)
    stage.worker.on("Book Rome").responds("Booked")
    book = stage.ana.telegram("Book Rome.")
    await book.sees("Booked")
    assert not [shown for shown in book.after() if "{" in shown]


# --- too much --------------------------------------------------------------------------------------------------------


async def test_a_context_that_is_too_long_is_shortened_and_never_sent_again_unchanged(stage):
    stage.desk.on("a long story").replies("I see")
    stage.desk.on("the end").gives(CONTEXT_TOO_LONG).replies("What a story")
    for n in range(6):
        await stage.ana.telegram(f"{n}: a long story, {'and so on ' * 300}.").sees("I see")
    await stage.ana.telegram("the end.").sees("What a story")
    refused, taken = stage.desk.requests[-2:]
    assert len(taken.text) < len(refused.text)
    assert "the end." in taken.text


async def test_a_paste_beyond_the_model_s_context_is_answered_and_so_is_what_comes_next(stage):
    stage.desk.server.context_tokens = 4_000
    stage.desk.on("paste").replies("Long")
    stage.desk.on("what else").replies("Nothing else")
    await stage.ana.terminal("look: " + "paste " * 5_000).sees("Long")
    await stage.ana.terminal("and what else?").sees("Nothing else")
    assert "more characters are not shown" in stage.desk.requests[0].text


async def test_a_huge_output_is_cut_for_the_model_with_a_notice(stage):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    stage.worker.on("Count").runs("print('x' * 1_900_000)")
    cut = stage.worker.on("xxx").responds("A lot")
    await stage.ana.telegram("Count.").sees("A lot")
    assert len((await cut.asked()).messages[-1]["content"]) < 25_000
