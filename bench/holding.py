"""What the figures of one process have in common: a broker that is closed, a lease that nobody takes, a desk."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from brain.contacts import Contact, Contacts
from brain.hold import Pace
from brain.manager import Manager
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from gateway.clock import boot_seconds, utc_now
from gateway.holding import Guard
from gateway.llm.model import Model


class Held:
    deadline = boot_seconds() + 3600

    async def renew(self) -> None: ...
    async def release(self) -> None: ...


GUARD = Guard(Held())


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteBroker]:
    broker = SqliteBroker(path)
    try:
        yield broker
    finally:
        await broker.close()


def desk(broker: Broker, model: Model, contacts: Iterable[Contact]) -> Manager:
    return Manager(
        broker,
        GUARD,
        "bench",
        assistant="Frontdesk",
        contacts=Contacts(contacts),
        model=model,
        tell=lambda account, signal: None,
        operator=print,
        now=utc_now,
        pace=Pace(),
    )


def members(people: Iterable[Address]) -> list[Contact]:
    return [Contact(key=f"c{one.user}", name=one.user, role="member", addresses=(one,)) for one in people]
