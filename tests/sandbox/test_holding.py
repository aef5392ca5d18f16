"""A sandbox goes on only while somebody holds its action."""

import asyncio
from pathlib import Path

import pytest

from actors.sandbox import processes
from actors.sandbox.folder import Folder
from actors.sandbox.words import CellLost
from tests.sandbox.conftest import MakeDesk
from tests.sandbox.desk import Desk, alive, eventually

BUSY = "print('going', flush=True)\nwhile True: pass"
QUICK = {"freeze_seconds": 0.3, "holder": "here"}


async def busy(desk: Desk) -> Desk:
    await desk.output(await desk.begin(BUSY, cell="c1"), "going")
    return desk


def stands(desk: Desk) -> bool:
    birth = Folder(desk.sandbox.workspace.parent).zygote()
    assert birth is not None
    return all(seen.state in processes.STANDING for seen in processes.below(birth.pid))


async def test_it_stands_still_when_its_holder_is_silent_and_goes_on_for_the_same(make_desk: MakeDesk) -> None:
    held = True
    desk = await busy(make_desk(holds=lambda: held, **QUICK))
    assert not stands(desk)
    held = False
    await eventually(lambda: stands(desk))
    held = True
    await eventually(lambda: not stands(desk))


async def test_a_gateway_that_is_gone_lets_it_stand_still_until_the_next(make_desk: MakeDesk, tmp_path: Path) -> None:
    first = await busy(make_desk(tmp_path, **QUICK))
    await first.sandbox.close()
    await eventually(lambda: stands(first))
    desk = make_desk(tmp_path, **QUICK)
    assert (await desk.sandbox.attach()).alive
    await eventually(lambda: not stands(desk))


async def test_it_ends_when_another_takes_over(make_desk: MakeDesk, tmp_path: Path) -> None:
    first = make_desk(tmp_path, **QUICK)
    cell = await first.begin("import os\nprint(os.getpid(), flush=True)\nwhile True: pass", cell="c1")
    pid = first.outside(int(await first.output(cell, "\n")))
    await first.sandbox.close()
    desk = make_desk(tmp_path, freeze_seconds=0.3, holder="elsewhere")
    await desk.sandbox.attach()
    await eventually(lambda: not alive(pid))
    assert isinstance(await desk.end("c1"), CellLost)


async def test_what_was_paused_for_longer_goes_on_when_it_is_resumed(make_desk: MakeDesk) -> None:
    desk = await busy(make_desk(**QUICK))
    await desk.sandbox.suspend()
    process = await asyncio.create_subprocess_exec("sleep", "0.5")
    await process.wait()
    assert stands(desk)
    await desk.sandbox.resume()
    await eventually(lambda: not stands(desk))


@pytest.mark.parametrize("paused", [False, True])
async def test_it_ends_by_itself_when_its_holder_is_silent_for_too_long(make_desk: MakeDesk, paused: bool) -> None:
    desk = await busy(make_desk(end_seconds=0.6, **QUICK))
    birth = Folder(desk.sandbox.workspace.parent).zygote()
    assert birth is not None
    pids = [birth.pid, *(seen.pid for seen in processes.below(birth.pid))]
    if paused:
        await desk.sandbox.suspend()
    await desk.sandbox.close()
    await eventually(lambda: not any(map(alive, pids)))


async def test_what_is_paused_and_held_does_not_end(make_desk: MakeDesk, tmp_path: Path) -> None:
    first = await busy(make_desk(tmp_path, end_seconds=0.6, **QUICK))
    await first.sandbox.suspend()
    process = await asyncio.create_subprocess_exec("sleep", "0.9")
    await process.wait()
    assert stands(first)
    await first.sandbox.close()
    desk = make_desk(tmp_path, end_seconds=0.6, **QUICK)
    assert (await desk.sandbox.attach()).alive
    assert await desk.sandbox.names() is None  # it is paused still
    assert stands(desk)
    await desk.sandbox.resume()
    await eventually(lambda: not stands(desk))


async def test_what_is_resumed_while_nobody_holds_it_stands_still_until_somebody_does(make_desk: MakeDesk) -> None:
    held = True
    desk = await busy(make_desk(holds=lambda: held, **QUICK))
    await desk.sandbox.suspend()
    held = False
    process = await asyncio.create_subprocess_exec("sleep", "0.6")
    await process.wait()
    await desk.sandbox.resume()
    assert stands(desk)
    held = True
    await eventually(lambda: not stands(desk))
