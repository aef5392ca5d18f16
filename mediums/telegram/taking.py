"""Updates on their way to where they are durable, and how far Telegram may be told that they are. Owns the order only.

In each chat one after the other; a chat whose files take long holds up no other, neither of the same poll nor of those
that follow. Telegram hands out again what was not confirmed, so what is on its way is known by its number.
https://core.telegram.org/bots/api#getupdates
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mediums.telegram.entities import Payload

BUSY_SECONDS = 0.25  # between two polls while something is on its way


class Taking:
    def __init__(self, take: Callable[[Payload], Awaitable[None]], chat_of: Callable[[Payload], str]) -> None:
        """`take` returns when an update is durable, or is none of ours."""
        self._take, self._chat_of = take, chat_of
        self._tasks: dict[int, asyncio.Task[None]] = {}  # of all that is not confirmed, by number
        self._last: dict[str, asyncio.Task[None]] = {}  # of each chat
        self.offset: int | None = None

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def add(self, updates: Sequence[Payload]) -> None:
        """Returns when all is durable, or after a moment; `offset` is then how far it is. Raises what `take` raises."""
        for update in updates:
            number, chat = int(update["update_id"]), self._chat_of(update)
            if number not in self._tasks:
                taking = self._after(self._last.get(chat), update)
                self._tasks[number] = self._last[chat] = asyncio.create_task(taking, name=f"update {number}")
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=BUSY_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            for task in self._tasks.values():
                if task.done():
                    task.result()
            self._confirm()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _confirm(self) -> None:
        self.offset = min((n for n, task in self._tasks.items() if not task.done()), default=max(self._tasks) + 1)
        self._tasks = {n: task for n, task in self._tasks.items() if n >= self.offset}
        self._last = {chat: task for chat, task in self._last.items() if not task.done()}

    async def _after(self, before: "asyncio.Task[None] | None", update: Payload) -> None:
        if before is not None:
            await asyncio.wait({before})
            before.result()  # after one that failed nothing of its chat is taken
        await self._take(update)
