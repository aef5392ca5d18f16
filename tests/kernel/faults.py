"""Where a fault can strike: before and after every effect of one simulated process.

A Gate stands for a process. Once it is dead nothing passes it again, and whoever waits there waits until the process is
cleared away. Nothing here knows what a fault ought to lead to.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from gateway.broker.protocol import Broker, Delivery, Lease, Stored, Unconfirmed

LATE_SECONDS = 0.03
TRIES = {"outage": 3, "deposed": 9}  # of one label, one after the other; the last is more than a holder bears
ANSWERED = ("append", "ack", "renew", "lease", "read", "send", "confirm", "updates", "effect", "purge")

Mode = Literal["crash", "lost", "late", "outage", "deposed"]
When = Literal["before", "after"]
_TYPE = re.compile(rb'"type":"(\w+)"')


@dataclass(frozen=True, slots=True)
class Fault:
    label: str
    occurrence: int
    when: When
    mode: Mode


class Gate:
    """`counts` are the points that were passed; `chaos` also delays at random."""

    def __init__(self, fault: Fault | None = None, chaos: random.Random | None = None) -> None:
        self.fault, self.chaos = fault, chaos
        self.strikes = 0  # how often its fault struck
        self.held: Counter[str] = Counter()  # how often each lease was got
        self.died = asyncio.Event()
        self._cleared = asyncio.Event()
        self.counts: Counter[tuple[str, When]] = Counter()

    @property
    def dead(self) -> bool:
        return self.died.is_set()

    @property
    def lapses(self) -> int:
        """Leases that were lost in a life and got again: by a fault, or as the machine was too slow to renew them."""
        return sum(times - 1 for times in self.held.values())

    def die(self) -> None:
        self.died.set()

    def clear(self) -> None:
        """Whoever waits here, or comes here yet, is cancelled."""
        self._cleared.set()

    async def run(self, label: str, effect: Callable[[], Awaitable[Any]], lost: type[Exception] | None = None) -> Any:
        """`lost` is what the caller is told when the answer does not come; None where an answer cannot be lost."""
        await self.point(label, "before", effect, lost)
        result = await effect()
        await self.point(label, "after", effect, lost)
        return result

    async def point(
        self,
        label: str,
        when: When,
        effect: Callable[[], Awaitable[Any]] | None = None,
        lost: type[Exception] | None = None,
    ) -> None:
        if self.chaos is not None:
            await self._dawdle(self.chaos)
        await self.alive()
        fault = self._strikes(label, when)
        if fault is None:
            return
        if fault.mode == "crash":
            self.die()
        elif lost is not None:
            if fault.mode == "late" and effect is not None:
                _later(effect)
            raise lost(f"{fault}")
        await self.alive()

    def passes(self, label: str, when: When) -> bool:
        """The same for what does not wait: whether it happens."""
        if self.dead:
            return False
        fault = self._strikes(label, when)
        if fault is not None and fault.mode == "crash":
            self.die()
        return not self.dead

    async def alive(self) -> None:
        """Dead, nobody comes back from here until the process is cleared away."""
        if self.dead:
            await self._cleared.wait()
            raise asyncio.CancelledError

    def _strikes(self, label: str, when: When) -> Fault | None:
        self.counts[label, when] += 1
        fault, nth = self.fault, self.counts[label, when]
        if fault is None or (fault.label, fault.when) != (label, when):
            return None
        if not fault.occurrence <= nth < fault.occurrence + TRIES.get(fault.mode, 1):
            return None
        self.strikes += 1
        return fault

    async def _dawdle(self, chaos: random.Random) -> None:
        for _ in range(chaos.choice((0, 0, 1, 3))):
            await asyncio.sleep(0)
        if chaos.random() < 0.1:
            await asyncio.sleep(chaos.random() * 0.02)


_late: set[asyncio.Task[None]] = set()


def _later(effect: Callable[[], Awaitable[Any]]) -> None:
    """It was on its way when its sender gave up."""

    async def arrive() -> None:
        await asyncio.sleep(LATE_SECONDS)
        try:
            await effect()
        except Exception:  # noqa: BLE001 - nobody waits for it any more
            return

    task = asyncio.get_running_loop().create_task(arrive())
    _late.add(task)
    task.add_done_callback(_late.discard)


def kind(data: bytes) -> str:
    found = _TYPE.search(data)
    return found[1].decode() if found else "?"


def family(subject: str) -> str:
    return ".".join(subject.split(".")[:2]) + ("(child)" if "--" in subject else "")


class FaultyBroker:
    """A process's side of the broker."""

    def __init__(self, inner: Broker, gate: Gate) -> None:
        self._inner, self._gate = inner, gate

    async def append(self, subject: str, data: bytes, *, msg_id: str, expect_last: int | None = None) -> int:
        async def effect() -> int:
            return await self._inner.append(subject, data, msg_id=msg_id, expect_last=expect_last)

        done: int = await self._gate.run(f"append {family(subject)} {kind(data)}", effect, Unconfirmed)
        return done

    async def read(self, subject: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        effect = lambda: self._inner.read(subject, after, limit)  # noqa: E731
        found: list[Stored] = await self._gate.run(f"read {family(subject)}", effect, Unconfirmed)
        return found

    async def purge(self, subject: str, below: int, *, whole: bool = False) -> None:
        effect = lambda: self._inner.purge(subject, below, whole=whole)  # noqa: E731
        await self._gate.run(f"purge {family(subject)}", effect, Unconfirmed)

    async def subjects(self, pattern: str) -> list[str]:
        found: list[str] = await self._gate.run(f"subjects {pattern}", lambda: self._inner.subjects(pattern))
        return found

    async def consume(self, subject: str, durable: str) -> AsyncIterator[Delivery]:
        async for delivery in self._inner.consume(subject, durable):
            await self._gate.point(f"deliver {durable} {kind(delivery.stored.data)}", "after")
            yield FaultyDelivery(delivery, self._gate, durable)

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> Lease | None:
        effect = lambda: self._inner.lease(key, holder, ttl_seconds)  # noqa: E731
        lease = await self._gate.run(f"lease {key}", effect, Unconfirmed)
        if lease is None:
            return None
        self._gate.held[key] += 1
        return FaultyLease(lease, self._gate, key)

    async def put_blob(self, data: bytes) -> str:
        digest: str = await self._gate.run("put a blob", lambda: self._inner.put_blob(data), Unconfirmed)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        data: bytes = await self._gate.run("get a blob", lambda: self._inner.get_blob(digest), Unconfirmed)
        return data

    def signal(self, subject: str, data: bytes) -> None:
        if not self._gate.dead:
            self._inner.signal(subject, data)

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        return self._inner.watch(subject, heard)

    async def close(self) -> None:
        await self._inner.close()


class FaultyDelivery:
    def __init__(self, inner: Delivery, gate: Gate, durable: str) -> None:
        self._inner, self._gate, self._durable = inner, gate, durable

    @property
    def stored(self) -> Stored:
        return self._inner.stored

    async def ack(self) -> None:
        await self._gate.run(f"ack {self._durable} {kind(self.stored.data)}", self._inner.ack, Unconfirmed)


class FaultyLease:
    def __init__(self, inner: Lease, gate: Gate, key: str) -> None:
        self._inner, self._gate, self._key = inner, gate, key

    @property
    def deadline(self) -> float:
        return self._inner.deadline

    async def renew(self) -> None:
        await self._gate.run(f"renew {self._key}", self._inner.renew, Unconfirmed)

    async def release(self) -> None:
        if not self._gate.dead:
            await self._inner.release()
