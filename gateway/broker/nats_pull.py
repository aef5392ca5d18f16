"""Messages of a pull consumer as they are asked for, and the replay of all that a stream has of a subject."""

import asyncio
import uuid
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from gateway.broker.nats_calls import CALL_SECONDS, ask, whole
from gateway.broker.protocol import Unconfirmed
from gateway.record import encode

BATCH, BATCH_BYTES = 1000, 8 * 1024 * 1024  # of a replay


class Ended(Exception):
    """The server has ended the request; `status` is its code: 404 and 408 say that there is nothing (more)."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class Pull:
    """Messages of one pull consumer, as they are asked for.

    https://docs.nats.io/reference/reference-protocols/nats_api_reference (CONSUMER.MSG.NEXT)
    """

    def __init__(self, client: Client, stream: str, consumer: str) -> None:
        self._client = client
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = client.new_inbox()
        self._came: asyncio.Queue[Msg | None] = asyncio.Queue()  # bounded by what is asked for
        self._subscription: Subscription | None = None

    async def open(self) -> None:
        async def came(message: Msg) -> None:
            self._came.put_nowait(message)

        self._subscription = await self._client.subscribe(self._inbox, cb=came)

    async def request(self, batch: int, **how: Any) -> None:
        """`expires` is in nanoseconds."""
        await self._client.publish(self._subject, encode({"batch": batch, **how}), self._inbox)

    def wake(self) -> None:
        """The connection is a new one: whatever was asked for on the old one is forgotten."""
        self._came.put_nowait(None)

    async def next(self, seconds: float) -> Msg | None:
        """None when nothing came in that time, or the connection is a new one. Raises Ended."""
        try:
            message = self._came.get_nowait()
        except asyncio.QueueEmpty:
            try:
                async with asyncio.timeout(seconds):
                    message = await self._came.get()
            except TimeoutError:
                return None
        if message is not None and not message.reply.startswith("$JS.ACK."):
            headers = message.headers or {}
            raise Ended(headers.get("Status", "?"), headers.get("Description", ""))
        return message

    async def close(self) -> list[Msg]:
        """What had come and was not taken."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not self._client.is_closed:
            await whole(subscription.unsubscribe())
        left = [self._came.get_nowait() for _ in range(self._came.qsize())]
        return [message for message in left if message is not None and message.reply.startswith("$JS.ACK.")]


async def replay(
    client: Client, js: JetStreamContext, stream: str, subject: str, after: int, limit: int | None
) -> list[Msg]:
    """All that is there now, or at least the first `limit`, from the stream's leader. Raises Unconfirmed."""
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
    await ask(js.add_consumer(stream, config), subject)
    pull = Pull(client, stream, name)
    found: list[Msg] = []
    try:
        await ask(pull.open(), subject)
        while await _batch(pull, found, subject, min(BATCH, limit or BATCH)):
            if limit is not None and len(found) >= limit:
                break
    finally:
        await pull.close()
    return found


async def _batch(pull: Pull, found: list[Msg], subject: str, many: int) -> bool:
    """False when there is no more."""
    await ask(pull.request(many, max_bytes=BATCH_BYTES, no_wait=True), subject)
    try:
        for _ in range(many):
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
