"""The calls of the Bot API that Frontdesk makes, each with its deadline. No error's text or chain holds the token.

Updates are returned as they came, because a library that cannot parse one would cost the whole batch.
"""

import asyncio
import importlib
import json
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from mediums.telegram.entities import Me, Payload
from mediums.telegram.failures import CallFailed, Failure, Refusal, Unreachable
from mediums.telegram.http import Http, RequestFailed
from mediums.telegram.outgoing import SendFile, SendMessage, SetReaction
from mediums.telegram.wire import UPDATES

if TYPE_CHECKING:
    from mediums.telegram.bot import Sender

T = TypeVar("T")

CALLS_AT_ONCE = 64
UPLOAD_SECONDS = 90.0  # more, for a file; an outbox gives it 120


class _Line:
    """One pool of connections, and who is using it."""

    def __init__(self, connections: int) -> None:
        self.connections, self.users = connections, 0
        self.http = Http(connections)
        self.sender: Sender | None = None


class Client:
    """`call_seconds` bounds every call but the long poll. All raise CallFailed."""

    def __init__(self, token: str, api_base: str, call_seconds: float) -> None:
        self._token, self._api_base, self._call_seconds = token, api_base, call_seconds
        self._url = f"{api_base}/bot{token}"
        self._polling = _Line(1)
        self._calling = _Line(CALLS_AT_ONCE)

    async def warm(self) -> None:
        """Loads what sending needs, so that the first message does not wait for it."""
        await self._sender(self._calling)

    async def me(self, account: str) -> Me:
        """https://core.telegram.org/bots/api#getme"""
        line = self._calling
        user = await self._within(line, self._call_seconds, line.http.result(f"{self._url}/getMe", {}))
        return Me(id=int(user["id"]), username=user.get("username") or "", account=account)

    async def updates(self, offset: int | None, wait_seconds: int) -> list[Payload]:
        """In order, at most 100, from the first unconfirmed one; `offset` confirms all before it.

        Answers at once when there are any, else after `wait_seconds` with none, and fails `call_seconds` later.
        https://core.telegram.org/bots/api#getupdates
        """
        query = {"timeout": str(wait_seconds), "allowed_updates": json.dumps(UPDATES)}
        if offset is not None:
            query["offset"] = str(offset)
        line = self._polling
        answer = line.http.result(f"{self._url}/getUpdates", query)
        found = await self._within(line, wait_seconds + self._call_seconds, answer)
        if not isinstance(found, list):
            raise CallFailed(Unreachable(why="getUpdates answered no list", left=True))
        return found

    async def send(self, message: SendMessage) -> int:
        """The id of what was sent or edited."""
        line = self._calling
        sender = await self._sender(line)
        return await self._within(line, self._call_seconds, sender.send(message))

    async def send_file(self, sent: SendFile, data: bytes) -> int:
        """As `send`. https://core.telegram.org/bots/api#senddocument, #sendphoto"""
        method, field = ("sendPhoto", "photo") if sent.photo else ("sendDocument", "document")
        parameters = {"chat_id": str(sent.chat)}
        if sent.thread is not None:
            parameters["message_thread_id"] = str(sent.thread)
        if sent.reply_to is not None:
            reply = {"message_id": sent.reply_to, "allow_sending_without_reply": True}
            parameters["reply_parameters"] = json.dumps(reply)
        line = self._calling
        call = line.http.upload(f"{self._url}/{method}", parameters, field, sent.name, data)
        message = await self._within(line, self._call_seconds + UPLOAD_SECONDS, call)
        return int(message.get("message_id") or 0) if isinstance(message, dict) else 0

    async def react(self, reaction: SetReaction) -> None:
        """https://core.telegram.org/bots/api#setmessagereaction"""
        emoji = json.dumps([{"type": "emoji", "emoji": reaction.emoji}])
        query = {"chat_id": str(reaction.chat), "message_id": str(reaction.message), "reaction": emoji}
        line = self._calling
        await self._within(line, self._call_seconds, line.http.result(f"{self._url}/setMessageReaction", query))

    async def fetch(self, file: str, most_bytes: int) -> bytes:
        """https://core.telegram.org/bots/api#getfile; the caller bounds the time."""
        line = self._calling
        found = await self._within(
            line, self._call_seconds, line.http.result(f"{self._url}/getFile", {"file_id": file})
        )
        path = found.get("file_path") if isinstance(found, dict) else None
        address = f"{self._api_base}/file/bot{self._token}/{quote(str(path or ''))}"
        return await self._within(line, None, line.http.fetch(address, most_bytes))

    async def answer(self, query: str, text: str) -> None:
        """Of a press; empty text shows nothing."""
        line = self._calling
        sender = await self._sender(line)
        await self._within(line, self._call_seconds, sender.answer(query, text))

    async def offer(self, commands: dict[str, str], private: bool) -> None:
        line = self._calling
        sender = await self._sender(line)
        await self._within(line, self._call_seconds, sender.offer(commands, private))

    async def typing(self, chat: int, thread: int | None) -> None:
        line = self._calling
        sender = await self._sender(line)
        await self._within(line, self._call_seconds, sender.typing(chat, thread))

    async def close(self) -> None:
        await self._polling.http.close()
        await self._calling.http.close()

    async def _sender(self, line: _Line) -> "Sender":
        if line.sender is None:
            module = await asyncio.to_thread(importlib.import_module, "mediums.telegram.bot")
            line.sender = module.Sender(self._token, self._api_base, line.http)
        return line.sender

    async def _within(self, line: _Line, seconds: float | None, call: Awaitable[T]) -> T:
        line.users += 1
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError:
            failure: Failure = Unreachable(why=f"no answer within {seconds or 0:g} s", left=True)
        except RequestFailed as error:
            failure = error.failure
        finally:
            line.users -= 1
        if isinstance(failure, Unreachable) and not line.users:
            await self._renew(line)
        raise CallFailed(self._scrubbed(failure))

    async def _renew(self, line: _Line) -> None:
        """A wedged pool does not mend itself: the next call starts on a new one."""
        if line is self._polling:
            self._polling = _Line(line.connections)
        elif line is self._calling:
            self._calling = _Line(line.connections)
        await line.http.close()

    def _scrubbed(self, failure: Failure) -> Failure:
        secret = self._token.partition(":")[2]
        match failure:
            case Unreachable(why=why, left=left):
                return Unreachable(why=why.replace(self._token, "<token>").replace(secret, "<token>"), left=left)
            case Refusal():
                return failure


__all__ = ["Client"]
