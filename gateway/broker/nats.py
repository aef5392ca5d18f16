"""The broker over NATS JetStream, for several processes or machines: streams, a bucket of leases, an object store.

Reads go to the stream's leader: a follower that lags would hide our own entry from us. A lost connection makes every
call Unconfirmed after CALL_SECONDS, and comes back by itself. What a consumer has in hand is extended for as long as
its process runs: after a crash it comes again within ACK_WAIT_SECONDS.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import APIError, NotFoundError

from gateway.addresses import journal_key
from gateway.broker import nats_streams as streams
from gateway.broker.nats_blobs import NatsBlobs
from gateway.broker.nats_calls import CALL_SECONDS, LOST, ask, overwrite
from gateway.broker.nats_connection import CONNECT_SECONDS, Connection
from gateway.broker.nats_consumers import Consumer, NatsDelivery
from gateway.broker.nats_leases import NEW_LAST, Bucket, NatsLease
from gateway.broker.nats_pull import Pull, replay
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

ACK_WAIT_SECONDS = 2.0
MANY = 64  # outstanding deliveries of `consume_many`
SINGLE_READS = 3  # a short tail is fetched entry by entry, without a consumer
SIGNALS = 1000  # not yet on their way; more are lost
OLDEST_SERVER = (2, 11)  # times to live of single messages


class JetStreamBroker:
    """Made by `connect`. `window` has the server drop repeated appends while it remembers them; nothing leans on it."""

    def __init__(self, connection: Connection, prefix: str, *, ack_wait_seconds: float, window: bool) -> None:
        self._connection, self._client, self._prefix = connection, connection.client, prefix
        connection.on_back = self._connected_again
        self._ack_wait_seconds, self._window = ack_wait_seconds, window
        self._js: JetStreamContext = self._client.jetstream(timeout=CALL_SECONDS)
        self._blobs = NatsBlobs(self._client, self._js, prefix)
        self._bucket = Bucket(self._js, f"{prefix}-leases", self._replay)
        self._pulls: set[Pull] = set()
        self._consumers: dict[str, Consumer] = {}
        self._signals = Signals()
        self._outbound: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(SIGNALS)
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
        connection = Connection(url)
        await connection.open(connect_seconds, **options)
        broker = cls(connection, prefix, ack_wait_seconds=ack_wait_seconds, window=window)
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
        await self._client.subscribe(f"{self._prefix}.live.>", cb=self._heard)
        await self._client.flush()

    def _stream(self, subject: str) -> str:
        return f"{self._prefix}-{subject.partition('.')[0]}"

    def _outer(self, subject: str) -> str:
        return f"{self._prefix}.{subject}"

    def _stored(self, subject: str, sequence: int, data: bytes) -> Stored:
        return Stored(subject=subject.removeprefix(f"{self._prefix}."), sequence=sequence, data=data)

    def _connected_again(self) -> None:
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

    async def read(self, subject: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        """First the last entry, asked of the leader: it says how far the reading must go."""
        stream, outer = self._stream(subject), self._outer(subject)
        found: list[Stored] = []
        through = await self._last(subject)
        for _ in range(SINGLE_READS):
            if through <= after or len(found) == limit:
                return found
            try:
                one = await ask(self._js.get_msg(stream, seq=after + 1, subject=outer, next=True), subject)
            except NotFoundError:
                return found
            found.append(self._stored(one.subject or "", one.seq or 0, one.data or b""))
            after = found[-1].sequence
        if through <= after:
            return found
        for message in await self._replay(stream, outer, after, limit):
            found.append(self._stored(message.subject, message.metadata.sequence.stream, message.data))
        if limit is not None and len(found) >= limit:
            return found[:limit]
        if found[-1].sequence < through and await self._last(subject) >= through:  # else it was purged meanwhile
            raise Unconfirmed(f"{subject}: read up to {found[-1].sequence} of {through}")
        return found

    async def _last(self, subject: str) -> int:
        """The sequence of its newest entry, by the leader; 0 for none."""
        try:
            return (
                await ask(self._js.get_msg(self._stream(subject), subject=self._outer(subject), direct=False), subject)
            ).seq or 0
        except NotFoundError:
            return 0

    async def _replay(self, stream: str, subject: str, after: int = 0, limit: int | None = None) -> list[Msg]:
        return await replay(self._client, self._js, stream, subject, after, limit)

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

    async def purge(self, subject: str, below: int, *, whole: bool = False) -> None:
        stream, outer = self._stream(subject), self._outer(subject)
        if whole:
            await ask(self._js.purge_stream(stream, seq=below, subject=outer), subject)
            return
        if (below := min(below, await self._last(subject))) > 0:
            await ask(self._js.purge_stream(stream, seq=below, subject=outer), subject)

    # --- consumers ---------------------------------------------------------------------------------------------------

    def consume(self, subject: str, durable: str) -> AsyncIterator[NatsDelivery]:
        return self._consume(subject, durable, 1)

    def consume_many(self, subject: str, durable: str) -> AsyncIterator[NatsDelivery]:
        return self._consume(subject, durable, MANY)

    async def _consume(self, subject: str, durable: str, outstanding: int) -> AsyncIterator[NatsDelivery]:
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
        self._connection.check()
        return await self._bucket.lease(key, holder, ttl_seconds)

    async def held(self) -> list[str]:
        return [key.removeprefix("lease.") for key in await self._bucket.all() if key.startswith("lease.")]

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
        return await self._blobs.put(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._blobs.get(digest)

    async def blobs(self) -> list[str]:
        return await self._blobs.all()

    async def forget_blob(self, digest: str) -> None:
        await self._blobs.forget(digest)

    # --- erasure -----------------------------------------------------------------------------------------------------

    async def erase(self, stored: Stored) -> None:
        """For what a person said: it is gone, and its place on the disk is overwritten. Raises Unconfirmed."""
        await overwrite(self._js, self._stream(stored.subject), stored.sequence)

    async def taken_through(self, family: str) -> dict[str, int]:
        """Of each pattern of that family that somebody consumes: up to where all is acknowledged."""
        stream = f"{self._prefix}-{family}"
        found = await ask(self._js.consumers_info(stream), stream)
        return {
            self._stored(one.config.filter_subject or "", 0, b"").subject: one.ack_floor.stream_seq
            for one in found
            if one.config.durable_name and one.ack_floor
        }

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
        self._signalling.cancel()
        for consumer in list(self._consumers.values()):
            await consumer.close()
        await self._connection.close()


def window_id(subject: str, msg_id: str) -> str:
    """By which the server knows a repeated append: of the subject too, as its window is the whole stream's."""
    return hashlib.blake2b(f"{subject} {msg_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


async def _api(js: JetStreamContext, what: str, request: dict[str, Any]) -> dict[str, Any]:
    """A call of JetStream's API that nats-py has only in part."""
    return await js._api_request(f"$JS.API.{what}", json.dumps(request).encode(), timeout=CALL_SECONDS)
