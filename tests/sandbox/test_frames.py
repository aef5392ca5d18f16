"""Whatever comes in from a sandbox is a frame, or the end of that connection: nothing else can happen."""

import asyncio
import contextlib
import json
import os
import random
import socket
from pathlib import Path

import pytest

from actors.sandbox.connection import connect
from actors.sandbox.folder import Folder
from actors.sandbox.frames import NotAFrame, from_session, from_zygote, read
from actors.sandbox.worker.wire import FRAME_BYTES_MAX, HEADER
from tests.patience import PATIENCE_SECONDS
from tests.sandbox.conftest import MakeDesk

SEED, ROUNDS, WORKER_ROUNDS = 20_260_101, 3_000, 60
KINDS = ("hello", "caughtup", "out", "done", "rpc", "names", "ready", "forked", "ended", "exec", "beat", "", "Out")
KEYS = ("cell", "position", "text", "status", "value", "rpc", "method", "args", "kwargs", "session", "pid", "names")
GOOD = (
    {"t": "caughtup"},
    {"t": "done", "cell": "c1", "status": "ok", "value": ""},
    {"t": "forked", "session": "s1", "pid": 1},
    {"t": "ready", "ended": []},
)


def anything(chance: random.Random, depth: int = 0) -> object:
    simple = [None, True, -1, 1 << 70, 0.5, "", "c1", "\ud800", "ok", "x" * 1000]
    if depth > 3 or chance.random() < 0.6:
        return chance.choice(simple)
    if chance.random() < 0.5:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): anything(chance, depth + 1) for _ in range(chance.randrange(6))}


def body(chance: random.Random) -> bytes:
    frame = {key: anything(chance) for key in chance.sample(KEYS, chance.randrange(len(KEYS)))}
    data = json.dumps(chance.choice([frame | {"t": chance.choice(KINDS)}, *GOOD])).encode()
    match chance.randrange(4):
        case 0:
            return data
        case 1:
            return data[: chance.randrange(len(data) + 1)]
        case 2:
            place = chance.randrange(len(data))
            return data[:place] + chance.randbytes(3) + data[place:]
        case _:
            return chance.randbytes(chance.randrange(64))


@pytest.mark.parametrize("decoder", [from_session, from_zygote], ids=["session", "zygote"])
async def test_frames_of_any_content_are_read_or_refused(decoder: object) -> None:
    chance = random.Random(SEED)
    outcomes = {"read": 0, "refused": 0, "cut off": 0}
    for _ in range(ROUNDS):
        data = body(chance)
        wrong = (0, len(data) + 1, FRAME_BYTES_MAX + 1, 2**32 - 1)
        length = len(data) if chance.random() < 0.8 else chance.choice(wrong)
        reader = asyncio.StreamReader()
        reader.feed_data(HEADER.pack(length) + data)
        reader.feed_eof()
        try:
            await read(reader, decoder)  # type: ignore[arg-type]
            outcomes["read"] += 1
        except NotAFrame:
            outcomes["refused"] += 1
        except asyncio.IncompleteReadError:
            outcomes["cut off"] += 1
    assert min(outcomes.values()) > 0


async def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(HEADER.pack(FRAME_BYTES_MAX + 1))
    with pytest.raises(NotAFrame, match="more than"):
        await asyncio.wait_for(read(reader, from_session), PATIENCE_SECONDS)


async def test_a_connection_waits_until_there_is_room_for_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door, contextlib.ExitStack() as others:
        door.bind(str(tmp_path / "z"))
        door.listen(0)
        first = others.enter_context(socket.socket(socket.AF_UNIX))
        first.connect(str(tmp_path / "z"))
        connecting = asyncio.create_task(connect(tmp_path, "z", os.getpid()))
        await asyncio.sleep(0)
        others.enter_context(door.accept()[0])
        _, writer = await connecting
        heard = others.enter_context(door.accept()[0])
        writer.write(b"here")
        await writer.drain()
        assert heard.recv(4) == b"here"
        writer.close()
        await writer.wait_closed()


async def test_a_worker_that_hears_anything_goes_on_for_its_host(make_desk: MakeDesk, tmp_path: Path) -> None:
    """Whoever reaches its sockets: what is no host's frame ends that connection, and nothing else."""
    first = make_desk(tmp_path)
    await first.run("kept = 42", stateful=True)
    await first.sandbox.close()
    chance = random.Random(SEED)
    good = [{"t": "names"}, {"t": "recorded", "cell": "c", "shown": -1}, {"t": "reply", "rpc": "x"}, {"t": "heard"}]
    run, zygote = Folder(tmp_path).run, Folder(tmp_path).zygote()
    assert zygote is not None
    for number in range(WORKER_ROUNDS):
        _, writer = await connect(run, ("s1", "z")[number % 2], zygote.pid)
        for _ in range(5):
            data = body(chance) if chance.random() < 0.7 else json.dumps(chance.choice(good)).encode()
            writer.write(HEADER.pack(len(data) if chance.random() < 0.9 else chance.choice((1, 2**32 - 1))) + data)
        writer.write(HEADER.pack(200_000) + b"[" * 200_000)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    desk = make_desk(tmp_path)
    assert (await desk.sandbox.attach()).stateful
    ended = await desk.end(await desk.begin("kept", stateful=True, cell="after"))
    assert getattr(ended, "value", ended) == "42"
