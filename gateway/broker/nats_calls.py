"""Calls to a NATS server, and messages pulled from it: what is lost is told from what is refused.

nats-py waits with `asyncio.wait_for`, and Python 3.11's swallows a cancellation that meets an answer. So no caller of
ours ever waits inside nats-py: each call runs to its end in a task of its own, and each message comes by a queue.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from gateway.broker.protocol import Stale, Unconfirmed
from gateway.record import encode

T = TypeVar("T")

CALL_SECONDS = 2.0
WRONG_LAST_SEQUENCE = (10071, 10164)  # of this subject; the second where the answer does not name the sequence

# A timeout, a cut, a server that starts, a disk that is full (503): stored, or not, or it will yet be.
LOST = (
    nats.errors.TimeoutError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.ConnectionDrainingError,
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.StaleConnectionError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.ServerError,
    nats.js.errors.ServiceUnavailableError,
    OSError,
)


async def whole(call: Coroutine[Any, Any, T]) -> T:
    """Runs a call to its end, also when who asked for it is cancelled meanwhile."""
    task = asyncio.ensure_future(call)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def ask(call: Coroutine[Any, Any, T], about: str) -> T:
    """Raises Stale, Unconfirmed, or what else the server answered."""
    try:
        return await whole(call)
    except LOST as error:
        raise Unconfirmed(f"{about}: {type(error).__name__} {error}") from error
    except nats.js.errors.APIError as error:
        if error.err_code in WRONG_LAST_SEQUENCE:
            raise Stale(f"{about}: {error.description}") from error
        raise


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
