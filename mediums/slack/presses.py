"""Presses of buttons that did nothing: who pressed is told why, in words that only they see.

The press was durable and acknowledged before. What it did do shows on the card.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from gateway.events import ControlPressed
from gateway.live import TurnDecided
from mediums.slack.failures import CallFailed

log = logging.getLogger(__name__)

REMEMBERED = 1000


class Presses:
    def __init__(self, whisper: Callable[[ControlPressed, str], Awaitable[None]]) -> None:
        """`whisper` raises CallFailed."""
        self._whisper = whisper
        self._pressed: OrderedDict[str, ControlPressed] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, press: ControlPressed) -> None:
        """Before it is published."""
        self._pressed[press.identity] = press
        if len(self._pressed) > REMEMBERED:
            self._pressed.popitem(last=False)

    def decided(self, signal: TurnDecided) -> None:
        for identity in signal.covers:
            press = self._pressed.pop(identity, None)
            if press is not None and signal.silence:
                task = asyncio.create_task(self._tell(press, signal.silence), name=f"whisper to {press.author.address}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, press: ControlPressed, text: str) -> None:
        try:
            await self._whisper(press, text)
        except CallFailed as error:
            log.info("%s is not told why a press did nothing: %s", press.author.address, error)
