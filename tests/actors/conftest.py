from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.actors.shop import Shop


@pytest_asyncio.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with Shop(tmp_path) as opened:
        yield opened
