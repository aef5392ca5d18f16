"""Holding something: a lease kept alive for liveness, and its local deadline before every effect.

A role (an account, the brain, the actors of a machine) runs under `supervise` for as long as the process lives.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.broker.protocol import Broker, BrokerUnusable, Deposed, Lease, Unconfirmed
from gateway.clock import boot_seconds
from gateway.record import Undecodable

E = TypeVar("E", bound=BaseException)

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 30.0
DEPOSED_PAUSE_SECONDS = 1.0
MEND = "Start the version that wrote it, or restore a backup; until then it is left alone."
HEALTHY_SECONDS = 60.0  # a round that lasted so long begins the back-off anew


class CannotServe(Exception):
    """A role cannot do its work, and starting it again will not help: the process ends and says what to mend."""


class Guard:
    """What stands before every effect of a holder."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease

    def holds(self) -> bool:
        return boot_seconds() < self.lease.deadline

    def check(self) -> None:
        if boot_seconds() >= self.lease.deadline:
            raise Deposed("the lease ran out here: no effect may leave")


Role = Callable[[Guard], Awaitable[None]]


async def hold(broker: Broker, key: str, ttl_seconds: float, work: Role, waited: asyncio.Event) -> None:
    """Waits for the lease, then runs `work` while it lasts. Raises Deposed (in a group) when it is lost.

    `waited` is set if another process had it."""
    lease = await _leased(broker, key, ttl_seconds, waited)
    log.info("%s: held here", key)
    await while_held(lease, ttl_seconds, work)


async def while_held(lease: Lease, ttl_seconds: float, work: Role) -> None:
    """Renews it until the work is done, then releases it. Raises Deposed (in a group) when it is lost."""
    try:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(_renew(lease, ttl_seconds))
            await work(Guard(lease))
            renewing.cancel()
    finally:
        await asyncio.shield(asyncio.ensure_future(lease.release()))


async def _leased(broker: Broker, key: str, ttl_seconds: float, waited: asyncio.Event) -> Lease:
    holder = uuid.uuid4().hex  # of this incarnation: a worker's name can come back, or exist twice
    said = ""
    while True:
        try:
            if (lease := await broker.lease(key, holder, ttl_seconds)) is not None:
                return lease
            waited.set()
            why = "another process has it; standing by"
        except Unconfirmed as error:
            why = f"the broker does not say who has it ({error}); asking again"
        if why != said:
            log.info("%s: %s", key, why)
        said = why
        await asyncio.sleep(ttl_seconds / 10)


async def _renew(lease: Lease, ttl_seconds: float) -> None:
    while True:
        await asyncio.sleep(ttl_seconds / 4)
        try:
            await lease.renew()
        except Unconfirmed as error:
            if boot_seconds() >= lease.deadline:
                raise Deposed(f"the lease could not be renewed in time ({error})") from None


async def supervise(broker: Broker, key: str, ttl_seconds: float, work: Role) -> None:
    """A role for as long as the process lives: standby, holder, deposed or failed, standby again with back-off.

    Raises BrokerUnusable when that is why it failed, and CannotServe; but what stood by tries again, as the process
    from which it took over may be frozen on this machine, with all that it had open.

    Each round is a task of its own. Python 3.11's TaskGroup drops a cancellation that meets an error, and leaves
    `cancelling()` at 1 after an ordinary one, so neither can be asked here.
    """
    pause, waited = FIRST_PAUSE_SECONDS, asyncio.Event()
    while True:
        began = boot_seconds()
        turn = asyncio.create_task(hold(broker, key, ttl_seconds, work, waited), name=f"hold {key}")
        try:
            await asyncio.wait({turn})
        finally:
            turn.cancel()
            await asyncio.wait({turn})
            error = None if turn.cancelled() else turn.exception()
        hopeless = _hopeless(error)
        if hopeless and not (waited.is_set() and isinstance(hopeless, CannotServe)):
            raise hopeless
        if boot_seconds() - began > HEALTHY_SECONDS:
            pause = FIRST_PAUSE_SECONDS
        deposed = _deposed(error)
        if hopeless:
            log.error("%s cannot be served here, and is tried again in %.1f s: %s", key, pause, hopeless)
        elif unreadable := _found(error, Undecodable):
            log.error("%s cannot be opened, and is tried again in %.1f s: %s. %s", key, pause, unreadable, MEND)
        elif deposed:
            log.warning("%s stopped and starts again in %.1f s: %s", key, pause, _why(error))
        else:
            log.error("%s stopped and starts again in %.1f s", key, pause, exc_info=error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, DEPOSED_PAUSE_SECONDS if deposed else LONGEST_PAUSE_SECONDS)


def _deposed(error: BaseException | None) -> bool:
    """It lost what it held, and nothing else is wrong: waiting for the lease is pause enough."""
    if isinstance(error, BaseExceptionGroup):
        return all(_deposed(inner) for inner in error.exceptions)
    return isinstance(error, Deposed | Unconfirmed)


def _why(error: BaseException | None) -> str:
    """Once each, as several parts of a role notice the same."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_why(inner) for inner in error.exceptions))
    return str(error)


def _hopeless(error: BaseException | None) -> CannotServe | BrokerUnusable | None:
    return _found(error, CannotServe) or _found(error, BrokerUnusable)


def _found(error: BaseException | None, kind: type[E]) -> E | None:
    """In a group too."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := _found(inner, kind))), None)
    return error if isinstance(error, kind) else None
