"""What code can do to its host: nothing beyond a bound."""

import asyncio
import sys
from pathlib import Path

import pytest

from actors.sandbox.words import CellCalled, CellDone, CellLost
from tests.sandbox.desk import Desk

FLOOD = "for _ in range(1 << 14): print('x' * 65_535)\nprint('the end')"

# A gateway of its own, so that its memory is not the test's.
MEASURE = """
import asyncio, sys
from pathlib import Path
from tests.sandbox.desk import Desk

async def main():
    desk = Desk(Path(sys.argv[1]))
    cell = await desk.begin(sys.argv[2])
    try:
        await desk.end(cell)
        assert "xxx\\nthe end\\n" in desk.sandbox.fresh(cell)
    finally:
        await desk.sandbox.kill()
    status = Path("/proc/self/status").read_text().splitlines()  # getrusage would tell the parent's, from before exec
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))

asyncio.run(main())
"""

# Finds the session's connection among its own objects, as any code in the process can.
FIND = """
import gc, socket, struct, json, time
(line,) = [found for found in gc.get_objects() if isinstance(found, socket.socket) and found.fileno() >= 0 and
    found.getsockname() and not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
line.setblocking(True)
def send(frame):
    body = json.dumps(frame).encode()
    line.sendall(struct.pack(">I", len(body)) + body)
"""


async def test_a_gigabyte_of_output_leaves_the_host_small(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MEASURE,
        str(tmp_path),
        FLOOD,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert int(output) < 50 << 10


async def test_a_flood_can_be_interrupted(desk: Desk) -> None:
    cell = await desk.begin("while True: print('x' * 65_535)")
    await desk.output(cell, "x")
    desk.sandbox.interrupt(cell)
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.status == "interrupted"


@pytest.mark.parametrize(
    "garbage",
    [
        "line.sendall(b'\\xff\\xff\\xff\\xff')",
        "line.sendall(struct.pack('>I', 5) + b'hello')",
        "send({'t': 'done', 'cell': 7})",
        "send({'t': 'ready', 'ended': []})",
        "line.sendall(struct.pack('>I', 200_000) + b'[' * 200_000)",
    ],
    ids=["too long", "no JSON", "wrong types", "wrong kind", "too deep"],
)
async def test_garbage_on_the_line_loses_the_cell_and_nothing_else(desk: Desk, garbage: str) -> None:
    lost = await desk.end(await desk.begin(f"{FIND}\n{garbage}\ntime.sleep(600)", stateful=True))
    assert isinstance(lost, CellLost)
    assert "not a frame" in lost.why
    assert (await desk.run("1", stateful=True)).value == "1"


async def test_forged_frames_about_other_cells_are_passed_over(desk: Desk) -> None:
    victim = await desk.begin("await primitives.act('x')\n'mine'")
    call = await desk.call()
    forged = f"""{FIND}
send({{"t": "done", "cell": "{victim}", "status": "ok", "value": "forged"}})
send({{"t": "out", "cell": "{victim}", "position": 0, "text": "forged"}})
send({{"t": "out", "cell": "nobody", "position": 0, "text": "forged"}})
send({{"t": "rpc", "rpc": "r", "cell": "{victim}", "method": "notify", "args": [], "kwargs": {{"text": "forged"}}}})
"""
    await desk.end(await desk.begin(forged))
    assert desk.sandbox.running() == (victim,)
    assert desk.sandbox.peek(victim) == ""
    assert [told for told in desk.told if isinstance(told, CellCalled)] == [call]
    desk.sandbox.reply(call.rpc)
    done = await desk.end(victim)
    assert isinstance(done, CellDone)
    assert done.value == "'mine'"


async def test_too_many_open_calls_are_refused(desk: Desk) -> None:
    code = "calls = [primitives.x() for _ in range(1001)]\nprint(calls[-1].exception())"
    cell = await desk.begin(code)
    assert "1000 calls wait" in await desk.output(cell, "\n")


async def test_too_many_running_cells_are_refused(desk: Desk) -> None:
    for _ in range(32):
        await desk.begin("await primitives.x()")
    lost = await desk.end(await desk.begin("1"))
    assert isinstance(lost, CellLost)
    assert "32 cells run already" in lost.why
