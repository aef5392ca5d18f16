"""A journal, its fold, and the one task that writes it.

`write(decide)` is the kernel's only primitive: `decide` is pure, is given the newest state at the moment of writing,
and answers with an entry, or with None to write nothing. So a condition ("not yet taken", "nothing new since", "still
pending") and its entry are one step, with no lock. Callers may be cancelled; the writer never is, except when its
holder stops. Now and then the writer adds a snapshot of the fold (`gateway.snapshots`).
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Generic

from gateway.broker.protocol import Broker, Deposed, Stale, TooLarge, Unconfirmed
from gateway.events import Ref
from gateway.folding import (
    Emitted,
    Folding,
    Follower,
    Outgoing,
    Owned,
    Released,
    S,
    State,
    fold,
    fold_all,
    fold_stored,
    forget_emitted,
    newest,
    stamped,
    unstamped,
)
from gateway.holding import Guard
from gateway.record import encode
from gateway.snapshots import Policy, cut

MAX_TRIES = 8  # of one append; then the holder stops, and the next one folds what is there
FIRST_PAUSE_SECONDS = 0.01
MAILBOX = 1000


class JournalClosed(Exception):
    """The journal's writer has ended, cleanly or not; whether the entry was stored shows when it is folded again."""


Decide = Callable[[S], Any]


class Journal(Generic[S]):
    """`entries` is the union of what this journal may hold, Owned, Released and Emitted included."""

    def __init__(
        self,
        broker: Broker,
        subject: str,
        state: S,
        entries: Any,
        guard: Guard,
        worker: str,
        policy: Policy | None = None,
    ) -> None:
        self.state = state
        self.subject = subject
        self._broker, self._guard, self._worker = broker, guard, worker
        self._folding = Folding(state, entries)
        self._policy = policy or Policy()
        self._tail = 0
        self._epoch = 0
        self._mail: asyncio.Queue[tuple[Decide[S], asyncio.Future[Any]]] = asyncio.Queue(MAILBOX)
        self._waiting: dict[asyncio.Future[None], Callable[[S], Any]] = {}
        self._closed = False

    @property
    def tail(self) -> int:
        """The sequence of the newest entry."""
        return self._tail

    async def open(self) -> None:
        """Folds, and owns: again and again, while the lease lasts, until it is accepted.

        Raises Deposed, Undecodable.
        """
        for pause in _pauses():
            nonce = secrets.token_hex(16)
            try:
                await self._catch_up(nonce, owning=True)
                self._guard.check()
                self._epoch += 1
                await self._append(nonce, Owned(worker=self._worker))
                return
            except (Stale, Unconfirmed):
                if await self._found(nonce, owning=True):
                    return
            await asyncio.sleep(pause)
        raise Deposed(f"could not own {self.subject}")

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write_forever(), name=f"write {self.subject}")
                group.create_task(self._beside(self._emit_forever()), name=f"emit {self.subject}")
                group.create_task(self._beside(self._snapshot_forever()), name=f"snapshot {self.subject}")
        finally:
            self._closed = True
            while not self._mail.empty():
                _, future = self._mail.get_nowait()
                _refuse(future, self.subject)

    async def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside the writer: that ends with it, and why is the writer's to say."""
        with contextlib.suppress(JournalClosed):
            await work

    async def release(self) -> bool:
        """After `run` has ended: says that the end was clean. An append that the end met in flight is folded first.

        What else stands in the way only costs that word, and the state may lag: then it answers with False.
        """
        try:
            await self._catch_up("")
            await self._append(secrets.token_hex(16), Released())
        except (Stale, Unconfirmed, Deposed):
            return False
        return True

    async def write(self, decide: Decide[S]) -> Any:
        """The entry once it is durable and folded, or None. A list of entries is written without another in between.

        Raises JournalClosed, TooLarge and what `decide` raises.
        """
        if self._closed:
            raise JournalClosed(self.subject)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._mail.put((decide, future))
        return await future

    async def until(self, ready: Callable[[S], Any]) -> S:
        while not ready(self.state):
            await self.when(ready)
        return self.state

    def when(self, ready: Callable[[S], Any]) -> asyncio.Future[None]:
        """Done once `ready` holds, which is asked now and at each entry: it only looks, and does not raise, as it runs
        in the writer. Who waits no longer cancels it."""
        folded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if ready(self.state):
            folded.set_result(None)
        else:
            self._waiting[folded] = ready
        return folded

    # --- the writer --------------------------------------------------------------------------------------------------

    async def _write_forever(self) -> None:
        while True:
            decide, future = await self._mail.get()
            try:
                entry = decide(self.state)
                for one in entry if isinstance(entry, list) else [] if entry is None else [entry]:
                    await self._write(one)
            except (Deposed, asyncio.CancelledError):
                _refuse(future, self.subject)
                raise
            except Exception as error:  # noqa: BLE001 - the caller's own error goes back to the caller
                if not future.done():
                    future.set_exception(error)
                continue
            if not future.done():
                future.set_result(entry)

    async def _write(self, entry: Any) -> None:
        """An append that did not arrive is repeated with the same fence: of its copies one can land."""
        nonce, tail = secrets.token_hex(16), self._tail
        for pause in _pauses():
            try:
                await self._append(nonce, entry)
                return
            except (Stale, Unconfirmed):
                if await self._found(nonce):
                    return
            if self._tail != tail:
                raise Deposed(f"{self.subject} has an entry of epoch {self._epoch} that this holder did not write")
            await asyncio.sleep(pause)
        raise Deposed(f"{self.subject} could not be written {MAX_TRIES} times: {type(entry).__name__}")

    async def _append(self, nonce: str, entry: Any) -> None:
        data = stamped(self._epoch, nonce, entry)
        sequence = await self._broker.append(self.subject, data, msg_id=nonce, expect_last=self._tail)
        self._fold(sequence, entry, len(data))

    async def _found(self, nonce: str, owning: bool = False) -> bool:
        try:
            return await self._catch_up(nonce, owning)
        except Unconfirmed:
            return False

    async def _catch_up(self, nonce: str, owning: bool = False) -> bool:
        """Folds what is past our tail; true when our own entry is in it. Raises Deposed at a higher epoch."""
        found = False
        unread = await self._broker.read(self.subject, after=self._tail)
        for stored in unread if self._tail else newest(unread):
            epoch, theirs, entry = self._folding.read(stored)
            if epoch > self._epoch and not owning:
                raise Deposed(f"{self.subject} is at epoch {epoch}, this holder at {self._epoch}")
            self._epoch = max(self._epoch, epoch)
            found = theirs == nonce or (found and not isinstance(entry, Owned))  # an Owned after ours unmakes it
            self._fold(stored.sequence, entry, len(stored.data))
        return found

    def _fold(self, sequence: int, entry: Any, size_bytes: int) -> None:
        self._tail = sequence
        self._folding.take(sequence, entry, size_bytes)
        self._wake()

    def _wake(self) -> None:
        for folded, ready in list(self._waiting.items()):
            if folded.cancelled():
                del self._waiting[folded]
            elif ready(self.state):
                del self._waiting[folded]
                folded.set_result(None)

    # --- snapshots ---------------------------------------------------------------------------------------------------

    async def snapshot(self) -> None:
        """The fold as it is when the writer comes to it."""
        await self.write(lambda state: list(cut(encode(state.freeze()))))

    async def _snapshot_forever(self) -> None:
        """When the policy says so and nobody writes, or after its patience. What cannot be written waits for more."""
        while True:
            await self.until(lambda _: self._folding.due(self._policy))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._policy.patience_seconds):
                    await self._quiet()
            await self.snapshot()

    async def _quiet(self) -> None:
        tail = None
        while tail != self._tail:
            tail = self._tail
            await asyncio.sleep(self._policy.quiet_seconds)

    # --- the emitter -------------------------------------------------------------------------------------------------

    async def _emit_forever(self) -> None:
        """In order, each confirmed before the next: the consumers' high-water marks rest on it."""
        while True:
            batch = list((await self.until(lambda state: state.outgoing)).outgoing)
            for outgoing in batch:
                await publish(self._broker, outgoing.subject, outgoing.body, str(outgoing.ref))
            through = batch[-1].ref
            await self.write(partial(_emitted, through))


def _refuse(future: asyncio.Future[Any], subject: str) -> None:
    if not future.done():
        future.set_exception(JournalClosed(subject))
        future.exception()  # whoever waited may be gone as well: nothing to warn about


def _emitted(through: Ref, _: Any) -> Emitted:
    return Emitted(through=through)


async def publish(broker: Broker, subject: str, body: Any, msg_id: str) -> None:
    """Unfenced: repeated until confirmed, so it may arrive more than once; its consumer dedupes. Raises Deposed."""
    why = ""
    for pause in _pauses():
        try:
            await broker.append(subject, encode(body), msg_id=msg_id)
            return
        except Unconfirmed as error:
            why = str(error)
            await asyncio.sleep(pause)
    raise Deposed(f"{subject} could not be published: the broker does not answer ({why})")


async def store_blob(broker: Broker, data: bytes) -> str:
    """Its digest; as `publish`. The same bytes twice are one blob."""
    why = ""
    for pause in _pauses():
        try:
            return await broker.put_blob(data)
        except Unconfirmed as error:
            why = str(error)
            await asyncio.sleep(pause)
    raise Deposed(f"a file could not be stored ({why})")


async def acknowledge(ack: Callable[[], Awaitable[None]]) -> None:
    """A lost ack costs a redelivery, which the fold recognises."""
    try:
        await ack()
    except Unconfirmed:
        return


def _pauses() -> list[float]:
    return [FIRST_PAUSE_SECONDS * 2**n for n in range(MAX_TRIES)]


__all__ = [
    "Emitted",
    "Follower",
    "Journal",
    "Outgoing",
    "Owned",
    "Released",
    "State",
    "TooLarge",
    "acknowledge",
    "fold",
    "fold_all",
    "fold_stored",
    "forget_emitted",
    "publish",
    "stamped",
    "unstamped",
]
