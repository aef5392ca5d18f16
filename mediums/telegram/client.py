"""The four calls of the Bot API that Frontdesk makes, through python-telegram-bot. The only module that imports it.

Importing it costs 0.4 s and 20 MB, so the adapter does that when it connects. Three things are done below the library's
surface: updates are returned as they came, because one that it cannot parse would cost the whole batch; an answer's
status is kept, because its exceptions tell neither a request that never left from one that did, nor an outage from a
refusal; and requests go over aiohttp, which takes a third of the time of the library's own way. Every call has a
deadline of its own. No error's text or chain holds the token.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp
from telegram import Bot, ReplyParameters
from telegram.constants import ChatAction
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from mediums.telegram.failures import CallFailed, Failure, Refusal, Unreachable, refusal
from mediums.telegram.wire import UPDATES, SendMessage
from mediums.telegram.words import Me, Payload

T = TypeVar("T")

CONNECT_SECONDS = 5.0
CALLS_AT_ONCE = 64
KEEP_OPEN_SECONDS = 30.0  # an idle connection; a message after a pause does not wait for a handshake

_NEVER_LEFT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)

for _name in ("httpx", "httpcore", "telegram"):
    if logging.getLogger(_name).level == logging.NOTSET:  # else `gateway.logs` has decided, and hides the token
        logging.getLogger(_name).setLevel(logging.WARNING)  # at INFO httpx logs each URL, with the token in it


class _Failed(TelegramError):
    """Passes through the library as its own, with what it would have dropped."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


class _Request(BaseRequest):
    """One pool of connections. The session is made with the first request, inside the loop."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return None  # each call has its own deadline

    async def initialize(self) -> None:
        """Nothing to do before the first request."""

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **timeouts: Any
    ) -> tuple[int, bytes]:
        parameters = request_data.json_parameters if request_data else None
        try:
            async with self._opened().request(method, url, data=parameters) as answer:
                status, body = answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            why = f"{type(error).__name__}: {error}"
            raise _Failed(Unreachable(why=why, left=not isinstance(error, _NEVER_LEFT))) from None
        if status >= 400:
            raise _Failed(refusal(status, body))
        return status, body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEP_OPEN_SECONDS)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            agent = {"User-Agent": self.USER_AGENT}
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, headers=agent, trust_env=True)
        return self._session


class _Line:
    """One pool of connections and the library's Bot on it."""

    def __init__(self, token: str, api_base: str, connections: int) -> None:
        self.connections, self.users = connections, 0
        self.request = _Request(connections)
        self.bot = Bot(token, base_url=f"{api_base}/bot", request=self.request, get_updates_request=self.request)


class Client:
    """`call_seconds` bounds every call but the long poll. All raise CallFailed."""

    def __init__(self, token: str, api_base: str, call_seconds: float) -> None:
        self._token, self._api_base, self._call_seconds = token, api_base, call_seconds
        self._polling = _Line(token, api_base, 1)
        self._calling = _Line(token, api_base, CALLS_AT_ONCE)

    async def me(self) -> Me:
        """https://core.telegram.org/bots/api#getme"""
        line = self._calling
        user = await self._within(line, self._call_seconds, line.bot.get_me(read_timeout=self._call_seconds))
        return Me(id=user.id, username=user.username or "")

    async def updates(self, offset: int | None, wait_seconds: int) -> list[Payload]:
        """In order, at most 100, from the first unconfirmed one; `offset` confirms all before it.

        Answers at once when there are any, else after `wait_seconds` with none, and fails `call_seconds` later.
        https://core.telegram.org/bots/api#getupdates
        """
        query = {"timeout": wait_seconds, "allowed_updates": json.dumps(UPDATES)}
        if offset is not None:
            query["offset"] = offset
        seconds = wait_seconds + self._call_seconds
        line = self._polling
        answer = line.request.post(f"{line.bot.base_url}/getUpdates?{urlencode(query)}", read_timeout=seconds)
        result: Any = await self._within(line, seconds, answer)
        if not isinstance(result, list):
            raise CallFailed(Unreachable(why="getUpdates answered no list", left=True))
        return result

    async def send(self, message: SendMessage) -> None:
        """https://core.telegram.org/bots/api#sendmessage"""
        reply = None if message.reply_to is None else ReplyParameters(message.reply_to)
        line = self._calling
        sending = line.bot.send_message(
            message.chat,
            message.text if message.html is None else message.html,
            parse_mode=None if message.html is None else "HTML",
            message_thread_id=message.thread,
            reply_parameters=reply,
            read_timeout=self._call_seconds,
        )
        await self._within(line, self._call_seconds, sending)

    async def typing(self, chat: int, thread: int | None) -> None:
        """Shown for five seconds: https://core.telegram.org/bots/api#sendchataction"""
        line = self._calling
        showing = line.bot.send_chat_action(chat, ChatAction.TYPING, thread, read_timeout=self._call_seconds)
        await self._within(line, self._call_seconds, showing)

    async def close(self) -> None:
        await self._polling.request.shutdown()
        await self._calling.request.shutdown()

    async def _within(self, line: _Line, seconds: float, call: Awaitable[T]) -> T:
        line.users += 1
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            failure: Failure = Unreachable(why=f"no answer within {seconds:g} s", left=True)
        except _Failed as error:
            failure = error.failure
        except TelegramError as error:
            failure = Unreachable(why=str(error), left=True)
        finally:
            line.users -= 1
        if isinstance(failure, Unreachable) and not line.users:
            await self._renew(line)
        raise CallFailed(self._scrubbed(failure))

    async def _renew(self, line: _Line) -> None:
        """A wedged pool does not mend itself: the next call starts on a new one."""
        if line is self._polling:
            self._polling = _Line(self._token, self._api_base, line.connections)
        elif line is self._calling:
            self._calling = _Line(self._token, self._api_base, line.connections)
        await line.request.shutdown()

    def _scrubbed(self, failure: Failure) -> Failure:
        secret = self._token.partition(":")[2]
        match failure:
            case Unreachable(why=why, left=left):
                return Unreachable(why=why.replace(self._token, "<token>").replace(secret, "<token>"), left=left)
            case Refusal():
                return failure


__all__ = ["Client"]
