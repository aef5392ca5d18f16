"""Ask, pause, resume, questions, and children: each reaches what it is for, is written there, and nothing else."""

import json
from pathlib import Path

import pytest

from actors.entries import AskAnswered, Asked, Interjected, Paused, Resumed, Spent, Stopped
from actors.journal import ActionState
from gateway.journal import fold
from tests.staging.houses import processes_in
from tests.staging.models import call

SPIN = (
    "from pathlib import Path\nprint('first page', flush=True)\nwhile not Path({go!r}).exists(): pass\nprint('42 rows')"
)


def stand_still(folder: Path) -> bool:
    """Whether what computes below it is stopped; the sandbox's own first process sleeps, and hears when to go on."""
    found = []
    for pid in processes_in(folder):
        try:
            found.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        except OSError:
            continue
    return "T" in found and set(found) <= {"T", "S"}


@pytest.fixture
def counting(stage):
    """A task whose code computes until the file `go` is there."""
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.worker.on("Count the rows").runs(SPIN.format(go="go"))
    return stage


async def begin(stage):
    task = stage.ana.telegram("Count.")
    await stage.until(lambda: stage.output("count", "cell1"))
    return task


# --- ask -------------------------------------------------------------------------------------------------------------


async def test_ask_answers_from_a_snapshot_and_does_not_touch_the_loop(counting):
    stage = counting
    stage.desk.on("ask it").asks("count", "Which page?")
    beside = stage.worker.beside("Which page?").responds("The first")
    task = await begin(stage)
    await stage.ana.telegram("ask it.").sees("The first")
    asked = await beside.asked()
    assert "first page" in asked.text
    assert asked.body["tool_choice"] == "none"
    (stage.workspace("count") / "go").touch()
    await task.sees("42 rows")
    before, _, after = stage.worker.requests
    assert after.body["tools"] == asked.body["tools"] == before.body["tools"]
    key = stage.view("count").key
    without = stage.journals.action_entries(key, lambda e: not isinstance(e, Asked | AskAnswered | Spent))
    unasked = fold(ActionState(key), without).transcript.messages
    assert wire(after.messages[1:]) == wire(unasked[: len(after.messages) - 1])
    assert "Which page?" not in after.text


def wire(messages: list[dict]) -> str:
    return json.dumps(messages, ensure_ascii=False)


async def test_ask_leaves_a_generation_alone(stage):
    stage.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("ask it").asks("booking", "How far?")
    stream = stage.worker.on("Book Rome").responds("Booked").held()
    stage.worker.beside("How far?").responds("Just begun")
    task = stage.ana.telegram("Book Rome.")
    await stream.streaming()
    await stage.ana.telegram("ask it.").sees("Just begun")
    assert not (await stream.streaming()).over.is_set()
    stream.release()
    await task.sees("Booked")


# --- pause and resume ------------------------------------------------------------------------------------------------


async def test_pause_stands_computing_code_still_and_resume_goes_on_from_there(counting):
    stage = counting
    stage.desk.on("hold").pauses("count", saying="Holding")
    stage.desk.on("go on").resumes("count", saying="Going on")
    task = await begin(stage)
    await stage.ana.telegram("hold.").sees("Holding")
    await stage.until(lambda: stand_still(stage.folder))
    await stage.phase("count", "paused")
    (stage.workspace("count") / "go").touch()
    assert stand_still(stage.folder)
    await stage.ana.telegram("go on.").sees("Going on")
    await task.sees("42 rows")
    assert len(stage.worker.requests) == 2


@pytest.mark.parametrize("how", ["slash", "button"])
async def test_pause_and_resume_without_a_model(counting, how):
    stage = counting

    async def do(verb):
        if how == "slash":
            await stage.ana.telegram(f"/{verb}").sees(f"{verb.capitalize()}d: count.")
        else:
            stage.terminal.client.press(verb, "a1")

    task = await begin(stage)
    await do("pause")
    await stage.until(lambda: stand_still(stage.folder))
    (stage.workspace("count") / "go").touch()
    await do("resume")
    await task.sees("42 rows")


async def test_what_is_said_while_it_is_paused_is_heard_at_the_resume(counting):
    stage = counting
    stage.desk.on("hold").pauses("count", saying="Holding")
    stage.desk.on("columns").interjects("count", saying="Passed on")
    stage.desk.on("go on").resumes("count", saying="Going on")
    heard = stage.worker.on("the columns", "[resumed]").responds("7 columns")
    stage.worker.on("cell1 ended").responds("(late)")
    await begin(stage)
    await stage.ana.telegram("hold.").sees("Holding")
    await stage.ana.telegram("No, the columns.").sees("Passed on")
    await stage.until(lambda: "the columns" in str(stage.action("count").transcript.messages))
    assert len(stage.worker.requests) == 1
    await stage.ana.telegram("go on.").sees("Going on")
    await heard.asked()
    await stage.ana.telegram("/stop").sees("Stopped")


# --- questions -------------------------------------------------------------------------------------------------------


async def test_a_question_of_a_worker_blocks_only_that_call(stage):
    stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
    stage.desk.on("Lind").answers("mail")
    question = call("request_clarification", question="Which Sarah?", options=["Lind", "Okafor"])
    stage.worker.on("Mail Sarah").calls(question, call("execute_code", code="print('draft written')"))
    answered = stage.worker.on("answered by Ana: Lind").responds("Sent to Sarah Lind")
    await stage.ana.telegram("Mail Sarah.").sees("Which Sarah? (options: Lind; Okafor)")
    await stage.until(lambda: list(stage.action("mail").transcript.jobs) == ["question1"])  # the code went on
    await stage.ana.telegram("Lind.").sees("Sent to Sarah Lind")
    assert "draft written" in (await answered.asked()).text


async def test_the_answer_may_come_on_another_medium_and_reaches_running_code(stage):
    stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
    stage.desk.on("Okafor").answers("mail", saying="Thanks")
    stage.worker.on("Mail Sarah").runs(
        "name = await primitives.request_clarification('Which Sarah?')\nprint('to', name)"
    )
    mail = stage.ana.telegram("Mail Sarah.")
    await mail.sees("Which Sarah?")
    await stage.ana.terminal("Okafor").sees("Thanks")
    await mail.sees("to Okafor")


async def test_the_tool_for_an_answer_is_there_only_while_the_question_is_open(stage):
    stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
    while_open = stage.desk.on("Lind").answers("mail")
    after = stage.desk.on("and now").replies("Nothing")
    stage.worker.on("Mail Sarah").calls(call("request_clarification", question="Which Sarah?"))
    stage.worker.on("answered by Ana").responds("Sent")
    await stage.ana.telegram("Mail Sarah.").sees("Which Sarah?")
    await stage.ana.telegram("Lind.").sees("Sent")
    await stage.ana.telegram("and now?").sees("Nothing")
    assert "answer_clarification_mail__a1__question1" in (await while_open.asked()).tool_names
    assert not [name for name in (await after.asked()).tool_names if name.startswith("answer")]


async def test_progress_is_told_and_disturbs_nothing(stage):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    stage.desk.told("count progress").replies("Half way")
    stage.worker.on("Count").calls(call("notify", text="half of it"), call("execute_code", code="print('all of it')"))
    count = stage.ana.telegram("Count.")
    await count.sees("all of it")
    assert count.after()[0] == "On it"
    assert len(stage.worker.requests) == 2


# --- children --------------------------------------------------------------------------------------------------------


@pytest.fixture
def trip(stage):
    """A worker with a child that streams."""
    stage.desk.on("Plan").acts("trip", "Plan a trip", saying="On it")
    stage.worker.on("Plan a trip").calls(call("act", query="Find flights", name="flights"))
    stage.flights = stage.worker.on("Find flights").responds("Flight 7").held()
    stage.worker.on("child1 ended").responds("The trip is planned")
    return stage


async def plan(stage):
    task = stage.ana.telegram("Plan a trip.")
    await stage.flights.streaming()
    return task


async def test_a_childs_response_is_its_parents_result(trip):
    task = await plan(trip)
    trip.flights.release()
    await task.sees("The trip is planned")
    assert "child1 ended: Flight 7" in trip.worker.requests[-1].messages[-1]["content"]
    assert task.after() == ["On it", "The trip is planned"]


async def test_an_interjection_reaches_the_children_and_each_writes_it_down(trip):
    stage = trip
    stage.desk.on("from Oslo").interjects("trip", saying="Passed on")
    stage.worker.on("child1 still works", "from Oslo").responds("Noted")
    stage.worker.on("Find flights", "from Oslo").responds("Flight 9 from Oslo")
    task = await plan(stage)
    await stage.ana.telegram("We start from Oslo.").sees("Passed on")
    assert (await stage.flights.over()).closed_at is not None
    await task.sees("The trip is planned")
    assert "Flight 9 from Oslo" in stage.action("trip").transcript.messages[-2]["content"]
    for words in (recorded(stage, Interjected), recorded(stage, Interjected, child=True)):
        assert [word.command.text for word in words] == ["We start from Oslo."]


async def test_pause_and_resume_reach_the_children(trip):
    stage = trip
    stage.desk.on("hold").pauses("trip", saying="Holding")
    stage.desk.on("go on").resumes("trip", saying="Going on")
    stage.worker.on("child1 still works").responds("Waiting")
    again = stage.worker.on("Find flights", "[resumed]").responds("Flight 8")
    task = await plan(stage)
    await stage.ana.telegram("hold.").sees("Holding")
    await stage.flights.over()
    await stage.until(lambda: recorded(stage, Paused, child=True))
    assert len(stage.worker.requests) == 2
    await stage.ana.telegram("go on.").sees("Going on")
    await again.asked()
    await task.sees("The trip is planned")
    assert len(recorded(stage, Resumed)) == len(recorded(stage, Resumed, child=True)) == 1


async def test_stop_reaches_the_children(trip):
    stage = trip
    await plan(stage)
    told = await stage.ana.telegram("/stop").sees("Stopped “trip”")
    assert "Find flights" in told
    assert (await stage.flights.over()).closed_at is not None
    assert len(recorded(stage, Stopped)) == len(recorded(stage, Stopped, child=True)) == 1
    assert len(stage.worker.requests) == 2


async def test_a_childs_question_comes_up_and_the_answer_goes_down(stage):
    stage.desk.on("Plan").acts("trip", "Plan a trip", saying="On it")
    stage.desk.on("window").answers("trip")
    stage.worker.on("Plan a trip").runs("print(await primitives.act('Find a seat', name='seat'))")
    stage.worker.on("Find a seat").runs(
        "print('seat at the', await primitives.request_clarification('Aisle or window?'))"
    )
    task = stage.ana.telegram("Plan a trip.")
    await task.sees("Aisle or window?")
    await stage.ana.telegram("window.").sees("seat at the window")
    assert task.after() == ["On it", "Aisle or window?", "seat at the window."]


def recorded(stage, kind, *, child: bool = False) -> list:
    key = stage.view("trip").key
    return stage.journals.action_entries(f"{key}--child1" if child else key, lambda entry: isinstance(entry, kind))
