"""Who may hold something and cannot: what had stood by tries again, what had not ends with what it says."""

import asyncio
import logging

import pytest

from gateway.broker.protocol import Unconfirmed
from gateway.holding import CannotServe, supervise

TTL_SECONDS = 1.0


async def in_use(guard):
    raise CannotServe("127.0.0.1:8765 cannot be listened on")


async def test_what_took_over_from_a_frozen_process_tries_again_until_it_can_serve(broker, caplog):
    caplog.set_level(logging.INFO)
    frozen = await broker.lease("medium-local", "frozen", TTL_SECONDS)
    refused, serves = [], asyncio.Event()

    async def work(guard):
        if len(refused) < 2:
            refused.append(guard)
            await in_use(guard)
        serves.set()

    role = asyncio.create_task(supervise(broker, "medium-local", TTL_SECONDS, work))
    async with asyncio.timeout(10):
        while "standing by" not in caplog.text:
            await asyncio.sleep(0.01)
        await frozen.release()
        await serves.wait()
    role.cancel()
    await asyncio.wait({role})
    assert caplog.text.count("127.0.0.1:8765 cannot be listened on") == 2


async def test_what_cannot_serve_from_the_first_ends_with_the_mend(broker):
    with pytest.raises(CannotServe, match="cannot be listened on"):
        await supervise(broker, "medium-local", TTL_SECONDS, in_use)


class Silent:
    """A broker that cannot be asked for a while."""

    def __init__(self, broker, times):
        self._broker, self._times = broker, times

    async def lease(self, *about):
        if self._times:
            self._times -= 1
            raise Unconfirmed("no answer")
        return await self._broker.lease(*about)


async def test_what_keeps_the_broker_from_answering_is_said_and_not_that_another_process_has_it(broker, caplog):
    caplog.set_level(logging.INFO)
    serves = asyncio.Event()

    async def work(guard):
        serves.set()

    role = asyncio.create_task(supervise(Silent(broker, 2), "brain", TTL_SECONDS, work))
    async with asyncio.timeout(10):
        await serves.wait()
    role.cancel()
    await asyncio.wait({role})
    said = [record.getMessage() for record in caplog.records if record.name == "gateway.holding"]
    assert said[:2] == ["brain: the broker does not say who has it (no answer); asking again", "brain: held here"]
