"""Slack on real sockets, with the people who use it: the Web API and Socket Mode.
https://docs.slack.dev/apis/web-api · https://docs.slack.dev/apis/events-api/using-socket-mode

    async with SlackServer() as server:
        ana, general = server.person("Ana"), server.channel("general")
        message = ana.says(f"{server.mention} hello", channel=general)
        ...                                                 # SlackMedium(server.bot_token, server.app_token,
                                                            #     server.team, server.api_base)
        shown = await server.sees(general, "Hello, Ana")    # waits for it, by events
        assert shown.thread == message["ts"]

It holds to what the real one does: an envelope that is not acknowledged in time, or whose connection ends, is sent
again; a mention comes as two events, the bot's own messages as events too; more than ten connections are refused;
a text beyond 4,000 characters is cut in two anywhere. Faults are scripted per method, or last while a state does:

    server.script("chat.postMessage", Refuse("ratelimited", 429, retry_after=3), LOST_ANSWER)
    general.archived = True;  await server.disconnect("refresh_requested");  server.mute();  await server.goes_down()

A file is at the server (`server.file(b"…")`), and handed to whoever shows the bot's token.

Not modelled: rates by themselves, other blocks than sections and buttons, threads' broadcast.
"""

import asyncio
import contextlib
import itertools
import json
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from aiohttp import WSMsgType, web

from tests.patience import PATIENCE_SECONDS
from tests.servers.slack_mrkdwn import notified, shown
from tests.servers.slack_people import (
    DROPPED,
    LOST_ANSWER,
    NONE,
    SILENCE,
    Call,
    Channel,
    Fault,
    Payload,
    Person,
    Refuse,
    Shown,
)

TEXT_LIMIT, CUT_LIMIT = 40_000, 4_000
CONNECTIONS_LIMIT = 10
SCOPES = "app_mentions:read,chat:write,im:history,users:read,channels:history,groups:history,mpim:history"
SCOPES += ",im:write,files:read,files:write,reactions:read,reactions:write"

__all__ = [
    "DROPPED",
    "LOST_ANSWER",
    "NONE",
    "SILENCE",
    "Call",
    "Channel",
    "Fault",
    "Person",
    "Refuse",
    "Shown",
    "SlackServer",
]


class _Refused(Exception):
    def __init__(self, error: str, status: int = 200, retry_after: int | None = None, **fields: Any) -> None:
        self.error, self.status, self.retry_after, self.fields = error, status, retry_after, fields


@dataclass
class _Delivery:
    number: int
    payload: Payload
    kind: str = "events_api"
    attempt: int = 0
    reason: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)


class SlackServer:
    """`acknowledged[event_id]` is how often; `handed` all that was put on a connection, in order. `at` of calls and of
    what is shown is on the monotonic clock."""

    def __init__(self, team: str = "T1", ack_seconds: float = 3.0) -> None:
        self.team, self.ack_seconds = team, ack_seconds
        self.bot_token, self.app_token = "xoxb-1-1-synthetic-bot-token", "xapp-1-A1-1-synthetic-app-token"
        self.scopes = SCOPES
        self.bot = {"user_id": "UBOT", "bot_id": "BBOT", "user": "helper", "team": "Test Ltd"}
        self.channels: dict[str, Channel] = {}
        self.people: dict[str, Person] = {}
        self.shown: list[Shown] = []
        self.said: list[Payload] = []  # by people, as it was said first
        self.calls: list[Call] = []
        self.handed: list[Payload] = []
        self.acknowledged: dict[str, int] = defaultdict(int)
        self.connected = self.most_connected = 0
        self.files: dict[str, tuple[Payload, bytes]] = {}
        self.reactions: list[tuple[str, str, str]] = []  # of the bot: channel, ts, name
        self.tokens_shown: list[str] = []  # with requests for files
        self.elsewhere = ""  # where requests for files are sent on to
        self.gone: set[str] = set()  # messages of the bot that somebody deleted
        self.whispers: list[tuple[str, str, str, str | None]] = []  # to whom, where, what, in which thread
        self.forget_tickets = False  # no connection is let in
        self._sockets: list[web.WebSocketResponse] = []
        self._tickets: set[str] = set()
        self._open: list[_Delivery] = []
        self._sent: dict[str, tuple[_Delivery, web.WebSocketResponse]] = {}
        self._scripts: dict[str, deque[Refuse | Fault]] = defaultdict(deque)
        self._numbers, self._ids, self._deliveries = itertools.count(1), itertools.count(1), itertools.count()
        self._muted = asyncio.Event()
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._waits: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def mention(self) -> str:
        return f"<@{self.bot['user_id']}>"

    async def __aenter__(self) -> Self:
        await self.comes_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.goes_down()

    # --- people and places -------------------------------------------------------------------------------------------

    def person(self, name: str, id: str = "", team: str = "", **fields: Any) -> Person:
        person = Person(self, id or f"U{name.upper()}", name, team or self.team, fields)
        self.people[person.id] = person
        self.channels[f"D{person.id}"] = Channel(f"D{person.id}", "directmessage")
        return person

    def channel(self, name: str, **fields: Any) -> Channel:
        channel = Channel(f"C{name.upper()}", name, **fields)
        self.channels[channel.id] = channel
        return channel

    def next_ts(self) -> str:
        return f"{int(time.time())}.{next(self._numbers) * 100 % 1_000_000:06d}"

    def deliver(
        self, person: Person, channel: Channel, text: str, thread: Payload | str | None, fields: Payload
    ) -> Payload:
        message = {"type": "message", "user": person.id, "text": text, "ts": self.next_ts(), "team": person.team}
        message |= {"channel": channel.id, "channel_type": "im" if channel.direct else "channel"}
        if thread is not None:
            message["thread_ts"] = thread if isinstance(thread, str) else thread.get("thread_ts", thread["ts"])
        if fields.get("files"):
            message["subtype"] = "file_share"
        message |= fields
        self.said.append(message)
        if channel.joined:
            self.event(channel.external, **message)
        if self.mention in text.replace("|helper>", ">") and not channel.direct:
            kept = {key: value for key, value in message.items() if key not in ("subtype", "channel_type")}
            self.event(channel.external, **kept | {"type": "app_mention"})
        return message

    def edit(self, message: Payload, text: str, fields: Payload) -> Payload:
        edited = message | {"text": text, "edited": {"user": message["user"], "ts": self.next_ts()}} | fields
        self._change(message, edited)
        if self.mention in text and not message["channel"].startswith("D"):
            kept = {key: value for key, value in edited.items() if key != "channel_type"}
            self.event(**kept | {"type": "app_mention"})
        return edited

    def unfurls(self, message: Payload) -> None:
        """A link in it gets a preview: nothing of its words changes."""
        self._change(message, message | {"attachments": [{"title": "x", "from_url": "https://x.example"}]})

    def _change(self, before: Payload, after: Payload) -> None:
        outer = {key: before[key] for key in ("channel", "channel_type")}
        self.event(
            type="message",
            subtype="message_changed",
            hidden=True,
            ts=self.next_ts(),
            message={key: value for key, value in after.items() if key not in outer},
            previous_message={key: value for key, value in before.items() if key not in outer},
            **outer,
        )

    def file(self, data: bytes, name: str = "q.pdf", kind: str = "application/pdf", **fields: Any) -> Payload:
        """As a message names it."""
        identity = f"F{len(self.files) + 1}"
        address = f"http://127.0.0.1:{self.port}/files/{identity}"
        file = {"id": identity, "name": name, "mimetype": kind, "size": len(data), "url_private_download": address}
        self.files[identity] = (file, data)
        return file | fields

    def event(self, external: bool = False, /, **event: Any) -> Payload:
        """Any event at all, as it is."""
        return self.push(
            {
                "type": "event_callback",
                "team_id": self.team,
                "api_app_id": "A1",
                "event_id": f"Ev{next(self._ids)}",
                "event_time": int(time.time()),
                "is_ext_shared_channel": external,
                "authorizations": [{"team_id": self.team, "user_id": self.bot["user_id"], "is_bot": True}],
                "event": event,
            }
        )

    def push(self, payload: Payload, kind: str = "events_api") -> Payload:
        self._open.append(_Delivery(next(self._deliveries), payload, kind))
        self._flush()
        return payload

    @property
    def unconfirmed(self) -> list[Payload]:
        return [one.payload for one in self._open] + [one.payload for one, _ in self._sent.values()]

    # --- what is seen ------------------------------------------------------------------------------------------------

    def seen_by(self, channel: Person | Channel) -> list[str]:
        """What stands in the channel from the bot, in order, as it is read."""
        return [one.text for one in self.shown if one.channel == _channel_id(channel)]

    async def sees(
        self, channel: Person | Channel, wanted: str | Callable[[Shown], bool], within_seconds: float = PATIENCE_SECONDS
    ) -> Shown:
        """The first message of the bot there that holds this text, or fulfils this; waits for it."""
        fulfils = wanted if callable(wanted) else lambda one: wanted in one.text

        def found() -> Shown | None:
            return next((one for one in self.shown if one.channel == _channel_id(channel) and fulfils(one)), None)

        await self.until(found, within_seconds, lambda: f"seen there: {self.seen_by(channel)}")
        first = found()
        assert first is not None
        return first

    async def until(
        self,
        ready: Callable[[], Any],
        within_seconds: float = PATIENCE_SECONDS,
        instead: Callable[[], str] = lambda: "",
    ) -> None:
        """Looks again at each thing that happens here. AssertionError after `within_seconds`."""
        try:
            async with asyncio.timeout(within_seconds):
                while not ready():
                    await self._changed.wait()
        except TimeoutError:
            calls = ", ".join(call.method for call in self.calls[-8:])
            raise AssertionError(f"not within {within_seconds} s; {instead()}; last calls: {calls}") from None

    def called(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- faults ------------------------------------------------------------------------------------------------------

    def script(self, method: str, *faults: Refuse | Fault) -> None:
        """The next calls of `method` meet these, one each."""
        self._scripts[method].extend(faults)

    async def disconnect(self, reason: str) -> None:
        """Tells every connection; Slack itself closes them some seconds later, `cut` does it here."""
        for socket in list(self._sockets):
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {}})

    async def cut(self) -> None:
        for socket in list(self._sockets):
            await socket.close()

    def mute(self) -> None:
        """The connections that are open now stay so, and give no sign any more, not even to a close."""
        self._muted.set()
        self._muted = asyncio.Event()

    async def goes_down(self) -> None:
        """Connections are refused and open ones closed. Nothing is forgotten."""
        self._ended.set()
        for task in list(self._waits):
            task.cancel()
        if self._runner is not None:
            await self.cut()
            await self._runner.cleanup()
            self._runner = None

    async def comes_back(self) -> None:
        """On the same port."""
        self._ended = asyncio.Event()
        app = web.Application(client_max_size=60 << 20)
        app.router.add_get("/link/", self._connection)
        app.router.add_get("/files/{file}", self._download)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_route("*", "/api/{method}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    # --- Socket Mode -------------------------------------------------------------------------------------------------

    async def _connection(self, request: web.Request) -> web.StreamResponse:
        if self.forget_tickets or request.query.get("ticket") not in self._tickets:
            return web.Response(status=403)
        self._tickets.discard(request.query["ticket"])
        socket = web.WebSocketResponse(autoping=False, timeout=0.2)
        await socket.prepare(request)
        self.connected += 1
        self.most_connected = max(self.most_connected, self.connected)
        muted = self._muted
        reading = asyncio.create_task(self._converse(socket))
        silenced = asyncio.create_task(muted.wait())
        try:
            await asyncio.wait({reading, silenced}, return_when=asyncio.FIRST_COMPLETED)
            self._leave(socket)
            if silenced.done():
                reading.cancel()
                await _until_closed(request, self._ended)
        finally:
            for task in (reading, silenced):
                task.cancel()
            await asyncio.wait({reading, silenced})
            self._leave(socket)
            self.connected -= 1
            self._notify()
        return socket

    async def _converse(self, socket: web.WebSocketResponse) -> None:
        with contextlib.suppress(ConnectionError):
            if self.connected > CONNECTIONS_LIMIT:
                await socket.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
                await socket.close()
                return
            about = {"host": "applink-1", "build_number": 1, "approximate_connection_time": 18060}
            await socket.send_json(
                {
                    "type": "hello",
                    "num_connections": self.connected,
                    "debug_info": about,
                    "connection_info": {"app_id": "A1"},
                }
            )
            self._sockets.append(socket)
            self._flush()
            self._notify()
            async for message in socket:
                if message.type == WSMsgType.PING:
                    await socket.pong(message.data)
                elif message.type == WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data)["envelope_id"])

    def _leave(self, socket: web.WebSocketResponse) -> None:
        """What it was given and has not acknowledged goes to another."""
        if socket in self._sockets:
            self._sockets.remove(socket)
        for envelope, (delivery, where) in list(self._sent.items()):
            if where is socket:
                self._again(envelope, delivery, "http_error")

    def _acknowledge(self, envelope: str) -> None:
        if envelope in self._sent:
            delivery, _ = self._sent.pop(envelope)
            delivery.done.set()
            self.acknowledged[delivery.payload.get("event_id", "")] += 1
            self._notify()

    def _again(self, envelope: str, delivery: _Delivery, reason: str) -> None:
        if self._sent.pop(envelope, None):
            delivery.attempt, delivery.reason = delivery.attempt + 1, reason
            self._open.append(delivery)
            self._open.sort(key=lambda one: one.number)
            self._flush()

    def _flush(self) -> None:
        if self._sockets and self._open:
            task = asyncio.create_task(self._hand_out())
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)

    async def _hand_out(self) -> None:
        while self._sockets and self._open:
            delivery, socket = self._open.pop(0), self._sockets[-1]
            envelope = str(uuid.uuid4())
            self._sent[envelope] = (delivery, socket)
            task = asyncio.create_task(self._await_acknowledgement(envelope, delivery))
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)
            frame = {
                "envelope_id": envelope,
                "type": delivery.kind,
                "payload": delivery.payload,
                "accepts_response_payload": delivery.kind != "events_api",
                "retry_attempt": delivery.attempt,
                "retry_reason": delivery.reason,
            }
            self.handed.append(frame)
            self._notify()
            try:
                await socket.send_json(frame)
            except ConnectionError:
                self._leave(socket)

    async def _await_acknowledgement(self, envelope: str, delivery: _Delivery) -> None:
        try:
            async with asyncio.timeout(self.ack_seconds):
                await delivery.done.wait()
        except TimeoutError:
            self._again(envelope, delivery, "timeout")

    # --- the Web API -------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method, parameters = request.match_info["method"], await _parameters(request)
        self.calls.append(Call(method, parameters, time.monotonic()))
        self._notify()
        script = self._scripts[method]
        fault = script.popleft() if script else None
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        headers = {"x-oauth-scopes": self.scopes} if token == self.bot_token else {}
        try:
            result = await self._done(token, method, parameters, fault)
        except _Refused as refused:
            if refused.retry_after is not None:
                headers["Retry-After"] = str(refused.retry_after)
            if not refused.error:
                return web.Response(text="<html>Bad Gateway", status=refused.status, content_type="text/html")
            body = {"ok": False, "error": refused.error, **refused.fields}
            return web.json_response(body, status=refused.status, headers=headers)
        if fault in (DROPPED, LOST_ANSWER):
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True, **result}, headers=headers)

    async def _done(self, token: str, method: str, parameters: Payload, fault: Refuse | Fault | None) -> Payload:
        if isinstance(fault, Refuse):
            raise _Refused(fault.error, fault.status, fault.retry_after, **fault.fields)
        if fault == SILENCE:
            await self._ended.wait()
        if fault in (SILENCE, DROPPED):
            return {}
        self._check_token(token, method)
        methods: dict[str, Callable[[Payload], Payload]] = {
            "auth.test": self._auth_test,
            "apps.connections.open": self._open_connection,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.postEphemeral": self._whisper,
            "users.info": self._user,
            "conversations.info": self._conversation,
            "conversations.open": self._open_chat,
            "conversations.replies": self._replies,
            "reactions.add": self._react,
            "files.getUploadURLExternal": self._upload_address,
            "files.completeUploadExternal": self._share,
            "files.info": self._file_info,
        }
        if method not in methods:
            raise _Refused("unknown_method")
        return methods[method](parameters)

    def _check_token(self, token: str, method: str) -> None:
        if not token:
            raise _Refused("not_authed")
        if token not in (self.bot_token, self.app_token):
            raise _Refused("invalid_auth")
        if (method == "apps.connections.open") != (token == self.app_token):
            raise _Refused("not_allowed_token_type")
        needed = {
            "chat.postMessage": "chat:write",
            "chat.update": "chat:write",
            "chat.postEphemeral": "chat:write",
            "users.info": "users:read",
            "conversations.open": "im:write",
            "reactions.add": "reactions:write",
            "files.getUploadURLExternal": "files:write",
            "files.completeUploadExternal": "files:write",
            "files.info": "files:read",
        }
        if method in needed and needed[method] not in self.scopes.split(","):
            raise _Refused("missing_scope", needed=needed[method], provided=self.scopes)

    def _auth_test(self, _: Payload) -> Payload:
        return {"url": "https://test.slack.example/", "team_id": self.team, **self.bot}

    def _open_connection(self, _: Payload) -> Payload:
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id=A1"}

    def _post(self, parameters: Payload) -> Payload:
        channel = self._channel(parameters)
        if channel.archived:
            raise _Refused("is_archived")
        if not channel.joined:
            raise _Refused("not_in_channel")
        text, thread = str(parameters.get("text", "")), parameters.get("thread_ts")
        if not text.strip():
            raise _Refused("no_text")
        if len(text) > TEXT_LIMIT:
            raise _Refused("msg_too_long")
        if thread is not None and not isinstance(thread, str):
            raise _Refused("invalid_thread_ts")
        said, elements = _laid_out(parameters)
        ts = "" if said is None else self._show(channel, said, thread, elements)
        for start in range(0, len(text) if said is None else 0, CUT_LIMIT):
            ts = self._show(channel, text[start : start + CUT_LIMIT], thread)
        return {"channel": channel.id, "ts": ts, "message": {"text": text, "ts": ts, **self.bot}}

    def _update(self, parameters: Payload) -> Payload:
        channel, ts = self._channel(parameters), parameters.get("ts")
        found = [n for n, one in enumerate(self.shown) if (one.channel, one.ts) == (channel.id, ts)]
        if not found or ts in self.gone:
            raise _Refused("message_not_found")
        said, elements = _laid_out(parameters)
        text, old = str(parameters.get("text", "")) if said is None else said, self.shown[found[0]]
        self.shown[found[0]] = replace(
            old, text=shown(text), raw=text, elements=elements, before=(*old.before, old.text)
        )
        self._notify()
        return {"channel": channel.id, "ts": ts, "text": text}

    def _whisper(self, parameters: Payload) -> Payload:
        channel, user = self._channel(parameters), str(parameters.get("user"))
        if user not in self.people:
            raise _Refused("user_not_in_channel")
        self.whispers.append((user, channel.id, shown(str(parameters.get("text", ""))), parameters.get("thread_ts")))
        self._notify()
        return {"message_ts": self.next_ts()}

    def press(self, person: Person, one: Shown, element: Payload) -> Payload:
        """https://docs.slack.dev/reference/interaction-payloads/block_actions-payload"""
        container = {"type": "message", "message_ts": one.ts, "channel_id": one.channel, "is_ephemeral": False}
        message = {"type": "message", "user": self.bot["user_id"], "ts": one.ts, "text": one.raw}
        if one.thread:
            container |= {"thread_ts": one.thread}
            message |= {"thread_ts": one.thread}
        payload = {
            "type": "block_actions",
            "user": {"id": person.id, "name": person.name.lower(), "team_id": person.team},
            "team": {"id": self.team, "domain": "test"},
            "channel": {"id": one.channel, "name": self.channels[one.channel].name},
            "container": container,
            "message": message,
            "trigger_id": uuid.uuid4().hex,
            "response_url": "https://hooks.slack.example/actions/T1/1/1",
            "actions": [{**element, "block_id": "b1", "action_ts": self.next_ts()}],
        }
        return self.push(payload, "interactive")

    def _show(
        self,
        channel: Channel,
        text: str,
        thread: str | None,
        elements: tuple[Payload, ...] = (),
        file: "Shown.File | None" = None,
    ) -> str:
        ts = self.next_ts()
        self.shown.append(
            Shown(
                channel=channel.id,
                text=shown(text),
                raw=text,
                notified=notified(text),
                thread=thread,
                ts=ts,
                at=time.monotonic(),
                file=file,
                elements=elements,
            )
        )
        own = {"user": self.bot["user_id"], "bot_id": self.bot["bot_id"], "text": text, "ts": ts}
        own |= {"thread_ts": thread} if thread else {}
        self.event(type="message", channel=channel.id, channel_type="im" if channel.direct else "channel", **own)
        self._notify()
        return ts

    def _user(self, parameters: Payload) -> Payload:
        person = self.people.get(str(parameters.get("user")))
        if person is None:
            raise _Refused("user_not_found")
        return {"user": person.user}

    def _conversation(self, parameters: Payload) -> Payload:
        channel = self._channel(parameters)
        return {"channel": {"id": channel.id, "name": channel.name, "is_im": channel.direct}}

    def _replies(self, parameters: Payload) -> Payload:
        channel, root = self._channel(parameters).id, parameters["ts"]
        there = [one for one in self.said if one["channel"] == channel and root in (one["ts"], one.get("thread_ts"))]
        before = float(parameters["latest"])
        told = [{k: v for k, v in one.items() if k != "channel"} for one in there if float(one["ts"]) < before]
        return {"messages": told[: int(parameters["limit"])], "has_more": False}

    def _open_chat(self, parameters: Payload) -> Payload:
        person = self.people.get(str(parameters["users"]))
        if person is None:
            raise _Refused("user_not_found")
        return {"channel": {"id": person.chat.id}}

    def _react(self, parameters: Payload) -> Payload:
        put = (self._channel(parameters).id, str(parameters["timestamp"]), str(parameters["name"]))
        if put in self.reactions:
            raise _Refused("already_reacted")
        self.reactions.append(put)
        self._notify()
        return {}

    # --- files -------------------------------------------------------------------------------------------------------

    def _upload_address(self, parameters: Payload) -> Payload:
        file = self.file(b"", str(parameters["filename"]), "")
        return {"upload_url": f"http://127.0.0.1:{self.port}/upload/{file['id']}", "file_id": file["id"]}

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        identity = request.match_info["file"]
        self.files[identity] = (self.files[identity][0], await request.read())
        return web.Response(text="OK")

    def _share(self, parameters: Payload) -> Payload:
        given = parameters["files"]
        named = json.loads(given) if isinstance(given, str) else given
        channel = self._channel({"channel": parameters.get("channel_id")})
        thread = parameters.get("thread_ts")
        for one in named:
            file, data = self.files[one["id"]]
            self._show(channel, "", thread, file=Shown.File(one.get("title") or file["name"], data))
        return {"files": named}

    def _file_info(self, parameters: Payload) -> Payload:
        if str(parameters.get("file")) not in self.files:
            raise _Refused("file_not_found")
        return {"file": self.files[str(parameters["file"])][0]}

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Without the right, its page to sign in, as the real one."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.tokens_shown.append(token)
        if self.elsewhere:
            raise web.HTTPFound(self.elsewhere)
        if token != self.bot_token or "files:read" not in self.scopes.split(","):
            return web.Response(text="<!DOCTYPE html><html>Sign in to Slack", content_type="text/html")
        file, data = self.files[request.match_info["file"]]
        return web.Response(body=data, content_type=file["mimetype"] or "application/octet-stream")

    def _channel(self, parameters: Payload) -> Channel:
        channel = self.channels.get(str(parameters.get("channel")))
        if channel is None:
            raise _Refused("channel_not_found")
        return channel


def _channel_id(channel: Person | Channel) -> str:
    return channel.chat.id if isinstance(channel, Person) else channel.id


def _laid_out(parameters: Payload) -> tuple[str | None, tuple[Payload, ...]]:
    """What blocks say, and their buttons; None without blocks."""
    blocks = parameters.get("blocks")
    if not blocks:
        return None, ()
    blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
    texts = [one["text"]["text"] for one in blocks if one["type"] == "section"]
    elements = [element for one in blocks if one["type"] == "actions" for element in one["elements"]]
    ids = [one["action_id"] for one in elements]
    too_long = any(len(one["text"]["text"]) > 75 or len(one["value"]) > 2000 for one in elements)
    if any(not 1 <= len(text) <= 3000 for text in texts) or len(set(ids)) < len(ids) or too_long:
        raise _Refused("invalid_blocks")
    return "\n".join(texts), tuple(elements)


async def _parameters(request: web.Request) -> Payload:
    if request.content_type == "application/json":
        return {**request.query, **await request.json()}
    return {**request.query, **(await request.post() if request.method == "POST" else {})}


async def _until_closed(request: web.Request, ended: asyncio.Event) -> None:
    """The other end has gone, or the server does."""
    while not ended.is_set() and request.transport is not None and not request.transport.is_closing():
        try:
            async with asyncio.timeout(0.01):
                await ended.wait()
        except TimeoutError:
            continue
