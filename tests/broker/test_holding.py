"""Who may hold something and cannot: what had stood by tries again, what had not ends with what it says."""

import asyncio
import logging

import pytest

from frontdesk.people import Directory
from gateway.broker.protocol import Unconfirmed
from gateway.holding import CannotServe, supervise
from gateway.record import Undecodable
from gateway.settings import Settings
from tests.patience import PATIENCE_SECONDS

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
    async with asyncio.timeout(PATIENCE_SECONDS):
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


async def test_a_role_whose_journal_cannot_be_read_says_so_in_a_line_with_the_mend(broker, caplog):
    tried = asyncio.Event()

    async def opens(guard):
        if "cannot be opened" in caplog.text:
            tried.set()
        raise Undecodable("log.out.local, entry 5: a newer one")

    role = asyncio.create_task(supervise(broker, "medium-local", TTL_SECONDS, opens))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await tried.wait()
    role.cancel()
    await asyncio.wait({role})
    said = next(record for record in caplog.records if record.levelname == "ERROR")
    assert said.message.startswith("medium-local cannot be opened")
    assert "log.out.local, entry 5: a newer one. Start the version that wrote it" in said.message
    assert said.exc_info is None


async def test_without_the_book_of_people_it_ends_with_the_mend(broker):
    await broker.append("log.people.book", b'[1, "n", {"type": "WrittenByANewerVersion"}]', msg_id="newer")
    with pytest.raises(CannotServe, match=r"log\.people\.book, entry \d+: .*Start the version that wrote it"):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await Directory(Settings()).follow(broker)


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
    async with asyncio.timeout(PATIENCE_SECONDS):
        await serves.wait()
    role.cancel()
    await asyncio.wait({role})
    said = [record.getMessage() for record in caplog.records if record.name == "gateway.holding"]
    assert said[:2] == ["brain: the broker does not say who has it (no answer); asking again", "brain: held here"]
