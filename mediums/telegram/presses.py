"""Presses of buttons, answered as soon as it is known what came of them: at once, or after a second without a word.

A press is durable by then. What is lost here is only a line that would have flashed up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gateway.live import TurnDecided
from mediums.telegram.failures import CallFailed

log = logging.getLogger(__name__)


class Presses:
    def __init__(self, answer: Callable[[str, str], Awaitable[None]], patience_seconds: float) -> None:
        """`answer` is given the query and a text, and raises CallFailed."""
        self._answer, self._patience_seconds = answer, patience_seconds
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, identity: str) -> None:
        """Before it is published: the decision may be quicker than what follows."""
        self._waiting[identity] = asyncio.get_running_loop().create_future()

    def take(self, query: str, identity: str = "") -> None:
        """Answers in the background; without an identity, at once."""
        task = asyncio.create_task(self._answered(query, identity), name=f"answer press {query}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def decided(self, signal: TurnDecided) -> None:
        for identity in signal.covers:
            waiting = self._waiting.get(identity)
            if waiting is not None and not waiting.done():
                waiting.set_result(signal.silence or signal.passed_on)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._waiting.clear()

    async def _answered(self, query: str, identity: str) -> None:
        text = ""
        waiting = self._waiting.get(identity)
        if waiting is not None:
            try:
                async with asyncio.timeout(self._patience_seconds):
                    text = await waiting
            except TimeoutError:
                log.info("press %s: nothing was decided within %.0f s", query, self._patience_seconds)
            finally:
                self._waiting.pop(identity, None)
        try:
            await self._answer(query, text)
        except CallFailed as error:  # an old one cannot be answered any more
            log.info("press %s is not answered: %s", query, error)
