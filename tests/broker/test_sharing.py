"""Two processes run actions beside each other, and die at any time: each command is taken once, in its order.

In this process, so that many deaths fit in a second: a death is a closed connection and cancelled tasks, with nothing
released. tests/processes kills real ones.
"""

import asyncio
import itertools
import random
from contextlib import suppress

import pytest
import pytest_asyncio

from actors.sharing import Beside, role_of
from gateway.broker.nats import JetStreamBroker
from gateway.events import Ask, Interject, Ref, Start, Stop
from gateway.holding import supervise
from gateway.journal import publish
from gateway.record import decode
from tests.broker.acting import ANA, run_actions, told
from tests.patience import PATIENCE_SECONDS
from tests.servers.nats import WANTED

TREES, DEATHS = 12, 4
prefixes = itertools.count()


class Process:
    """One that runs actions, on the one machine or another."""

    def __init__(self, url, prefix, name, machine):
        self.url, self.prefix, self.name, self.machine = url, prefix, name, machine
        self.wrong = []

    async def start(self):
        self.broker = await JetStreamBroker.connect(self.url, prefix=self.prefix, ack_wait_seconds=0.5, window=False)
        key = f"{role_of(self.machine)}{self.name}"
        self.role = asyncio.create_task(supervise(self.broker, key, 1.0, self.act))

    async def act(self, guard):
        sharing = Beside(self.broker, guard.lease, self.machine)
        await run_actions(self.broker, guard, self.name, sharing, self.wrong.append)

    async def die(self):
        """Nothing that it says from now on arrives."""
        await self.broker._client.close()
        self.role.cancel()
        await asyncio.wait({self.role})
        with suppress(Exception):
            await self.broker.close()

    async def stop(self):
        self.role.cancel()
        await asyncio.wait({self.role})
        await self.broker.close()


def commands(key):
    same = {"conversation": "p-ana", "action": key, "by": ANA}
    yield Start(ref=Ref("p-ana", 1, int(key[1:])), name="work", query="Count", **same)
    for n in range(2, 6):
        kind = Ask if n % 2 else Interject
        yield kind(ref=Ref("p-ana", n, int(key[1:])), text=f"word {n}", **same)
    yield Stop(ref=Ref("p-ana", 6, int(key[1:])), **same)
    yield Ask(ref=Ref("p-ana", 7, int(key[1:])), text="word 7", **same)


async def say(broker, key, rng):
    for command in commands(key):
        await publish(broker, f"cmd.act.{key}", command, str(command.ref))
        if rng.random() < 0.2:  # at least once
            await publish(broker, f"cmd.act.{key}", command, str(command.ref))
        await asyncio.sleep(rng.random() * 0.8)


@pytest.fixture
def prefix():
    return f"s{next(prefixes)}"


@pytest_asyncio.fixture
async def mine(servers, prefix):
    """Whoever speaks to the actions and looks at what became of it."""
    if not servers:
        pytest.skip(WANTED)
    broker = await JetStreamBroker.connect(servers["jetstream"].url, prefix=prefix)
    yield broker
    await broker.close()


@pytest.mark.parametrize("seed", range(2))
async def test_each_command_is_taken_once_and_in_order_whoever_dies(servers, prefix, mine, seed):
    rng, names = random.Random(seed), itertools.count()

    async def another():
        process = Process(servers["jetstream"].url, prefix, f"p{next(names)}", rng.choice(("one", "two")))
        await process.start()
        return process

    living = [await another(), await another()]
    keys = [f"a{n}" for n in range(TREES)]
    saying = asyncio.gather(*(say(mine, key, rng) for key in keys))
    for _ in range(DEATHS):
        await asyncio.sleep(0.5 + rng.random())
        await living.pop(rng.randrange(2)).die()
        living.append(await another())
    await saying
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all([await is_done(mine, key) for key in keys]):
                await asyncio.sleep(0.05)
    finally:
        for process in living:
            await process.stop()
    for key in keys:
        ends = {what: times for what, times in (await told(mine, key)).items() if what != "responded"}
        assert ends == {"ended": 1, "answered 3": 1, "answered 5": 1, "answered 7": 1}
        assert await taken(mine, key) == [1, 2, 3, 4, 5, 6, 7]
    assert [process.wrong for process in living] == [[], []]
    assert not any(claim.alive for claim in (await mine.claims()).values())


async def is_done(broker, key):
    found = await told(broker, key)
    return found.get("ended") and found.get("answered 7") and key not in await broker.claims()


async def taken(broker, key):
    """The commands in the order in which they stand in its log."""
    found = []
    for one in await broker.read(f"log.act.{key}"):
        _, _, entry = decode(one.data, tuple[int, str, dict])
        if entry["type"] in ("Briefed", "Interjected", "Asked", "Stopped", "Refused"):
            command = entry.get("command") or entry["start"]
            found.append((command["ref"] if isinstance(command, dict) else command)[1])
    return found
