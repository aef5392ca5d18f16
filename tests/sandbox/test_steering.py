"""Interrupting, suspending and killing: what runs obeys, whatever it does."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.sandbox.folder import Birth, Folder
from actors.sandbox.words import CellDone, CellLost
from tests.sandbox.conftest import MakeDesk
from tests.sandbox.desk import Desk, alive, eventually

SITUATIONS = {
    "busy loop": "while True: pass",
    "time.sleep": "import time; time.sleep(600)",
    "await": "import asyncio; await asyncio.sleep(600)",
    "program": "import subprocess; subprocess.run(['sleep', '600'])",
    "thread": "import threading; threading.Event().wait()",
    "asyncio.run": "import asyncio; asyncio.run(asyncio.sleep(600))",
    "awaited call": "await primitives.act('x')",
    "call in plain code": "primitives.act('x').result()",
    "bare call": "primitives.act('x')",
}

# Starts 20 daemons that ignore signals, each in a session of its own and orphaned; each writes its pid into a file.
DAEMONS = r"""
import subprocess
open("daemon.sh", "w").write("trap '' TERM INT HUP; echo $$ > daemon.$1; while :; do sleep 600; done")
for number in range(20):
    subprocess.run(f"setsid sh daemon.sh {number} &", shell=True)
"""


def pids(text: str) -> list[int]:
    return [int(line) for line in text.split() if line.isdigit()]


@pytest.mark.parametrize("code", SITUATIONS.values(), ids=SITUATIONS.keys())
async def test_an_interrupt_ends_the_cell_and_keeps_the_session(desk: Desk, code: str) -> None:
    await desk.run("kept = 1", stateful=True)
    cell = await desk.begin(f"print('going', flush=True)\n{code}", stateful=True)
    await desk.output(cell, "going")
    desk.sandbox.interrupt(cell)
    done = await desk.end(cell)
    assert isinstance(done, CellDone), done
    assert done.status == "interrupted"
    assert "KeyboardInterrupt" in done.value
    assert (await desk.run("kept", stateful=True)).value == "1"


async def test_an_interrupted_cell_shows_the_line_it_was_at(desk: Desk) -> None:
    cell = await desk.begin("import asyncio\nprint('going', flush=True)\nawait asyncio.sleep(600)")
    await desk.output(cell, "going")
    desk.sandbox.interrupt(cell)
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert "await asyncio.sleep(600)" in done.value or "print('going', flush=True)" in done.value  # it may just return


async def test_an_interrupt_never_hits_the_next_cell(desk: Desk) -> None:
    for _ in range(30):
        cell = await desk.begin("1", stateful=True)
        desk.sandbox.interrupt(cell)
        await desk.end(cell)
        assert (await desk.run("sum(range(1000))", stateful=True)).value == "499500"


async def test_an_interrupt_before_the_cell_began(desk: Desk) -> None:
    cell = await desk.begin("while True: pass")
    desk.sandbox.interrupt(cell)
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.status == "interrupted"


async def test_the_second_interrupt_reaches_programs(make_desk: MakeDesk) -> None:
    desk = make_desk(patience_seconds=(0.1, 10.0))
    cell = await desk.begin("import os\nprint('going', flush=True)\nos.system('sleep 600')\nos.system('sleep 600')")
    await desk.output(cell, "going")
    desk.sandbox.interrupt(cell)
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.status == "interrupted"


async def test_a_session_that_does_not_obey_is_ended_with_its_programs(make_desk: MakeDesk) -> None:
    desk = make_desk(patience_seconds=(0.1, 0.1))
    code = (
        "import signal, subprocess\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)\nwhile True: pass"
    )
    cell = await desk.begin(code, stateful=True)
    (pid,) = map(desk.outside, pids(await desk.output(cell, "\n")))
    desk.sandbox.interrupt(cell)
    lost = await desk.end(cell)
    assert isinstance(lost, CellLost)
    assert "did not stop" in lost.why
    assert "variables" in lost.why
    await eventually(lambda: not alive(pid))
    assert (await desk.run("1", stateful=True)).value == "1"


async def counter(desk: Desk) -> Path:
    """A busy loop whose count goes to a file of eight bytes."""
    code = (
        "import os\nfile = os.open('count', os.O_CREAT | os.O_WRONLY)\nn = 0\n"
        "while True:\n    n += 1\n    os.pwrite(file, n.to_bytes(8, 'big'), 0)"
    )
    await desk.begin(code, cell="counting")
    path = desk.sandbox.workspace / "count"
    await eventually(path.exists)
    return path


async def moves(look: Callable[[], bytes]) -> bool:
    """Whether it has changed after a program of our own has run beside it."""
    before = look()
    process = await asyncio.create_subprocess_exec("sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done")
    await process.wait()
    return look() != before


async def test_suspend_stands_a_busy_loop_still_and_resume_lets_it_go_on(desk: Desk) -> None:
    path = await counter(desk)
    await eventually(path.read_bytes)
    await desk.sandbox.suspend()
    assert not await moves(path.read_bytes)
    assert await desk.sandbox.names() is None
    await desk.sandbox.resume()
    before = path.read_bytes()
    await eventually(lambda: path.read_bytes() != before)


async def test_suspend_reaches_daemons(desk: Desk) -> None:
    await desk.run(
        "import subprocess\nsubprocess.Popen('setsid sh -c \"while :; do echo x >> ticks; done\" &', shell=True).wait()"
    )
    path = desk.sandbox.workspace / "ticks"
    await eventually(path.exists)
    await desk.sandbox.suspend()
    assert not await moves(path.read_bytes)


async def test_a_cell_given_while_it_stands_still_begins_after(desk: Desk) -> None:
    await desk.run("1")
    await desk.sandbox.suspend()
    cell = await desk.begin("2")
    assert desk.sandbox.running() == (cell,)
    await desk.sandbox.resume()
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.value == "2"


async def test_an_interrupt_of_what_stands_still_waits_and_does_not_kill(make_desk: MakeDesk) -> None:
    desk = make_desk(patience_seconds=(0.01, 5.0))
    cell = await desk.begin("print('going', flush=True)\nwhile True: pass", stateful=True)
    await desk.output(cell, "going")
    await desk.sandbox.suspend()
    desk.sandbox.interrupt(cell)
    process = await asyncio.create_subprocess_exec("sleep", "0.05")
    await process.wait()
    await desk.sandbox.resume()
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.status == "interrupted"


async def test_st03_kill_leaves_no_process_and_no_later_effect(desk: Desk) -> None:
    script = "(sleep 600; touch marker) & echo $! $$; sleep 600 & echo $!; wait"
    code = f"import subprocess\nsubprocess.run(['sh', '-c', {script!r}])"
    cell = await desk.begin(code)
    await eventually(lambda: len(pids(desk.sandbox.peek(cell))) == 3)
    found = [*map(desk.outside, pids(desk.sandbox.peek(cell)))]
    assert all(map(alive, found))
    await desk.sandbox.kill()
    assert not any(map(alive, found))
    assert not (desk.sandbox.workspace / "marker").exists()
    assert desk.sandbox.running() == ()


async def test_kill_ends_daemons_that_ignore_signals_and_never_holds_up_the_loop(desk: Desk) -> None:
    assert (await desk.run(DAEMONS, stateful=True)).status == "ok"

    def daemons() -> list[int]:
        return pids(" ".join(path.read_text() for path in desk.sandbox.workspace.glob("daemon.[0-9]*")))

    await eventually(lambda: len(daemons()) == 20)
    found = [*map(desk.outside, daemons())]
    assert all(map(alive, found))
    lags: list[float] = []

    async def watch() -> None:
        while True:
            before = time.thread_time()  # the loop's own work: other programs of the machine do not count
            await asyncio.sleep(0.001)
            lags.append(time.thread_time() - before)

    watching = asyncio.create_task(watch())
    await desk.sandbox.kill()
    watching.cancel()
    assert not any(map(alive, found))
    assert lags
    assert max(lags) < 0.1  # a few ms


async def test_kill_ends_what_stands_still(desk: Desk) -> None:
    await counter(desk)
    birth = Folder(desk.sandbox.workspace.parent).zygote()
    assert birth is not None
    await desk.sandbox.suspend()
    await desk.sandbox.kill()
    assert not alive(birth.pid)
    assert (await desk.run("1")).value == "1"


async def test_a_pid_that_is_somebody_elses_by_now_is_never_signalled(tmp_path: Path, make_desk: MakeDesk) -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "600")
    folder = Folder(tmp_path / "old")
    folder.prepare()
    folder.remember_zygote(Birth(pid=stranger.pid, started=1))
    desk = make_desk(tmp_path / "old")
    assert not (await desk.sandbox.attach()).alive
    await desk.sandbox.kill()
    assert alive(stranger.pid)
    stranger.kill()
    await stranger.wait()


async def test_the_zygote_ended_from_inside_loses_its_cells_and_in_a_namespace_cannot_be(desk: Desk) -> None:
    """Process 1 of a pid namespace is out of reach of every signal from inside."""
    code = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(0.2)"
    ended = await desk.end(await desk.begin(code))
    assert isinstance(ended, CellDone if desk.sandbox.tier == "hardened" else CellLost)
    assert (await desk.run("1")).value == "1"


async def test_no_session_of_a_new_zygote_is_called_as_one_of_the_last(desk: Desk) -> None:
    """The end of that one may still be on its way, and would be taken for the end of this one."""
    folder = Folder(desk.sandbox.workspace.parent)
    names: list[str] = []
    for _ in range(3):
        await desk.run("1", stateful=True)
        names += folder.sessions()
        birth = folder.zygote()
        assert birth is not None
        cell = await desk.begin("while True: pass", stateful=True)
        os.kill(birth.pid, signal.SIGKILL)
        assert isinstance(await desk.end(cell), CellLost)
    assert len({*names}) == 3, names
