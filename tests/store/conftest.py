"""What the store's tests share: a broker on a file, a guard that always holds, and the keeper at work."""

import asyncio
import math
from contextlib import asynccontextmanager

import pytest

from gateway.broker.sqlite import SqliteBroker
from gateway.holding import Guard
from gateway.keeping import Keeper
from tests.patience import PATIENCE_SECONDS


class Held:
    deadline = math.inf


GUARD = Guard(Held())  # type: ignore[arg-type]


@pytest.fixture
async def broker(tmp_path):
    made = SqliteBroker(tmp_path / "store.db")
    yield made
    await made.close()


@asynccontextmanager
async def running(*works):
    """Until the block ends; what fails shows."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        while left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()  # again, where the broker was killed: a last word cannot be written
            await asyncio.wait(left, timeout=0.5)
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception):
                raise end


@asynccontextmanager
async def keeping(broker, views):
    keeper = Keeper(broker, views, lag_seconds=0.01)
    async with running(keeper.run(GUARD)):
        yield keeper


async def eventually(true):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.01)
