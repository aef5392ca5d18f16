"""The desk is free whatever work goes on, and the work is not disturbed by what is said at the desk."""

import pytest

SPIN = "from pathlib import Path\nwhile not Path({go!r}).exists(): pass\nprint('42 rows')"


async def test_a_question_is_answered_while_the_task_streams(stage):
    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("how far").replies("Looking at trains")
    stream = stage.worker.on("Book Rome").responds("Rome is booked").held()
    task = stage.ana.telegram("Book Rome.")
    await stream.streaming()
    await stage.ana.telegram("how far are you?").sees("Looking at trains")
    assert not (await stream.streaming()).over.is_set()
    stream.release()
    await task.sees("Rome is booked")
    assert len(stage.worker.requests) == 1


async def test_a_question_is_answered_while_the_task_computes(stage):
    go = stage.folder / "go"
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.desk.on("how far").replies("Still counting")
    stage.worker.on("Count the rows").runs(SPIN.format(go=str(go)))
    task = stage.ana.telegram("Count the rows.")
    await stage.until(lambda: stage.action("count").transcript.jobs)
    await stage.ana.telegram("how far are you?").sees("Still counting")
    assert list(stage.action("count").transcript.jobs) == ["cell1"]
    go.touch()
    await task.sees("42 rows")
    assert len(stage.worker.requests) == 2


async def test_the_desk_knows_how_a_task_stands_without_asking_it(stage):
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    asked = stage.desk.on("how far").replies("On page three")
    go = stage.folder / "go"
    stage.worker.on("Count the rows").runs(f"primitives.status('page three of nine')\n{SPIN.format(go=str(go))}")
    task = stage.ana.telegram("Count the rows.")
    await stage.until(lambda: stage.view("count").doing == "page three of nine")
    await stage.ana.telegram("how far are you?").sees("On page three")
    assert "a1 count · running" in (await asked.asked()).text
    assert "doing: page three of nine" in (await asked.asked()).text
    go.touch()
    await task.sees("42 rows")


@pytest.mark.parametrize("medium", ["telegram", "terminal", "web"])
async def test_a_correction_reaches_the_workers_next_request_and_closes_the_old_stream(stage, medium):
    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("work account").interjects("booking", saying="Passed on")
    old = stage.worker.on("Book Rome").responds("Booked").held()
    new = stage.worker.on("Book Rome", "work account").responds("Booked on the work account")
    task = stage.ana.telegram("Book Rome.")
    stream = await old.streaming()
    await getattr(stage.ana, medium)("No, the work account.").sees("Passed on")
    last = (await new.asked()).messages[-1]
    assert last["role"] == "user"
    assert last["content"].startswith(f"[Ana on {medium}, ")
    assert last["content"].endswith("] No, the work account.")
    await stream.over.wait()
    assert stream.closed_at is not None
    await task.sees("Booked on the work account")


async def test_a_correction_of_running_code_comes_with_what_the_code_has_said(stage):
    go = stage.folder / "go"
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.desk.on("columns").interjects("count")
    stage.worker.on("Count the rows").runs(f"print('first page')\n{SPIN.format(go=str(go))}")
    corrected = stage.worker.on("columns").calls(stage.call("interrupt_code", cell="cell1"), saying="The columns, then")
    stage.worker.on("interrupted").responds("7 columns")
    task = stage.ana.telegram("Count the rows.")
    await stage.until(lambda: stage.output("count", "cell1") == "first page\n")
    stage.ana.telegram("No, the columns.")
    interim, word = (await corrected.asked()).messages[-2:]
    assert interim["role"] == "tool"
    assert "cell1 still runs. Output so far:\nfirst page" in interim["content"]
    assert word["role"] == "user"
    await task.sees("7 columns")
    assert not go.exists()


async def test_the_right_one_of_two_tasks_hears_the_correction(stage):
    stage.desk.on("Rome").acts("rome", "Book Rome", saying="Rome: on it")
    stage.desk.on("Oslo").acts("oslo", "Book Oslo", saying="Oslo: on it")
    stage.desk.on("the later flight").interjects("oslo")
    rome = stage.worker.on("Book Rome").responds("Rome booked").held()
    oslo = stage.worker.on("Book Oslo").responds("Oslo booked").held()
    stage.worker.on("Book Oslo", "later flight").responds("Oslo booked, later")
    await stage.ana.telegram("Book Rome.").sees("Rome: on it")
    await stage.ana.telegram("And book Oslo.").sees("Oslo: on it")
    await rome.streaming()
    await oslo.streaming()
    await stage.ana.telegram("For Oslo the later flight.").sees("Oslo booked, later")
    assert not (await rome.streaming()).over.is_set()
    rome.release()
    await stage.ana.sees("Rome booked")
    assert "later flight" not in str(stage.action("rome").transcript.messages)
