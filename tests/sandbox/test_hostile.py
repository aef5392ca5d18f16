"""Code that attacks whom it talks to: the worker around it, its zygote, its host. Each cell ends, and what is left of
it is ended too.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio

from actors.sandbox import processes
from actors.sandbox.connection import UNREAD_BYTES_MAX, connect
from actors.sandbox.folder import Folder
from actors.sandbox.isolation.hardened import Hardened
from actors.sandbox.isolation.words import Isolation
from actors.sandbox.words import CellCalled, CellDone, CellLost
from tests.sandbox.conftest import MakeDesk
from tests.sandbox.desk import Desk, alive, eventually, hardened
from tests.sandbox.test_bounds import FIND


@pytest_asyncio.fixture
async def isolation() -> Isolation:
    """Worker and host are the same in both tiers."""
    return await hardened()


# Code whose end is told, and after which the session goes on.
ODD = {
    "exit with much": ("import sys; sys.exit('x' * 20_000_000)", "exit", "characters left out"),
    "exit with what raises": (
        "class X:\n    def __str__(self): raise ValueError('no')\nraise SystemExit(X())",
        "exit",
        "ValueError: no",
    ),
    "a long chain of causes": (
        "last = None\nfor n in range(2000):\n    error = ValueError(n)\n    error.__context__ = last\n"
        "    last = error\nraise last",
        "error",
        "ValueError: 1999",
    ),
    "an error that is no text": (
        "class E(Exception):\n    def __str__(self): raise KeyboardInterrupt\nraise E()",
        "error",
        "str() failed",
    ),
    "another json": ("import json; json.dumps = json.loads = None", "ok", ""),
    "names that are none": (
        "globals()[5] = globals()['\\ud800'] = 1\n"
        "class Meta(type):\n    __name__ = 7\nclass Odd(metaclass=Meta): pass\nodd = Odd()",
        "ok",
        "",
    ),
    "no streams": ("import sys; sys.stdout = sys.stderr = None; 5", "ok", "5"),
    "half a character": ("import os; _ = os.write(1, b'\\xe2\\x82')", "ok", ""),
    "more names than fit": ("globals().update({f'{n:0500}n'.replace('0', 'x'): n for n in range(40_000)})", "ok", ""),
    "deep code": ("x = " + "(" * 5000 + ")" * 5000, "error", "too many nested parentheses"),
}


async def test_whatever_code_does_to_its_worker_its_end_is_told_and_the_session_goes_on(desk: Desk) -> None:
    await desk.run("kept = 42", stateful=True)
    for name, (code, status, text) in ODD.items():
        ended = await desk.run(code, stateful=True)
        assert (ended.status, text in ended.value) == (status, True), (name, ended)
        assert len(ended.value) < 20_000, name
        names = await desk.sandbox.names()
        assert names is not None, name
        assert len(names) <= 1_000, name
    assert (await desk.run("kept", stateful=True)).value == "42"


THERE = "open('there', 'w').close()"  # where it will not stop
OBSTINATE = "did not stop when it was interrupted"
LEAVES = {
    "a signal without a name": ("import os; os.kill(os.getpid(), 40)", "signal 40"),
    "its line held open by what it has left": (
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n"
        "if libc.syscall(FORK, 17, 0, 0, 0, 0) == 0:\n    os.setsid(); time.sleep(600)\nos._exit(3)",
        "exit code 3",
    ),
    "its line cut, and going on": (f"{FIND}\nline.shutdown(2)\nwhile True: time.sleep(1)", "connection"),
    "its thread on the line stopped": (
        f"{FIND}\nimport os\nos._exit = print\nline.close()\n{THERE}\ntime.sleep(600)",
        "",
    ),
    "a loop that catches everything": (
        f"import time\nwhile True:\n    try:\n        {THERE}\n        time.sleep(1)\n    except BaseException: pass",
        OBSTINATE,
    ),
    "all signals blocked": (
        "from signal import *\nimport time\npthread_sigmask(SIG_BLOCK, valid_signals())\n"
        f"{THERE}\nwhile True: time.sleep(1)",
        OBSTINATE,
    ),
}


@pytest.mark.parametrize("name", LEAVES)
async def test_a_session_that_is_gone_or_cannot_be_heard_is_over(make_desk: MakeDesk, name: str) -> None:
    code, why = LEAVES[name]
    desk = make_desk(patience_seconds=(0.1, 0.1))
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    code = f"import os\nopen('pid', 'w').write(f'{{os.getpid()}}\\n')\n{code.replace('FORK', str(clone))}"
    cell = await desk.begin(code, stateful=True)
    file = desk.sandbox.workspace / "pid"
    await eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    zygote = Folder(desk.sandbox.workspace.parent).zygote()
    assert zygote is not None
    pid = processes.outside(zygote.pid, int(file.read_text())) or 0
    if why in ("", OBSTINATE):
        await eventually((desk.sandbox.workspace / "there").exists)
        desk.sandbox.interrupt(cell)
    lost = await desk.end(cell)
    assert isinstance(lost, CellLost)
    assert why in lost.why
    await eventually(lambda: not pid or not alive(pid))
    assert (await desk.run("1", stateful=True)).value == "1"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("deep = []\nfor _ in range(900): deep = [deep]\nprimitives.notify(deep).result()", "nested more than 50"),
        ("primitives.notify('x' * 600_000).result()", "more than 512 KB"),
        ("getattr(primitives, 'x' * 5_000)().result()", "5000 characters"),
    ],
)
async def test_a_call_that_nobody_means_is_refused(desk: Desk, code: str, why: str) -> None:
    ended = await desk.run(code)
    assert ended.status == "error"
    assert why in ended.value
    assert [told for told in desk.told if isinstance(told, CellCalled)] == []


DEAF = f"""{FIND}
import os, select
os._exit = print
select.poll = None
print("deaf")
while True:
    for number in range(20):
        send(dict(t="rpc", rpc=f"r{{number}}", cell="cell1", method="notify", args=["x"], kwargs={{}}))
    time.sleep(600)
"""


async def test_who_asks_and_never_reads_the_answers_is_ended(desk: Desk) -> None:
    await desk.begin(DEAF)
    for call in [await desk.call(number) for number in range(1, 21)]:
        desk.sandbox.reply(call.rpc, "x" * (UNREAD_BYTES_MAX // 10))
    lost = await desk.end("cell1")
    assert isinstance(lost, CellLost)
    assert "did not read" in lost.why


# Each would make it its own host, or more.
ITSELF = """
import os, socket
RUN, found = "/run/frontdesk", []
def heard(name):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"{RUN}/{name}")
        return line.recv(10) != b""
def opened(path):
    try: return os.open(path, os.O_RDWR) > 0
    except OSError: return False
[*map(heard, sorted(os.listdir(RUN))), opened("/proc/1/mem"), opened("/proc/1/fd/2"), opened("/proc/1/environ")]
"""


async def test_nobody_inside_is_listened_to_as_a_host(desk: Desk) -> None:
    await desk.run("1", stateful=True)
    assert (await desk.run(ITSELF)).value == repr([False] * 6)


async def test_only_what_the_zygote_has_opened_is_taken_for_it(desk: Desk) -> None:
    """What is taken for a session gets the code of its cells: it must not be another sandbox's."""
    await desk.run(
        "import socket\nkept = socket.socket(socket.AF_UNIX)\nkept.bind('/run/frontdesk/s77')\nkept.listen()",
        stateful=True,
    )
    folder = Folder(desk.sandbox.workspace.parent)
    birth = folder.zygote()
    assert birth is not None
    for name in ("s77", "../run/s1", "nothing"):
        with pytest.raises(OSError, match=name.rpartition("/")[2]):
            await connect(folder.run, name, birth.pid)
    _, writer = await connect(folder.run, "s1", birth.pid)
    writer.close()
    await writer.wait_closed()


@pytest.fixture
def disk() -> Iterator[Path]:
    """Not where other tests write: code that fills a folder in memory is ended for the memory that it takes."""
    with TemporaryDirectory(prefix="frontdesk-") as name:
        yield Path(name)


async def test_what_a_cell_leaves_running_is_held_to_the_quota_too(disk: Path) -> None:
    tools = (await hardened()).tools
    isolation = Hardened(tools, network="none", memory_mb=256, disk_mb=4)
    desk = Desk(disk / "box", isolation=isolation)
    fill = "while :; do i=$((i+1)); head -c 1000000 /dev/zero > bomb$i; done"
    try:
        assert (
            await desk.run(f"import subprocess; kept = subprocess.Popen(['sh', '-c', {fill!r}])", stateful=True)
        ).status == "ok"
        zygote = Folder(desk.sandbox.workspace.parent).zygote()
        assert zygote is not None
        await eventually(lambda: not alive(zygote.pid))
        told = await desk.end(await desk.begin("kept", stateful=True))
        assert isinstance(told, CellLost)
        assert "more than 4 MB" in told.why
        assert (await desk.run("1", stateful=True)).value == "1"
    finally:
        await desk.sandbox.kill()


async def test_a_process_may_call_itself_anything_and_stands_still_with_the_others(desk: Desk) -> None:
    named = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\xff) \\xfe (', 0, 0, 0)\nprint('named', flush=True)\n"
    cell = await desk.begin(f"{named}time.sleep(600)")
    await desk.output(cell, "named")
    await desk.sandbox.suspend()
    await desk.sandbox.resume()
    desk.sandbox.interrupt(cell)
    assert isinstance(await desk.end(cell), CellDone)
