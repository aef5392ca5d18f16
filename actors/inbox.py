"""What has come for one action and waits for its loop: commands, in their order, and happenings.

Whoever hands in a command waits until it is in the log. Once the loop has ended nothing is taken any more.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from actors.words import BESIDE, Happened
from gateway.events import ActionCommand, Ask

Obey = Callable[[ActionCommand, int], Awaitable[None]]


class Gone(Exception):
    """The action has ended and its loop with it; a later command opens it again."""


class Inbox:
    def __init__(self, key: str) -> None:
        self.closed = False
        self._key = key
        self._mail: deque[tuple[ActionCommand, int, asyncio.Future[None]]] = deque()
        self._happenings: deque[Happened] = deque()
        self._changed = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._mail or self._happenings)

    @property
    def has_mail(self) -> bool:
        return bool(self._mail)

    @property
    def has_steering(self) -> bool:
        """A command that cuts a generation short: any but an `ask`."""
        return any(not isinstance(command, Ask) for command, _, _ in self._mail)

    async def hear(self, command: ActionCommand, sequence: int) -> None:
        """Returns once it was obeyed. Raises Gone, or what obeying it raised."""
        if self.closed:
            raise Gone(self._key)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._mail.append((command, sequence, future))
        self._changed.set()
        await future

    def happened(self, happening: Happened) -> None:
        self._happenings.append(happening)
        self._changed.set()

    def wake(self) -> None:
        self._changed.set()

    def close(self) -> None:
        """Whoever waits is told that nobody is there any more."""
        self.closed = True
        for _, _, future in self._mail:
            if not future.done():
                future.set_exception(Gone(self._key))
                future.exception()

    def next_happening(self) -> Happened | None:
        return self._happenings.popleft() if self._happenings else None

    def next_beside(self) -> Happened | None:
        """The first that a generation need not know of; the others stay."""
        for happening in self._happenings:
            if isinstance(happening, BESIDE):
                self._happenings.remove(happening)
                return happening
        return None

    async def obey_all(self, obey: Obey) -> None:
        while self._mail:
            await self._obey_first(obey)

    async def obey_asks(self, obey: Obey) -> None:
        """As far as they come first."""
        while self._mail and isinstance(self._mail[0][0], Ask):
            await self._obey_first(obey)

    async def _obey_first(self, obey: Obey) -> None:
        command, sequence, future = self._mail[0]
        await obey(command, sequence)
        self._mail.popleft()
        if not future.done():
            future.set_result(None)

    def attend(self) -> None:
        """What comes from here on ends a `change`."""
        self._changed.clear()

    async def change(self, *others: "asyncio.Future[Any]") -> None:
        """Until something has come since `attend`, or one of the others is done."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({changed, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
