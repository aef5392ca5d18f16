"""Waiting for what a medium does, by events; and looking again and again only where it tells nobody."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from gateway.events import MediumFact, MessageReceived
from mediums.medium import Medium, Publish
from tests.patience import PATIENCE_SECONDS

LOOK_AGAIN_SECONDS = 0.005


class Inbox:
    """A `publish` that keeps what it was given, durable for as long as the test runs."""

    def __init__(self) -> None:
        self.facts: list[MediumFact] = []
        self.blobs: dict[str, bytes] = {}
        self._more = asyncio.Event()

    async def __call__(self, fact: MediumFact) -> None:
        self.facts.append(fact)
        self._more.set()

    async def keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    @property
    def texts(self) -> list[str]:
        return [fact.text for fact in self.facts]

    async def holds(self, count: int) -> list[MediumFact]:
        """The first `count` facts, once they are here."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.facts) < count:
                self._more.clear()
                await self._more.wait()
        return self.facts[:count]

    async def has(self, count: int) -> list[MessageReceived]:
        """As `holds`, and all of them are messages."""
        found = [fact for fact in await self.holds(count) if isinstance(fact, MessageReceived)]
        assert len(found) == count
        return found


@contextlib.asynccontextmanager
async def receiving(medium: Medium, publish: Publish) -> AsyncIterator[asyncio.Task[None]]:
    """What files it keeps, an inbox has too."""
    keep = publish.keep if isinstance(publish, Inbox) else Inbox().keep
    task = asyncio.create_task(medium.receive(publish, keep))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def eventually(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
