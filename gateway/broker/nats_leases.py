"""Leases and claims in a key-value bucket of JetStream: compare-and-set, and a time to live that the server keeps.

    lease.<key>   the nonce of its holder; gone when it is not renewed in time
    claim.<key>   "<lease key> <nonce>": good for as long as that very lease is; taken over only when it is gone

So a process renews one lease, however many things it has claimed under it. A time to live counts whole seconds.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from gateway.broker.nats_calls import CALL_SECONDS, ask
from gateway.broker.protocol import Claim, Deposed, Stale, Unconfirmed
from gateway.clock import boot_seconds
from gateway.record import Record

MARKER_SECONDS = 1  # how long it is still written down that a key was let go
NEW_LAST = "Nats-Expected-Last-Subject-Sequence"


class Kept(Record, frozen=True, kw_only=True):
    """What stands under a key. `value` is empty when it was let go."""

    revision: int
    value: str


class Bucket:
    """`scan` gives all messages of a subject, the newest of each key."""

    def __init__(self, js: JetStreamContext, name: str, scan: Callable[[str, str], Awaitable[list[Msg]]]) -> None:
        self._js, self._scan = js, scan
        self._stream, self._subjects = f"KV_{name}", f"$KV.{name}."

    async def get(self, key: str) -> Kept | None:
        """Asked of the leader. Raises Unconfirmed."""
        call = self._js.get_msg(self._stream, subject=self._subjects + key, direct=False)
        try:
            found = await ask(call, key)
        except NotFoundError:
            return None
        let_go = (found.headers or {}).get("KV-Operation") is not None
        return Kept(revision=found.seq or 0, value="" if let_go else (found.data or b"").decode())

    async def put(self, key: str, value: str, last: int, ttl_seconds: float | None = None) -> int:
        """If the key still is at that revision. Raises Stale or Unconfirmed."""
        headers = {NEW_LAST: str(last)} | ({} if value else {"KV-Operation": "DEL"})
        timeout = (
            min(max(ttl_seconds / 4, 0.25), CALL_SECONDS) if ttl_seconds else None
        )  # it can be tried again in time
        ttl = ttl_seconds if value else MARKER_SECONDS
        call = self._js.publish(self._subjects + key, value.encode(), timeout=timeout, headers=headers, msg_ttl=ttl)
        return (await ask(call, key)).seq

    async def all(self) -> dict[str, str]:
        """Key to value, of what is held."""
        found = await self._scan(self._stream, f"{self._subjects}>")
        kept = {message.subject.removeprefix(self._subjects): message for message in found}
        return {key: message.data.decode() for key, message in kept.items() if message.data}

    # --- what stands in it -------------------------------------------------------------------------------------------

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> "NatsLease | None":
        """None while another holds it. Raises Unconfirmed."""
        lease = NatsLease(self, key, holder, ttl_seconds)
        found = None
        try:
            await lease.take(0)
            return lease
        except Stale:
            found = await self.get(f"lease.{key}")
        if found is None or found.value not in ("", holder):
            return None
        try:
            await lease.take(found.revision)  # let go, or our own whose answer was lost
        except Stale:
            return None
        return lease

    async def claim(self, key: str, lease: "NatsLease") -> bool:
        """Raises Unconfirmed."""
        value = f"{lease.key} {lease.holder}"
        for _ in range(2):  # the second time when it was let go meanwhile
            found = await self.get(f"claim.{key}")
            if found is not None and found.value == value:
                return True
            if found is not None and found.value and await self._lives(found.value):
                return False
            try:
                await self.put(f"claim.{key}", value, found.revision if found else 0)
            except Stale:
                continue
            return True
        return False

    async def disclaim(self, key: str, lease: "NatsLease") -> None:
        """Raises Unconfirmed."""
        found = await self.get(f"claim.{key}")
        if found is not None and found.value == f"{lease.key} {lease.holder}":
            try:
                await self.put(f"claim.{key}", "", found.revision)
            except Stale:
                return

    async def _lives(self, claim: str) -> bool:
        key, _, holder = claim.partition(" ")
        found = await self.get(f"lease.{key}")
        return found is not None and found.value == holder

    async def claims(self) -> dict[str, Claim]:
        found = await self.all()
        leases = {key.removeprefix("lease."): value for key, value in found.items() if key.startswith("lease.")}
        made = {}
        for key, value in found.items():
            if key.startswith("claim."):
                lease, _, holder = value.partition(" ")
                made[key.removeprefix("claim.")] = Claim(lease=lease, alive=leases.get(lease) == holder)
        return made


class NatsLease:
    def __init__(self, bucket: Bucket, key: str, holder: str, ttl_seconds: float) -> None:
        self.key, self.holder = key, holder
        self.deadline = 0.0
        self._bucket, self._ttl_seconds, self._revision = bucket, ttl_seconds, 0

    async def take(self, revision: int) -> None:
        """Raises Stale or Unconfirmed."""
        sent = boot_seconds()
        self._revision = await self._bucket.put(f"lease.{self.key}", self.holder, revision, self._ttl_seconds)
        self.deadline = sent + self._ttl_seconds

    async def renew(self) -> None:
        """After a renewal whose answer was lost the revision is not what we think: look, and adopt our own."""
        try:
            await self.take(self._revision)
        except Stale:
            found = await self._bucket.get(f"lease.{self.key}")
            if found is None or found.value != self.holder:
                self.deadline = 0.0
                raise Deposed(f"the lease {self.key} has run out, or has another holder") from None
            try:
                await self.take(found.revision)
            except Stale:
                self.deadline = 0.0
                raise Deposed(f"the lease {self.key} has another holder") from None

    async def release(self) -> None:
        """What stands in the way only costs the next one its wait."""
        if boot_seconds() < self.deadline:
            with suppress(Stale, Unconfirmed):
                await self._bucket.put(f"lease.{self.key}", "", self._revision)
        self.deadline = 0.0
