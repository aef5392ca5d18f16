"""Typing signs that are kept up while they are on. Owns the clockwork only; the call is given in."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gateway.addresses import Route

Room = tuple[str, str, str | None]

LONGEST_SECONDS = 300.0  # an "off" may be lost; nobody types for longer


class TypingSigns:
    def __init__(
        self, show: Callable[[Route], Awaitable[float | None]], every_seconds: float, after_seconds: float = 0.0
    ) -> None:
        """`show` shows one sign, raises nothing, and answers for how many seconds the chat must be left alone.

        `after_seconds`: an answer that comes before needs no sign.
        """
        self._show, self._every_seconds, self._after_seconds = show, every_seconds, after_seconds
        self._on: dict[Room, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._held_until: dict[str, float] = {}

    def turn(self, route: Route, on: bool) -> None:
        """At once; a second "on" changes nothing. A sign on its way is not called back."""
        if on and route.room in self._on:
            self._on[route.room][0].clear()
        elif on:
            off = asyncio.Event()
            self._on[route.room] = (off, asyncio.create_task(self._repeat(route, off), name=f"typing {route.place}"))
        elif route.room in self._on:
            self._on[route.room][0].set()

    def hold(self, place: str, seconds: float) -> None:
        """No sign in this chat for so long: the platform has asked to wait."""
        self._held_until[place] = time.monotonic() + seconds

    async def close(self) -> None:
        tasks = [task for _, task in self._on.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, route: Route, off: asyncio.Event) -> None:
        ends = time.monotonic() + LONGEST_SECONDS
        try:
            await _set_within(off, self._after_seconds)
            while not off.is_set() and time.monotonic() < ends:
                if self._held_until.get(route.place, 0.0) <= time.monotonic():
                    self._held_until.pop(route.place, None)
                    wait_seconds = await self._show(route)
                    if wait_seconds:
                        self.hold(route.place, wait_seconds)
                await _set_within(off, self._every_seconds)
        finally:
            del self._on[route.room]


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
