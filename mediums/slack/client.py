"""The calls of Slack that Frontdesk makes, and one connection in Socket Mode, through slack_sdk. The only module that
imports it: that costs 0.4 s, so the adapter does it when it connects.

slack_sdk's own repeating is off: it would post a message again whose answer was lost. No error's text or chain holds
a token or the ticket in a connection's address.
"""

import asyncio
import contextlib
import io
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from gateway.files import Attachment
from mediums.slack import words
from mediums.slack.failures import CONNECTING, CallFailed, Disconnected, Failure, Refusal, Unreachable, refusal
from mediums.slack.outgoing import PostMessage, Reaction, Upload
from mediums.slack.pace import Pace
from mediums.slack.words import Me, Payload, Profile

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
CALLS_AT_ONCE = 16
UPLOAD_SECONDS = 90.0
REDIRECTS = 4
WAITING = 1000  # envelopes of all connections; one beyond is left unconfirmed, and Slack sends it again

_NEVER_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)

for _name in ("slack_sdk", __name__):
    if logging.getLogger(_name).level == logging.NOTSET:  # else `gateway.logs` has decided, and hides the tokens
        logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Envelope:
    """One delivery: https://docs.slack.dev/apis/events-api/using-socket-mode#events"""

    kind: str
    payload: Payload
    acknowledge: Callable[[], Awaitable[None]]


Envelopes = asyncio.Queue[Envelope]


class Client:
    """All calls raise CallFailed, none later than `pace.call_seconds`."""

    def __init__(self, bot_token: str, app_token: str, api_base: str, pace: Pace) -> None:
        """`api_base` without a trailing slash."""
        self._bot_token, self._app_token, self._pace = bot_token, app_token, pace
        self._host = urlsplit(api_base).hostname
        self._session = _session(pace.call_seconds)
        self._web = AsyncWebClient(bot_token, f"{api_base}/", session=self._session, retry_handlers=[], logger=log)
        self._web.proxy = None  # aiohttp reads the environment itself, and NO_PROXY too

    async def me(self) -> Me:
        """https://docs.slack.dev/reference/methods/auth.test"""
        async with self._failing("auth.test"):
            answer = await self._web.auth_test()
            granted = answer.headers.get("x-oauth-scopes", "")
            return Me(
                team=answer["team_id"],
                user=answer["user_id"],
                name=answer.get("user") or "",
                workspace=answer.get("team") or "",
                scopes=tuple(scope.strip() for scope in granted.split(",") if scope.strip()),
            )

    async def profile(self, user: str) -> Profile:
        """https://docs.slack.dev/reference/methods/users.info"""
        async with self._failing("users.info"):
            return words.profile((await self._web.users_info(user=user))["user"])

    async def post(self, message: PostMessage) -> str:
        """The `ts` of what was posted or edited. Nothing in the text becomes a mention by itself.
        https://docs.slack.dev/reference/methods/chat.postMessage
        https://docs.slack.dev/reference/methods/chat.update"""
        if message.edits is not None:
            async with self._failing("chat.update"):
                await self._web.chat_update(
                    channel=message.channel,
                    ts=message.edits,
                    text=message.text,
                    blocks=message.blocks,
                    parse="none",
                    link_names=False,
                )
            return message.edits
        async with self._failing("chat.postMessage"):
            answer = await self._web.chat_postMessage(
                channel=message.channel,
                text=message.text,
                blocks=message.blocks,
                thread_ts=message.thread,
                mrkdwn=True,
                parse="none",
                link_names=False,
                unfurl_links=False,  # Slack would fetch an address that a model was talked into
                unfurl_media=False,
            )
            return str(answer["ts"])

    async def react(self, reaction: Reaction) -> None:
        """https://docs.slack.dev/reference/methods/reactions.add"""
        try:
            async with self._failing("reactions.add"):
                await self._web.reactions_add(channel=reaction.channel, timestamp=reaction.ts, name=reaction.name)
        except CallFailed as error:
            if not (isinstance(error.failure, Refusal) and error.failure.error == "already_reacted"):
                raise

    async def store(self, file: Attachment, data: bytes) -> str:
        """The id of a file that is at Slack, and that nobody sees yet.
        https://docs.slack.dev/reference/methods/files.getUploadURLExternal"""
        async with self._failing("files.getUploadURLExternal"):
            told = await self._web.files_getUploadURLExternal(filename=file.name, length=len(data))
            address, name = str(told["upload_url"]), str(told["file_id"])
            timeout = aiohttp.ClientTimeout(total=UPLOAD_SECONDS, sock_connect=CONNECT_SECONDS)
            async with self._session.post(address, data=io.BytesIO(data), timeout=timeout) as answer:
                if answer.status == 200:
                    return name
                failure = refusal("files.getUploadURLExternal", answer.status, None, answer.headers.get("Retry-After"))
        raise CallFailed(failure)

    async def share(self, name: str, upload: Upload) -> None:
        """https://docs.slack.dev/reference/methods/files.completeUploadExternal"""
        async with self._failing("files.completeUploadExternal"):
            await self._web.files_completeUploadExternal(
                files=[{"id": name, "title": upload.file.name}], channel_id=upload.channel, thread_ts=upload.thread
            )

    async def file_address(self, name: str) -> str:
        """https://docs.slack.dev/reference/methods/files.info"""
        async with self._failing("files.info"):
            file = (await self._web.files_info(file=name))["file"]
            return str(file.get("url_private_download") or file["url_private"])

    async def fetch(self, address: str, most_bytes: int) -> tuple[str, bytes]:
        """Media type and at most one byte more than `most_bytes`; the caller bounds the time. The token goes to
        Slack's own hosts alone, wherever it is sent on to.
        https://docs.slack.dev/reference/objects/file-object#authentication"""
        async with self._failing("the file"):
            for _ in range(REDIRECTS):
                ours = self._is_slacks(address)
                headers = {"Authorization": f"Bearer {self._bot_token}"} if ours else {}
                timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS)
                async with self._session.get(
                    address, headers=headers, allow_redirects=False, timeout=timeout
                ) as answer:
                    if 300 <= answer.status < 400:
                        address = urljoin(address, answer.headers.get("Location", ""))
                        continue
                    if answer.status != 200:
                        failure = refusal("the file", answer.status, None, answer.headers.get("Retry-After"))
                        break
                    data = bytearray()
                    while len(data) <= most_bytes and (more := await answer.content.read(1 << 16)):
                        data += more
                    return answer.content_type, bytes(data[: most_bytes + 1])
            else:
                failure = refusal("the file", 310, None, None)
        raise CallFailed(failure)

    def _is_slacks(self, address: str) -> bool:
        parts = urlsplit(address)
        host = parts.hostname or ""
        return host == self._host or (parts.scheme == "https" and f".{host}".endswith(".slack.com"))

    async def whisper(self, channel: str, user: str, text: str, thread: str | None) -> None:
        """Only this person sees it, and not for long. https://docs.slack.dev/reference/methods/chat.postEphemeral"""
        async with self._failing("chat.postEphemeral"):
            await self._web.chat_postEphemeral(channel=channel, user=user, text=text, thread_ts=thread)

    async def socket_address(self) -> str:
        """Good for one connection, for some seconds. https://docs.slack.dev/reference/methods/apps.connections.open"""
        async with self._failing(CONNECTING):
            return str((await self._web.apps_connections_open(app_token=self._app_token))["url"])

    async def connect(self, envelopes: Envelopes) -> "Connection":
        """One that Slack has greeted, and that puts what it receives into `envelopes`."""
        address = await self.socket_address()
        connection = Connection(self._app_token, self._web, self._pace, envelopes)
        try:
            await connection.open(address)
        except BaseException:
            await connection.shut()
            raise
        return connection

    async def close(self) -> None:
        await self._session.close()

    @contextlib.asynccontextmanager
    async def _failing(self, method: str) -> AsyncIterator[None]:
        failure: Failure
        try:
            yield
            return
        except SlackApiError as error:
            response: Any = error.response  # the library's, or aiohttp's for what is no JSON
            status: int = response.status_code if hasattr(response, "status_code") else response.status
            answer = getattr(response, "data", None)
            failure = refusal(method, status, answer, response.headers.get("Retry-After"))
        except (KeyError, AttributeError):  # the library expects an object
            failure = Unreachable(why=f"{method} was not answered as documented", left=True)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            failure = _unreachable(error)
        raise CallFailed(failure) from None


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
        self.aiohttp_client_session = _session(None)
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
            failure = _unreachable(error)
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


def _session(seconds: float | None) -> aiohttp.ClientSession:
    """Reads proxies from the environment, as the rest of the gateway does."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CALLS_AT_ONCE),
        timeout=aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS),
        trust_env=True,
    )


def _unreachable(error: Exception) -> Unreachable:
    """The request never left if there was no connection for it."""
    never_left = isinstance(error, _NEVER_LEFT)
    what = type(error).__name__
    reason = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return Unreachable(why=f"{what}: {reason}" if reason else what, left=not never_left)


__all__ = ["Client", "Connection", "Envelope", "Envelopes", "new_queue"]
