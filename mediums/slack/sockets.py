"""Keeps one connection to Slack open, and says how that goes. Owns the clockwork only; connecting is given in.

Slack announces that it will close a connection, and then the next one is opened beside it; only then the old one is
shut, in the background and within a bound. So there are at most two, and what comes on either is received.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from mediums.slack.failures import CallFailed, Disconnected, Failure, describe
from mediums.slack.pace import Pace


class Socket(Protocol):
    over: asyncio.Future[Disconnected]

    async def shut(self) -> None:
        """Bounded; raises nothing."""


class Sockets:
    def __init__(self, connect: Callable[[], Awaitable[Socket]], tell: Callable[[str], None], pace: Pace) -> None:
        """`connect` opens one or raises CallFailed; `tell` hears what is wrong, and "" when all is well."""
        self._connect, self._tell, self._pace = connect, tell, pace
        self._current: Socket | None = None
        self._shutting: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """For ever; shuts what it opened when it is cancelled."""
        failed = 0
        try:
            while True:
                began = time.monotonic()
                failure = await self._one()
                if time.monotonic() - began >= self._pace.settled_seconds:
                    failed = 0
                    if isinstance(failure, Disconnected) and failure.announced:
                        continue
                failed += 1
                if failed > 1:  # the one that is about to be closed may be gone before the next is open
                    self._tell(describe(failure))
                await asyncio.sleep(self._pace.pause_seconds(failed, failure))
        finally:
            self._retire()
            if self._shutting:
                await asyncio.wait(self._shutting)

    async def _one(self) -> Failure:
        """A connection's whole life, and why it ended."""
        try:
            fresh = await self._connect()
        except CallFailed as error:
            self._tell(str(error))
            return error.failure
        self._retire()
        self._current = fresh
        self._tell("")
        ended = await fresh.over
        if not ended.announced:
            self._tell(describe(ended))
            self._retire()
        return ended

    def _retire(self) -> None:
        if self._current is not None:
            task = asyncio.create_task(self._current.shut(), name="shut a connection to Slack")
            self._shutting.add(task)
            task.add_done_callback(self._shutting.discard)
            self._current = None
