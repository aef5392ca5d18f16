"""How far the views of each machine have been fed, where several machines keep views of the same journals.

What one of them lacks is not forgotten: each says in `log.views.<machine>` how far it is, and reads what the others
say. One that has been silent for SILENT is not waited for: its machine is gone, and if it comes back, what was
forgotten meanwhile is missing in its search.
"""

import uuid
from datetime import datetime, timedelta
from typing import Protocol

from gateway.broker.protocol import Broker, Stored
from gateway.clock import Now
from gateway.record import Tagged, decode, encode

PATTERN = "log.views."
SILENT = timedelta(days=2)
TOLD_EVERY = timedelta(hours=1)


class Fed(Tagged, frozen=True, kw_only=True):
    through: int
    at: datetime


class Others(Protocol):
    """The views beside ours."""

    async def begin(self) -> None:
        """Raises Unconfirmed."""

    def note(self, stored: Stored) -> None:
        """What one of them said."""

    async def tell(self, through: int, *, due: bool) -> None:
        """Ours are fed up to there; with `due` at once, otherwise now and then. Raises Unconfirmed."""

    def through(self) -> int | None:
        """All of them are fed up to there; None where there are none."""


class Nobody:
    """One machine, one file."""

    async def begin(self) -> None:
        return

    def note(self, stored: Stored) -> None:
        return

    async def tell(self, through: int, *, due: bool) -> None:
        return

    def through(self) -> int | None:
        return None


class Machines:
    """`machine` is ours, a token."""

    def __init__(self, broker: Broker, machine: str, now: Now) -> None:
        self._broker, self._subject, self._now = broker, f"{PATTERN}{machine}", now
        self._fed: dict[str, Fed] = {}

    async def begin(self) -> None:
        for stored in await self._broker.read(f"{PATTERN}>"):
            self.note(stored)

    def note(self, stored: Stored) -> None:
        self._fed[stored.subject] = decode(stored.data, Fed)

    async def tell(self, through: int, *, due: bool) -> None:
        last, now = self._fed.get(self._subject), self._now()
        if last is not None and now - last.at < TOLD_EVERY and not (due and through > last.through):
            return
        fed = Fed(through=through, at=now)
        sequence = await self._broker.append(self._subject, encode(fed), msg_id=uuid.uuid4().hex)
        self._fed[self._subject] = fed
        await self._broker.purge(self._subject, sequence)

    def through(self) -> int | None:
        alive = self._now() - SILENT
        others = [fed.through for subject, fed in self._fed.items() if subject != self._subject and fed.at > alive]
        return min(others, default=None)
