"""The broker over NATS JetStream, for several processes or machines: streams, a bucket of leases, an object store.

Reads go to the stream's leader: a follower that lags would hide our own entry from us. A lost connection makes every
call Unconfirmed after CALL_SECONDS, and comes back by itself. What a consumer has in hand is extended for as long as
its process runs: after a crash it comes again within ACK_WAIT_SECONDS.
"""

import asyncio
import hashlib
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NotFoundError
from nats.js.object_store import ObjectStore

from gateway.addresses import journal_key
from gateway.broker import nats_streams as streams
from gateway.broker.nats_calls import CALL_SECONDS, LOST, Ended, Pull, ask, whole
from gateway.broker.nats_leases import NEW_LAST, Bucket, NatsLease
from gateway.broker.protocol import (
    MAX_ENTRY_BYTES,
    BrokerUnusable,
    Claim,
    Lease,
    Misfiled,
    Stored,
    TooLarge,
    Unconfirmed,
)
from gateway.broker.signals import Signals

log = logging.getLogger(__name__)

ACK_WAIT_SECONDS = 2.0
PULL_SECONDS = 2.0  # how long a request for the next entry stands; one of a frozen process catches at most one entry
MANY = 64  # outstanding deliveries of `consume_many`
BATCH, BATCH_BYTES = 1000, 8 * 1024 * 1024  # of a replay
SINGLE_READS = 3  # a short tail is fetched entry by entry, without a consumer
BLOB_SECONDS = 60.0
SIGNALS = 1000  # not yet on their way; more are lost
OLDEST_SERVER = (2, 11)  # times to live of single messages
CONNECT_SECONDS, RECONNECT_SECONDS, PING_SECONDS = 5.0, 0.2, 5


class JetStreamBroker:
    """Made by `connect`. `window` has the server drop repeated appends while it remembers them; nothing leans on it."""

    def __init__(self, client: Client, prefix: str, *, ack_wait_seconds: float, window: bool) -> None:
        self._client, self._prefix = client, prefix
        self._ack_wait_seconds, self._window = ack_wait_seconds, window
        self._js: JetStreamContext = client.jetstream(timeout=CALL_SECONDS)
        self._bucket = Bucket(self._js, f"{prefix}-leases", self._scan)
        self._pulls: set[Pull] = set()
        self._consumers: dict[str, Consumer] = {}
        self._signals = Signals()
        self._outbound: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(SIGNALS)
        self.closing = False
        self._signalling = asyncio.create_task(self._signal_forever(), name="signals")

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        prefix: str = "frontdesk",
        ack_wait_seconds: float = ACK_WAIT_SECONDS,
        window: bool = True,
        connect_seconds: float = CONNECT_SECONDS,
        **options: Any,
    ) -> "JetStreamBroker":
        """`prefix` lets several assistants share a server; `options` are nats-py's, for credentials. Raises
        BrokerUnusable."""
        client, seen = Client(), Connection(url)
        try:
            async with asyncio.timeout(connect_seconds):
                await client.connect(
                    url,
                    name="frontdesk",
                    reconnect_time_wait=RECONNECT_SECONDS,  # type: ignore[arg-type]
                    max_reconnect_attempts=-1,
                    ping_interval=PING_SECONDS,
                    error_cb=seen.failed,
                    disconnected_cb=seen.lost,
                    reconnected_cb=seen.back,
                    **options,
                )
        except (*LOST, nats.errors.Error, TimeoutError) as error:
            await client.close()
            mend = "start nats-server there, or set [broker] url"
            raise BrokerUnusable(f"{url}: no NATS server answers ({seen.trouble or error}): {mend}.") from error
        broker = cls(client, prefix, ack_wait_seconds=ack_wait_seconds, window=window)
        seen.broker = broker
        try:
            await broker._prepare(url)
        except BaseException:
            await broker.close()
            raise
        return broker

    async def _prepare(self, url: str) -> None:
        version = self._client.connected_server_version
        if (version.major, version.minor) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise BrokerUnusable(f"{url}: nats-server {version.major}.{version.minor} is too old: {oldest} is needed.")
        try:
            await ask(self._js.account_info(), url)
            for family in streams.FAMILIES:
                await streams.prepare(self._js, streams.journals(self._prefix, family))
            await streams.prepare(self._js, streams.leases(self._prefix))
            await streams.prepare(self._js, streams.blobs(self._prefix))
        except (Unconfirmed, APIError) as error:
            mend = 'start it with "-js", or with a jetstream block in its configuration'
            raise BrokerUnusable(f"{url}: JetStream cannot be used there ({error}): {mend}.") from error
        self._blobs = ObjectStore(f"{self._prefix}-blobs", f"OBJ_{self._prefix}-blobs", self._js)
        await self._client.subscribe(f"{self._prefix}.live.>", cb=self._heard)
        await self._client.flush()

    def _stream(self, subject: str) -> str:
        return f"{self._prefix}-{subject.partition('.')[0]}"

    def _outer(self, subject: str) -> str:
        return f"{self._prefix}.{subject}"

    def _stored(self, subject: str, sequence: int, data: bytes) -> Stored:
        return Stored(subject=subject.removeprefix(f"{self._prefix}."), sequence=sequence, data=data)

    def connected_again(self) -> None:
        for pull in self._pulls:
            pull.wake()

    # --- entries -----------------------------------------------------------------------------------------------------

    async def append(self, subject: str, data: bytes, *, msg_id: str, expect_last: int | None = None) -> int:
        if len(data) > MAX_ENTRY_BYTES:
            raise TooLarge(f"{subject}: {len(data)} bytes, at most {MAX_ENTRY_BYTES}")
        headers = {} if expect_last is None else {NEW_LAST: str(expect_last)}
        if self._window:
            headers["Nats-Msg-Id"] = window_id(subject, msg_id)
        done = await ask(self._js.publish(self._outer(subject), data, headers=headers), subject)
        if done.duplicate:
            await self._check_duplicate(subject, done.seq, msg_id)
        return done.seq

    async def _check_duplicate(self, subject: str, sequence: int, msg_id: str) -> None:
        """The window is of the whole stream: what it takes for a copy of another subject's entry is not stored."""
        try:
            first = await ask(self._js.get_msg(self._stream(subject), seq=sequence), subject)
        except NotFoundError:  # compacted meanwhile
            return
        if first.subject != self._outer(subject):
            raise Misfiled(f"{subject}: the id {msg_id} was used on {first.subject} before, and this entry is dropped")

    async def read(self, subject: str, after: int = 0) -> list[Stored]:
        """First the last entry, asked of the leader: it says how far the reading must go."""
        stream, outer = self._stream(subject), self._outer(subject)
        found: list[Stored] = []
        try:
            through = (await ask(self._js.get_msg(stream, subject=outer, direct=False), subject)).seq or 0
            for _ in range(SINGLE_READS):
                if through <= after:
                    return found
                one = await ask(self._js.get_msg(stream, seq=after + 1, subject=outer, next=True), subject)
                found.append(self._stored(one.subject or "", one.seq or 0, one.data or b""))
                after = found[-1].sequence
        except NotFoundError:
            return found
        messages = await self._replay(stream, outer, after) if after < through else []
        for message in messages:
            found.append(self._stored(message.subject, message.metadata.sequence.stream, message.data))
        if found[-1].sequence < through:
            raise Unconfirmed(f"{subject}: read up to {found[-1].sequence} of {through}")
        return found

    async def _scan(self, stream: str, subject: str) -> list[Msg]:
        return await self._replay(stream, subject, 0)

    async def _replay(self, stream: str, subject: str, after: int) -> list[Msg]:
        """All that is there now. Raises Unconfirmed."""
        name = f"read-{uuid.uuid4().hex}"
        config = ConsumerConfig(
            name=name,
            filter_subject=subject,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=5 * CALL_SECONDS,
        )
        await ask(self._js.add_consumer(stream, config), subject)
        pull = Pull(self._client, stream, name)
        found: list[Msg] = []
        try:
            await ask(pull.open(), subject)
            while await self._replay_batch(pull, found, subject):
                pass
        finally:
            await pull.close()
        return found

    async def _replay_batch(self, pull: Pull, found: list[Msg], subject: str) -> bool:
        """False when there is no more."""
        await ask(pull.request(BATCH, max_bytes=BATCH_BYTES, no_wait=True), subject)
        try:
            for _ in range(BATCH):
                message = await pull.next(CALL_SECONDS)
                if message is None:
                    raise Unconfirmed(f"{subject}: the server stopped in the middle")
                found.append(message)
        except Ended as end:
            if end.status == "409":  # so many bytes are enough at once
                return True
            if end.status not in ("404", "408"):
                raise Unconfirmed(f"{subject}: {end}") from end
            return False
        return found[-1].metadata.num_pending > 0

    async def subjects(self, pattern: str) -> list[str]:
        found: list[str] = []
        stream, total = self._stream(pattern), 1
        while len(found) < total:  # the server lists so many at a time
            request = {"subjects_filter": self._outer(pattern), "offset": len(found)}
            answer = await ask(_api(self._js, f"STREAM.INFO.{stream}", request), pattern)
            names = answer["state"].get("subjects") or {}
            found += names
            total = answer.get("total", 0) if names else 0
        return sorted(self._stored(name, 0, b"").subject for name in found)

    async def purge(self, subject: str, below: int) -> None:
        stream, outer = self._stream(subject), self._outer(subject)
        try:
            last = (await ask(self._js.get_msg(stream, subject=outer, direct=False), subject)).seq or 0
        except NotFoundError:
            return
        if (below := min(below, last)) > 0:
            await ask(self._js.purge_stream(stream, seq=below, subject=outer), subject)

    # --- consumers ---------------------------------------------------------------------------------------------------

    def consume(self, subject: str, durable: str) -> AsyncIterator["NatsDelivery"]:
        return self._consume(subject, durable, 1)

    def consume_many(self, subject: str, durable: str) -> AsyncIterator["NatsDelivery"]:
        return self._consume(subject, durable, MANY)

    async def _consume(self, subject: str, durable: str, outstanding: int) -> AsyncIterator["NatsDelivery"]:
        stream, name = self._stream(subject), journal_key(durable)
        config = ConsumerConfig(
            name=name,
            durable_name=name,
            filter_subject=self._outer(subject),
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self._ack_wait_seconds,
            max_ack_pending=outstanding,
        )
        await ask(self._js.add_consumer(stream, config), durable)
        if (former := self._consumers.get(name)) is not None:
            await former.close()
        pull = Pull(self._client, stream, name)
        consumer = self._consumers[name] = Consumer(pull, self._ack_wait_seconds)
        self._pulls.add(pull)
        try:
            await ask(pull.open(), durable)
            while True:
                message = await consumer.next()
                stored = self._stored(message.subject, message.metadata.sequence.stream, message.data)
                yield consumer.give(message, stored)
        finally:
            self._pulls.discard(pull)
            await consumer.close()

    # --- leases ------------------------------------------------------------------------------------------------------

    async def lease(self, key: str, holder: str, ttl_seconds: float) -> NatsLease | None:
        return await self._bucket.lease(key, holder, ttl_seconds)

    async def claim(self, key: str, lease: Lease) -> bool:
        assert isinstance(lease, NatsLease)
        return await self._bucket.claim(key, lease)

    async def disclaim(self, key: str, lease: Lease) -> None:
        assert isinstance(lease, NatsLease)
        await self._bucket.disclaim(key, lease)

    async def claims(self) -> dict[str, Claim]:
        return await self._bucket.claims()

    # --- blobs -------------------------------------------------------------------------------------------------------

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        try:
            await ask(self._blobs.get_info(digest), digest)
        except NotFoundError:
            await ask(self._blobs.put(digest, data), digest)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            return (await ask(asyncio.wait_for(self._blobs.get(digest), BLOB_SECONDS), digest)).data or b""
        except NotFoundError:
            raise LookupError(f"there is no blob {digest}") from None

    # --- signals -----------------------------------------------------------------------------------------------------

    def signal(self, subject: str, data: bytes) -> None:
        with suppress(asyncio.QueueFull):
            self._outbound.put_nowait((f"{self._prefix}.live.{subject}", data))

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        return self._signals.watch(subject, heard)

    async def _signal_forever(self) -> None:
        while True:
            subject, data = await self._outbound.get()
            with suppress(*LOST):
                await self._client.publish(subject, data)

    async def _heard(self, message: Msg) -> None:
        self._signals.send(message.subject.removeprefix(f"{self._prefix}.live."), message.data)

    async def close(self) -> None:
        self.closing = True
        self._signalling.cancel()
        for consumer in list(self._consumers.values()):
            await consumer.close()
        with suppress(*LOST):
            await whole(self._client.flush(timeout=1))
        await whole(self._client.close())


class Connection:
    """Tells the operator once of each loss, and of each return."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.trouble = ""
        self.broker: JetStreamBroker | None = None

    async def failed(self, error: Exception) -> None:
        self.trouble = str(error) or type(error).__name__

    async def lost(self) -> None:
        if self.broker is not None and not self.broker.closing:
            log.warning("%s: the connection is lost; trying again", self._url)

    async def back(self) -> None:
        log.warning("%s: connected again", self._url)
        if self.broker is not None:
            self.broker.connected_again()


class Consumer:
    """One reader of a durable consumer: keeps what it has given out extended, and hands back what it did not finish."""

    def __init__(self, pull: Pull, ack_wait_seconds: float) -> None:
        self._pull, self._ack_wait_seconds = pull, ack_wait_seconds
        self._given: set[NatsDelivery] = set()
        self._asked = False  # a request stands
        self._closed = False
        self._extending = asyncio.create_task(self._extend_forever(), name="extend deliveries")

    async def next(self) -> Msg:
        """Raises Unconfirmed when the consumer is gone."""
        while not self._closed:
            if not self._asked:
                await ask(self._pull.request(1, expires=int(PULL_SECONDS * 1e9)), "consume")
            self._asked = True
            try:
                message = await self._pull.next(PULL_SECONDS + 0.5)
                self._asked = False
                if message is not None:
                    return message
            except Ended as end:
                self._asked = False
                if end.status == "503":  # a server that starts
                    await asyncio.sleep(RECONNECT_SECONDS)
                elif end.status not in ("404", "408"):
                    raise Unconfirmed(f"the consumer ended: {end}") from end
        raise Unconfirmed("somebody else in this process consumes under that name")

    def give(self, message: Msg, stored: Stored) -> "NatsDelivery":
        delivery = NatsDelivery(message, stored, self._given)
        self._given.add(delivery)
        return delivery

    async def _extend_forever(self) -> None:
        while True:
            await asyncio.sleep(self._ack_wait_seconds / 4)
            for delivery in list(self._given):
                with suppress(*LOST):
                    await delivery.message.in_progress()

    async def close(self) -> None:
        self._closed = True
        self._extending.cancel()
        left = [delivery.message for delivery in self._given]
        self._given.clear()
        with suppress(*LOST):
            left += await self._pull.close()
            for message in left:
                await message.nak()


class NatsDelivery:
    def __init__(self, message: Msg, stored: Stored, given: set["NatsDelivery"]) -> None:
        self.message, self.stored, self._given = message, stored, given

    async def ack(self) -> None:
        if self in self._given:
            self._given.discard(self)
            await ask(self.message.ack(), "ack")


def window_id(subject: str, msg_id: str) -> str:
    """By which the server knows a repeated append: of the subject too, as its window is the whole stream's."""
    return hashlib.blake2b(f"{subject} {msg_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


async def _api(js: JetStreamContext, what: str, request: dict[str, Any]) -> dict[str, Any]:
    """A call of JetStream's API that nats-py has only in part."""
    return await js._api_request(f"$JS.API.{what}", json.dumps(request).encode(), timeout=CALL_SECONDS)
