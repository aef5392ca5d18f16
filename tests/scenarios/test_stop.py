"""Stop ends an action and everything that it started, at once, whatever it is doing; nothing of it is heard later."""

from pathlib import Path

import pytest

from tests.staging.houses import processes_in

SHELL = "(sleep 600; touch marker) & sleep 600 & wait"
PLAIN = f"import subprocess\nsubprocess.run(['sh', '-c', '{SHELL}'])"
OBSTINATE = f"import subprocess\nsubprocess.run(['sh', '-c', 'trap : TERM INT HUP; {SHELL}'], start_new_session=True)"


def sleepers(folder: Path) -> list[int]:
    def name(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            return ""

    return [pid for pid in processes_in(folder) if name(pid) == "sleep"]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("code", [PLAIN, OBSTINATE], ids=["plain", "obstinate"])
@pytest.mark.parametrize("word", ["/stop", "/stop@helperbot", "STOP"])
async def test_stop_ends_all_that_was_started(stage, word, code):
    stage.desk.on("run it").acts("shell", "Run it", saying="On it")
    stage.desk.on("STOP").stops("shell", saying="Stopping it")
    stage.desk.on("2+2").replies("4")
    stage.worker.on("Run it").runs(code)
    await stage.ana.telegram("run it.").sees("On it")
    started = await stage.until(lambda: len(found := sleepers(stage.folder)) == 2 and found)
    stopped = stage.ana.telegram(word)
    await stopped.sees("Stopp")
    await stage.ana.telegram("what is 2+2?").sees("4")
    await stage.until(lambda: not processes_in(stage.folder))
    assert not any(alive(pid) for pid in started)
    assert not list(stage.folder.rglob("marker"))
    await stage.phase("shell", "stopped")
    assert len(stage.worker.requests) == 1


async def test_stop_while_the_model_streams_closes_the_stream_and_nothing_comes_later(stage):
    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("2+2").replies("4")
    stream = stage.worker.on("Book Rome").responds("Booked").held()
    said = stage.ana.telegram("Book Rome.")
    await said.sees("On it")
    received = await stream.streaming()
    await stage.ana.telegram("/stop").sees("Stopped “booking”. It had not run anything yet.")
    assert (await stream.over()).closed_at is not None
    stream.release()
    await stage.ana.telegram("what is 2+2?").sees("4")
    assert said.after() == ["On it", "Stopped “booking”. It had not run anything yet.", "4"]
    assert received.finished_at is None


async def test_stop_needs_no_model_and_no_turn(stage):
    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    busy = stage.desk.on("Tell me").replies("Once upon a time").held()
    stream = stage.worker.on("Book Rome").responds("Booked").held()
    await stage.ana.telegram("Book Rome.").sees("On it")
    await stream.streaming()
    stage.ana.telegram("Tell me something.")
    await busy.streaming()
    await stage.ana.telegram("/stop").sees("Stopped “booking”")
    busy.release()


async def test_what_it_had_by_then_is_reported(stage):
    stage.desk.on("Count").acts("count", "Count", saying="On it")
    stage.worker.on("Count").runs("import time\nprint('two of nine', flush=True)\ntime.sleep(600)")
    await stage.ana.telegram("Count.").sees("On it")
    await stage.until(lambda: stage.output("count", "cell1") == "two of nine\n")
    told = await stage.ana.telegram("/stop").sees("Stopped “count”")
    assert "1 piece of code" in told
    assert "two of nine" in told


async def test_stop_of_one_by_name_leaves_the_other_alone(stage):
    stage.desk.on("Rome").acts("rome", "Book Rome", saying="Rome: on it")
    stage.desk.on("Oslo").acts("oslo", "Book Oslo", saying="Oslo: on it")
    rome = stage.worker.on("Book Rome").responds("Rome booked").held()
    oslo = stage.worker.on("Book Oslo").responds("Oslo booked").held()
    await stage.ana.telegram("Book Rome.").sees("Rome: on it")
    await stage.ana.telegram("Book Oslo.").sees("Oslo: on it")
    await rome.streaming()
    await oslo.streaming()
    await stage.ana.telegram("/stop rome").sees("Stopped “rome”")
    oslo.release()
    await stage.ana.sees("Oslo booked")
    assert stage.view("rome").phase == "stopped"


async def test_an_action_that_has_ended_can_still_be_asked_about(stage):
    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("what had").asks("booking", "What had you done?")
    stream = stage.worker.on("Book Rome").responds("Booked").held()
    stage.worker.beside("What had you done?").responds("I had found two trains")
    await stage.ana.telegram("Book Rome.").sees("On it")
    await stream.streaming()
    await stage.ana.telegram("/stop").sees("Stopped “booking”")
    await stage.ana.telegram("what had it done?").sees("I had found two trains")
    assert stage.view("booking").phase == "stopped"
