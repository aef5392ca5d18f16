"""What the figures of the store have in common: a broker that is closed, and a lease that nobody takes."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from gateway.broker.sqlite import SqliteBroker
from gateway.clock import boot_seconds
from gateway.holding import Guard


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
