"""What a start does not open: actions that have ended, of which only the log stays, and those that cannot be read."""

import asyncio
import contextlib
import itertools
from datetime import UTC, datetime

import pytest

from actors.sharing import Alone, Beside, role_of
from gateway.events import Ask, Interject, Ref, Start, Stop
from gateway.holding import hold
from gateway.journal import publish
from tests.broker.acting import ANA, run_actions, told
from tests.patience import PATIENCE_SECONDS

REFUSED = "refused ask: what was written down of it cannot be read any more"
refs = itertools.count(1)


@contextlib.asynccontextmanager
async def acting(broker, backend, operator=pytest.fail):
    """One process that runs actions."""

    async def work(guard):
        sharing = Alone(broker) if backend == "sqlite" else Beside(broker, guard.lease, "here")
        await run_actions(broker, guard, "test", sharing, operator)

    role = asyncio.create_task(hold(broker, f"{role_of('here')}{next(refs)}", 10.0, work, asyncio.Event()))
    yield
    role.cancel()
    await asyncio.wait({role})


async def tell(broker, key, kind, **words):
    command = kind(ref=Ref("p-ana", next(refs)), conversation="p-ana", action=key, by=ANA, **words)
    await publish(broker, f"cmd.act.{key}", command, str(command.ref))
    return command


async def until(ready):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await ready()):
            await asyncio.sleep(0.01)
    return found


async def hears(broker, key, what, times=1):
    async def heard():
        return sum(count for told_of, count in (await told(broker, key)).items() if told_of.startswith(what)) >= times

    await until(heard)


async def nothing_left(broker):
    async def none():
        return not await broker.subjects("cmd.act.>")

    await until(none)


async def test_the_commands_of_an_ended_action_are_forgotten_and_later_ones_refused_or_answered(store, backend):
    broker = await store.open()
    async with acting(broker, backend):
        for key in ("one", "two"):
            await tell(broker, key, Start, name="work", query="Count", persist=False)
        await tell(broker, "open", Start, name="work", query="Wait", persist=True)
        for key in ("one", "two"):
            await hears(broker, key, "ended")
        late = await tell(broker, "one", Interject, text="And April", at=datetime(2026, 1, 1, tzinfo=UTC))
        await publish(broker, "cmd.act.one", late, str(late.ref))  # at least once
        await hears(
            broker,
            "one",
            "refused interject: interject is not possible while the action is succeeded; possible now: ask",
        )
        asked = await tell(broker, "one", Ask, text="What was it?")
        await hears(broker, "one", f"answered {asked.ref.batch}")

        async def only_the_open_one():
            return await broker.subjects("cmd.act.>") == ["cmd.act.open"]

        await until(only_the_open_one)
    logs = {key: len(await broker.read(f"log.act.{key}")) for key in ("one", "two")}
    async with acting(broker, backend):
        await tell(broker, "open", Stop)
        await hears(broker, "open", "ended")
        await nothing_left(broker)
        assert {key: len(await broker.read(f"log.act.{key}")) for key in logs} == logs, "nobody opened them again"
        await tell(broker, "two", Stop)
        await hears(broker, "two", "refused stop")
    assert sum(what.startswith("refused interject") for what in await told(broker, "one")) == 1


async def test_what_a_death_left_of_an_ended_action_is_forgotten_at_the_next_start(store, backend):
    broker = await store.open()
    forget = broker.purge

    async def unheard(*_, **__):
        return

    broker.purge = unheard
    async with acting(broker, backend):
        start = await tell(broker, "one", Start, name="work", query="Count", persist=False)
        await hears(broker, "one", "ended")
        await publish(broker, "cmd.act.one", start, str(start.ref))

        async def closed():
            return b'"Released"' in (await broker.read("log.act.one"))[-1].data

        await until(closed)
    broker.purge = forget
    assert await broker.subjects("cmd.act.>") == ["cmd.act.one"]
    async with acting(broker, backend):
        await tell(broker, "one", Stop)
        await nothing_left(broker)


async def test_an_action_that_cannot_be_read_is_parked_and_the_others_go_on(store, backend):
    broker = await store.open()
    async with acting(broker, backend):
        for key in ("bad", "good"):
            await tell(broker, key, Start, name="work", query="Count", persist=True)
            await hears(broker, key, "responded")
    await broker.append("log.act.bad", b'[9,"x",{"type":"WrittenByANewerVersion"}]', msg_id="newer")
    notices = []
    for n in (1, 2):  # a start after the other: whoever asked hears of it once
        async with acting(broker, backend, notices.append):
            await tell(broker, "bad", Ask, text="What was it?")
            await tell(broker, "good", Interject, text="And April", at=datetime(2026, 1, 1, tzinfo=UTC))
            await hears(broker, "bad", REFUSED, n)
            await hears(broker, "good", "responded", 1 + n)
    assert [notice.partition(",")[0] for notice in notices] == ["The action bad cannot be opened: log.act.bad"] * 2
    assert "WrittenByANewerVersion" in notices[0]
    assert await told(broker, "bad") == {"responded": 1, "ended": 1, REFUSED: 2}
    assert len(await broker.read("cmd.act.bad")) == 3, "nothing of it is thrown away"
