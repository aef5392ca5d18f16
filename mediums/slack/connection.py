"""One connection in Socket Mode, through slack_sdk, from Slack's greeting to its end.
https://docs.slack.dev/apis/events-api/using-socket-mode"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from mediums.slack.failures import CallFailed, Disconnected, Failure, Unreachable
from mediums.slack.pace import Pace
from mediums.slack.sessions import session, unreachable
from mediums.slack.words import Payload

log = logging.getLogger(__name__)

WAITING = 1000  # envelopes of all connections; one beyond is left unconfirmed, and Slack sends it again


@dataclass(frozen=True, slots=True)
class Envelope:
    """One delivery: https://docs.slack.dev/apis/events-api/using-socket-mode#events"""

    kind: str
    payload: Payload
    acknowledge: Callable[[], Awaitable[None]]


Envelopes = asyncio.Queue[Envelope]


class Connection(SocketModeClient):
    """One socket, from Slack's greeting to its end, which `over` tells; another is for others to open.

    The library's own reconnecting closes the old connection before it opens the next, tries a refused token for ever,
    and tells nobody; so what it would reconnect for is only told here.
    """

    def __init__(self, app_token: str, web: AsyncWebClient, pace: Pace, envelopes: Envelopes) -> None:
        super().__init__(app_token, logger=log, web_client=web, ping_interval=pace.ping_seconds)
        self.proxy = None
        self.over: asyncio.Future[Disconnected] = asyncio.get_running_loop().create_future()
        self._greeted = asyncio.Event()
        self._pace, self._envelopes = pace, envelopes

    async def open(self, address: str) -> None:
        """Once. Returns when Slack has greeted; raises CallFailed."""
        await self.aiohttp_client_session.close()
        self.aiohttp_client_session = session(None)
        failure: Failure
        try:
            async with asyncio.timeout(self._pace.greeting_seconds):
                self.current_session = await self.aiohttp_client_session.ws_connect(
                    address, autoping=False, heartbeat=self.ping_interval
                )
                self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
                self.message_receiver = asyncio.ensure_future(self.receive_messages())
                await self._greeted.wait()
        except aiohttp.WSServerHandshakeError as error:  # its text holds the ticket
            failure = Unreachable(why=f"the connection was refused with HTTP {error.status}", left=False)
        except TimeoutError:
            failure = Unreachable(why=f"no greeting within {self._pace.greeting_seconds:g} s", left=True)
        except (aiohttp.ClientError, OSError) as error:
            failure = unreachable(error)
        else:
            if not (self.over.done() and not self.over.result().announced):
                return
            failure = self.over.result()
        raise CallFailed(failure) from None

    async def enqueue_message(self, message: str) -> None:
        """Each as it comes, in order: the library's queue hands each to a task of its own."""
        frame: Any = json.loads(message) if message.startswith("{") else {}
        match frame.get("type"):
            case "hello":
                self._greeted.set()
            case "disconnect":
                self._end(str(frame.get("reason", "closed")))
            case kind if "envelope_id" in frame:
                self._put(str(kind), str(frame["envelope_id"]), frame.get("payload") or {})

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """What the library calls when it finds the connection closed or silent."""
        error = self.current_session.exception() if self.current_session else None
        self._end("silent" if self.stale or isinstance(error, TimeoutError) else "closed")

    async def shut(self) -> None:
        """Within `pace.closing_seconds`, whether the other end answers or not. Raises nothing."""
        self.closed = True
        self._end("closed")
        tasks = [self.message_processor, self.current_session_monitor, self.message_receiver]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        if self.current_session is not None:
            with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
                async with asyncio.timeout(self._pace.closing_seconds):
                    await self.current_session.close()
        await self.aiohttp_client_session.close()

    def _put(self, kind: str, envelope: str, payload: Payload) -> None:
        async def acknowledge() -> None:
            """On a connection that is gone, nothing: Slack then sends it again."""
            if self.current_session is None or self.current_session.closed:
                return
            with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
                async with asyncio.timeout(self._pace.closing_seconds):
                    await self.send_socket_mode_response(SocketModeResponse(envelope_id=envelope))

        try:
            self._envelopes.put_nowait(Envelope(kind, payload, acknowledge))
        except asyncio.QueueFull:
            log.warning("more than %d events of Slack wait to be stored; it will send this one again", WAITING)

    def _end(self, reason: str) -> None:
        self._greeted.set()
        if not self.over.done():
            self.over.set_result(Disconnected(reason=reason))


def new_queue() -> Envelopes:
    return asyncio.Queue(WAITING)
