"""Facts that nobody can take yet: kept as they came, and taken first once a start can read what stood in the way.

Each is durable here before it is acknowledged where it came from. Taken again it is known by its identity.
"""

import hashlib
from collections.abc import Awaitable, Callable

import msgspec

from brain.lanes import Parked
from gateway.broker.protocol import Broker
from gateway.journal import publish
from gateway.record import Undecodable

SUBJECT = "cmd.kept."
UNREAD = "unread"  # no conversation is called so: what cannot be read itself


class Kept:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def keep(self, name: str, data: bytes) -> None:
        """For the conversation of that name, or UNREAD. Raises Deposed."""
        await publish(self._broker, f"{SUBJECT}{name}", msgspec.Raw(data), hashlib.sha256(data).hexdigest())

    async def give(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        """In their order. What still cannot be taken (Parked, Undecodable) stays. Raises Unconfirmed."""
        for subject in await self._broker.subjects(f"{SUBJECT}>"):
            left, through = 0, 0
            for stored in await self._broker.read(subject):
                through = stored.sequence
                try:
                    await take(stored.data)
                except (Parked, Undecodable):
                    left = left or stored.sequence
            await self._broker.purge(subject, left or through + 1, whole=True)


__all__ = ["SUBJECT", "UNREAD", "Kept"]
