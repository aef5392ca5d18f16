"""The roles of a process as tasks: started and stopped together, and away for a while when they are asked to be."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)
STOP_SECONDS = 8.0


class Crew:
    """`roles` makes them anew each time: name to what runs for as long as the process lives."""

    def __init__(self, roles: Callable[[], Mapping[str, Coroutine[None, None, None]]]) -> None:
        self._roles = roles
        self._tasks: list[asyncio.Task[None]] = []
        self._one_at_a_time = asyncio.Lock()
        self._leave, self._gone, self._back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, started: Callable[[], None]) -> None:
        """Until cancelled, or a role fails for good: raises what it raised. `started` is called once."""
        try:
            while True:
                self._tasks = [asyncio.create_task(role, name=name) for name, role in self._roles().items()]
                started()
                started = _nothing
                await self._until_asked()
                await self._stop()
                self._gone.set()
                await self._back.wait()
        finally:
            await self._stop()

    async def _until_asked(self) -> None:
        asked = asyncio.create_task(self._leave.wait())
        try:
            await asyncio.wait([*self._tasks, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        for task in self._tasks:
            if task.done():
                task.result()

    async def _stop(self) -> None:
        """Each cleanly, all within STOP_SECONDS."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        if late:
            log.error("did not stop in %.0f s: %s", STOP_SECONDS, [task.get_name() for task in late])

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """None of them runs, and nothing of what they knew is in memory, until the block ends."""
        async with self._one_at_a_time:
            self._back.clear()
            self._leave.set()
            await self._gone.wait()
            log.warning("all roles are away for upkeep")
            try:
                yield
            finally:
                self._leave.clear()
                self._gone.clear()
                self._back.set()
                log.warning("all roles are back")


def _nothing() -> None:
    return
