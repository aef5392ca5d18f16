"""Calls to a NATS server: each runs to its end, and what is lost is told from what is refused.

nats-py waits with `asyncio.wait_for`, and Python 3.11's swallows a cancellation that meets an answer. So no caller of
ours ever waits inside nats-py: each call is a task of its own, and messages come by a queue (nats_pull.py).
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext

from gateway.broker.protocol import Stale, Unconfirmed

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


async def overwrite(js: JetStreamContext, stream: str, sequence: int) -> None:
    """For what is to be erased: as `no_erase` is not asked for, the server puts random bytes in its place."""
    with suppress(nats.js.errors.NotFoundError):
        await ask(js.delete_msg(stream, sequence), stream)
