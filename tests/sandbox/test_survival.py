"""The sandbox outlives its gateway: what an other one finds of it."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from actors.sandbox import processes
from actors.sandbox.folder import Folder
from actors.sandbox.isolation.words import Isolation
from actors.sandbox.words import Attached, CellCalled, CellDone, CellLost
from tests.sandbox.conftest import MakeDesk
from tests.sandbox.desk import PATIENCE_SECONDS, Desk, alive, eventually

COUNTING = """
import time
print("begin", flush=True)
kept = 41
answer = primitives.act("wait").result() if ASK else None
while not __import__("os").path.exists("go"):
    time.sleep(0.001)
for n in range(1000):
    print(n)
answer, kept
"""


@asynccontextmanager
async def gateway(
    directory: Path, code: str, tier: str, *, stateful: bool = False, text: str = ""
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that has begun a cell; killed with -9 at the end."""
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.sandbox.gateway",
        str(directory),
        code,
        "yes" if stateful else "no",
        text,
        tier,
        stdout=asyncio.subprocess.PIPE,
        cwd=root,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await process.stdout.readline() != b"ready\n":
                assert not process.stdout.at_eof()
        yield process
    except BaseException:
        await Desk(directory).sandbox.kill()
        raise
    finally:
        process.kill()
        await process.communicate()


def zygote(directory: Path) -> int:
    birth = Folder(directory).zygote()
    assert birth is not None
    return birth.pid


async def test_a_cell_that_went_on_is_joined_with_all_of_its_output(
    tmp_path: Path, make_desk: MakeDesk, isolation: Isolation
) -> None:
    async with gateway(tmp_path, COUNTING.replace("ASK", "False"), isolation.tier, stateful=True, text="begin"):
        pass
    desk = make_desk(tmp_path)
    assert await desk.sandbox.attach() == Attached(alive=True, stateful=True, cells=("c1",))
    assert desk.sandbox.running() == ("c1",)
    (desk.sandbox.workspace / "go").touch()
    done = await desk.end("c1")
    assert isinstance(done, CellDone)
    assert done.value == "(None, 41)"
    everything = "begin\n" + "".join(f"{n}\n" for n in range(1000))
    assert desk.sandbox.peek("c1") == everything
    assert desk.sandbox.fresh("c1") == everything.removeprefix("begin\n")  # the rest was recorded as shown
    assert (await desk.run("kept", stateful=True)).value == "41"


async def test_a_pending_call_is_told_again_and_answered(
    tmp_path: Path, make_desk: MakeDesk, isolation: Isolation
) -> None:
    async with gateway(tmp_path, COUNTING.replace("ASK", "True"), isolation.tier):
        pass
    desk = make_desk(tmp_path)
    attached = await desk.sandbox.attach()
    assert attached == Attached(alive=True, stateful=False, cells=("c1",))
    call = await desk.call()
    assert (call.cell, call.method, call.arguments) == ("c1", "act", {"query": "wait"})
    (desk.sandbox.workspace / "go").touch()
    desk.sandbox.reply(call.rpc, "answer")
    done = await desk.end("c1")
    assert isinstance(done, CellDone)
    assert done.value == "('answer', 41)"


async def test_an_answer_known_before_the_call_is_told_again_reaches_it(tmp_path: Path, make_desk: MakeDesk) -> None:
    first = make_desk(tmp_path)
    await first.begin("primitives.act('x').result()", cell="c1")
    call = await first.call()
    await first.sandbox.close()
    desk = make_desk(tmp_path)
    desk.sandbox.reply(call.rpc, "from the journal")
    await desk.sandbox.attach()
    done = await desk.end("c1")
    assert isinstance(done, CellDone)
    assert done.value == "'from the journal'"
    assert not [told for told in desk.told if isinstance(told, CellCalled)]


async def test_an_end_that_was_not_recorded_is_told_again_and_a_recorded_one_is_not(
    tmp_path: Path, make_desk: MakeDesk
) -> None:
    first = make_desk(tmp_path)
    for cell in ("c1", "c2", "s1", "s2"):
        await first.end(await first.begin(f"print('{cell}')", cell=cell, stateful=cell.startswith("s")))
    first.sandbox.recorded("c1")
    first.sandbox.recorded("s1")
    await first.sandbox.close()
    desk = make_desk(tmp_path)
    assert await desk.sandbox.attach() == Attached(alive=True, stateful=True, cells=("c2", "s2"))
    for cell in ("c2", "s2"):
        assert isinstance(await desk.end(cell), CellDone)
        assert desk.sandbox.fresh(cell) == f"{cell}\n"
    assert len(desk.told) == 2


async def test_a_clean_slate_goes_when_its_end_is_recorded(desk: Desk) -> None:
    await desk.end(cell := await desk.begin("import os; print(os.getpid())"))
    pid = desk.outside(int(desk.sandbox.peek(cell)))
    assert alive(pid)
    desk.sandbox.recorded(cell)
    await eventually(lambda: not alive(pid))
    assert desk.sandbox.peek(cell) == ""


async def test_ends_that_nobody_records_are_bounded(desk: Desk) -> None:
    for number in range(36):
        await desk.end(await desk.begin("1", cell=f"c{number}"))
    assert len(Folder(desk.sandbox.workspace.parent).cells()) <= 33


async def test_a_session_that_crashed_meanwhile_is_told_with_its_signal(tmp_path: Path, make_desk: MakeDesk) -> None:
    code = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
    first = make_desk(tmp_path)
    await first.begin(code, cell="c1")
    pid = first.outside(int(await first.output("c1", "\n")))
    await first.sandbox.close()
    os.kill(pid, signal.SIGSEGV)
    await eventually(lambda: not alive(pid))
    desk = make_desk(tmp_path)
    assert (await desk.sandbox.attach()).cells == ("c1",)
    lost = await desk.end("c1")
    assert isinstance(lost, CellLost)
    assert "SIGSEGV" in lost.why


async def test_a_suspended_sandbox_is_attached_as_it_stands(tmp_path: Path, make_desk: MakeDesk) -> None:
    first = make_desk(tmp_path)
    await first.begin("while not __import__('os').path.exists('go'): pass\n'went on'", cell="c1")
    await eventually(lambda: Folder(tmp_path).cells())
    await first.sandbox.suspend()
    await first.sandbox.close()
    desk = make_desk(tmp_path)
    (tmp_path / "workspace" / "go").touch()
    assert await desk.sandbox.attach() == Attached(alive=True, stateful=False, cells=("c1",))
    assert desk.told == []
    await desk.sandbox.resume()
    done = await desk.end("c1")
    assert isinstance(done, CellDone)
    assert done.value == "'went on'"


async def test_a_gateway_that_stands_still_does_not_block_the_next(
    tmp_path: Path, make_desk: MakeDesk, isolation: Isolation
) -> None:
    code = "print('begin', flush=True)\nwhile not __import__('os').path.exists('go'): print('x' * 1000)"
    async with gateway(tmp_path, code, isolation.tier, text="begin") as old:
        old.send_signal(signal.SIGSTOP)
        desk = make_desk(tmp_path)
        assert (await desk.sandbox.attach()).cells == ("c1",)
        (tmp_path / "workspace" / "go").touch()
        assert isinstance(await desk.end("c1"), CellDone)


KILLED_AT_ITS_START = """
import os, signal, sys
from actors.sandbox import zygote
start = zygote._start
def start_and_die(folder, *about):
    pid = start(folder, *about)
    if str(folder.directory) == sys.argv[1]: os.kill(os.getpid(), signal.SIGKILL)
    return pid
zygote._start = start_and_die
import tests.sandbox.gateway
"""


async def test_a_gateway_that_is_killed_while_a_sandbox_starts_leaves_none_of_it(
    tmp_path: Path, isolation: Isolation
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", KILLED_AT_ITS_START, str(tmp_path), "1", "no", "", isolation.tier),
        cwd=Path(__file__).parents[2],
    )
    assert await process.wait() == -signal.SIGKILL
    log = Folder(tmp_path).log  # looked for twice: what is born during the first look is not in its list
    await eventually(lambda: not (_holders(log) or _holders(log)))


def _holders(file: Path) -> list[str]:
    """The processes that have it open."""
    found = []
    for one in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has just ended
            if one.readlink() == file:
                found.append(one.parts[2])
    return found


async def test_without_a_sandbox_attach_says_so(desk: Desk) -> None:
    assert await desk.sandbox.attach() == Attached(alive=False, stateful=False, cells=())
    assert (await desk.run("1")).value == "1"


async def test_a_sandbox_that_nobody_attached_to_makes_way(tmp_path: Path, make_desk: MakeDesk) -> None:
    first = make_desk(tmp_path)
    await first.begin("while True: pass", cell="c1")
    await eventually(lambda: Folder(tmp_path).cells())
    await first.sandbox.close()
    old = zygote(tmp_path)
    desk = make_desk(tmp_path)
    assert (await desk.run("1")).value == "1"
    assert not alive(old)


async def test_a_sandbox_whose_directory_is_gone_ends_with_its_daemons(tmp_path: Path, make_desk: MakeDesk) -> None:
    directory = tmp_path / "gone"
    first = make_desk(directory, look_seconds=0.05)
    code = "import os, subprocess\nsubprocess.run('setsid sleep 600 & echo $!', shell=True)\nwhile True: pass"
    daemon = first.outside(int(await first.output(await first.begin(code), "\n")))
    birth = Folder(directory).zygote()
    assert birth is not None
    await first.sandbox.close()
    shutil.rmtree(directory)
    await eventually(lambda: not alive(daemon) and not alive(birth.keeper or birth.pid))
    processes.reap(birth.keeper or birth.pid)  # it was started by this process


async def test_a_sandbox_without_a_gateway_stays_while_its_directory_is_there(
    tmp_path: Path, make_desk: MakeDesk
) -> None:
    first = make_desk(tmp_path, look_seconds=0.01)
    await first.run("kept = 1", stateful=True)
    await first.sandbox.close()
    process = await asyncio.create_subprocess_exec("sleep", "0.1")
    await process.wait()
    desk = make_desk(tmp_path)
    assert (await desk.sandbox.attach()).stateful
    done = await desk.end(await desk.begin("kept", stateful=True, cell="later"))
    assert isinstance(done, CellDone)
    assert done.value == "1"


async def test_kill_reaches_what_an_earlier_gateway_started(
    tmp_path: Path, make_desk: MakeDesk, isolation: Isolation
) -> None:
    async with gateway(tmp_path, "print('begin', flush=True)\nwhile True: pass", isolation.tier, text="begin"):
        pass
    old = zygote(tmp_path)
    assert alive(old)
    await make_desk(tmp_path).sandbox.kill()
    assert not alive(old)
