"""The calls of Slack that Frontdesk makes, through slack_sdk: importing that costs 0.4 s, so the adapter does it
when it connects.

slack_sdk's own repeating is off: it would post a message again whose answer was lost. No error's text or chain holds
a token or the ticket in a connection's address.
"""

import contextlib
import io
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.files import Attachment
from mediums.incoming import Found
from mediums.slack import words
from mediums.slack.connection import Connection, Envelopes
from mediums.slack.failures import CONNECTING, CallFailed, Failure, Refusal, Unreachable, refusal
from mediums.slack.outgoing import PostMessage, Reaction, Upload
from mediums.slack.pace import Pace
from mediums.slack.sessions import CONNECT_SECONDS, session, unreachable
from mediums.slack.words import Me, Payload, Profile

log = logging.getLogger(__name__)

UPLOAD_SECONDS = 90.0
REDIRECTS = 4
THREAD_MESSAGES = 15  # more are told to no app that is distributed outside Slack's marketplace


class Client:
    """All calls raise CallFailed, none later than `pace.call_seconds`."""

    def __init__(self, bot_token: str, app_token: str, api_base: str, pace: Pace) -> None:
        """`api_base` without a trailing slash."""
        self._bot_token, self._app_token, self._pace = bot_token, app_token, pace
        self._host = urlsplit(api_base).hostname
        self._session = session(pace.call_seconds)
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

    async def thread(self, channel: str, thread: str, before: str) -> list[Payload]:
        """What began it, and what was answered first. https://docs.slack.dev/reference/methods/conversations.replies"""
        async with self._failing("conversations.replies"):
            told = await self._web.conversations_replies(
                channel=channel, ts=thread, latest=before, limit=THREAD_MESSAGES
            )
            return list(told["messages"])

    async def chat_with(self, user: str) -> str:
        """The channel of the bot's direct messages with them, opened if there was none.
        https://docs.slack.dev/reference/methods/conversations.open"""
        async with self._failing("conversations.open"):
            return str((await self._web.conversations_open(users=[user]))["channel"]["id"])

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

    async def file(self, name: str) -> Found:
        """https://docs.slack.dev/reference/methods/files.info"""
        async with self._failing("files.info"):
            return words.file((await self._web.files_info(file=name))["file"])

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
            failure = unreachable(error)
        raise CallFailed(failure) from None


__all__ = ["Client"]
