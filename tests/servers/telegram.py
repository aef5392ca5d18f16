"""The Bot API on a real socket, with the people who use it: https://core.telegram.org/bots/api

    async with BotApi() as server:
        ana = server.person("Ana")
        ana.says("hello")                                  # handed to the next getUpdates of TelegramMedium(
        ...                                                #     server.token, server.base_url)
        shown = await server.sees(ana, "Hello, Ana")       # waits for it, by events
        assert server.seen_by(ana) == ["Hello, Ana"]

It holds to what the real one does: an update is kept until a later offset confirms it, a second poll ends the first
with 409, lengths are counted in UTF-16 after the entities are parsed, entity errors name a byte offset. Faults are
scripted per method, used up in order, or last while a state does:

    server.script("sendMessage", Refuse(429, "Too Many Requests", retry_after=3), LOST_ANSWER)
    ana.blocks();  await server.goes_down();  await server.comes_back();  server.revoke()

Files are real too: `server.file(b"…")` is one that a message may name, what the bot sends has its bytes in `shown`.
An album is messages that share a `media_group_id`, told when and in which order the test says.

Not modelled: topics' creation, webhooks, rates per chat.
"""

import asyncio
import contextlib
import itertools
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from aiohttp import web

from tests.patience import PATIENCE_SECONDS
from tests.servers.telegram_entities import BadEntities, parsed, utf16_length
from tests.servers.telegram_people import (
    DROPPED,
    LOST_ANSWER,
    SILENCE,
    Call,
    Fault,
    Payload,
    Person,
    Refuse,
    Shown,
)

MESSAGE_LIMIT = 4096  # UTF-16 units
TEXT_BYTES_MAX = 32768
BATCH = 100
EMOJIS = "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡"
DOWNLOAD_LIMIT = 20 << 20
ACTIONS = ("typing", "upload_photo", "record_voice", "upload_voice", "upload_document", "choose_sticker")

__all__ = ["DROPPED", "LOST_ANSWER", "SILENCE", "BotApi", "Call", "Fault", "Person", "Refuse", "Shown"]


class _Refused(Exception):
    def __init__(self, status: int, description: str, **parameters: int) -> None:
        self.status, self.description, self.parameters = status, description, parameters


@dataclass
class _Poll:
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class BotApi:
    """`handed_at[update_id]` is when an update was first written to a poll, `said_at[message_id]` when it was said;
    both on the monotonic clock, as are `calls` and what is `shown`."""

    def __init__(self, token: str = "8123:synthetic-token", username: str = "helperbot") -> None:
        self.token = token
        self.me = {"id": int(token.partition(":")[0]), "is_bot": True, "first_name": "Helper", "username": username}
        self.shown: list[Shown] = []
        self.calls: list[Call] = []
        self.blocked: set[int] = set()
        self.rival = False  # another program polls as eagerly: a poll that waits is ended by its next one
        self.handed_at: dict[int, float] = {}
        self.said_at: dict[int, float] = {}
        self._updates: list[Payload] = []
        self._messages: dict[tuple[int, int], Payload] = {}
        self._chats: dict[int, Payload] = {}
        self._files: dict[str, bytes] = {}
        self.reactions: dict[tuple[int, int], str] = {}  # of the bot
        self._scripts: dict[str, deque[Refuse | Fault]] = defaultdict(deque)
        self._update_ids, self._message_ids, self._people = (
            itertools.count(1000),
            itertools.count(1),
            itertools.count(7),
        )
        self._query_ids, self._queries = itertools.count(9000), set[str]()
        self.toasts: dict[str, str] = {}  # what each press was answered with
        self.commands: list[Payload] = []
        self._poll: _Poll | None = None
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.comes_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.goes_down()

    # --- people ------------------------------------------------------------------------------------------------------

    def person(self, name: str) -> Person:
        person = Person(self, next(self._people), name)
        self._chats[person.id] = person.chat
        return person

    def group(self, title: str, chat_id: int = -1001234567890, **fields: Any) -> Payload:
        """A supergroup that the bot is in; pass it as `chat` to `says`."""
        chat = {"id": chat_id, "type": "supergroup", "title": title, **fields}
        self._chats[chat_id] = chat
        return chat

    def deliver(self, sender: Payload, chat: Payload, text: str | None, fields: Payload) -> Payload:
        message = {"message_id": next(self._message_ids), "from": sender, "chat": chat, "date": int(time.time())}
        message |= ({} if text is None else {"text": text}) | fields
        self._messages[chat["id"], message["message_id"]] = message
        self.said_at[message["message_id"]] = time.monotonic()
        self.update(message=message)
        return message

    def edit(self, message: Payload, text: str, fields: Payload) -> Payload:
        edited = message | {"text": text, "edit_date": int(time.time())} | fields
        self._messages[message["chat"]["id"], message["message_id"]] = edited
        self.update(edited_message=edited)
        return edited

    def file(self, data: bytes, **fields: Any) -> Payload:
        """As a message names it."""
        name = f"AgAC-{len(self._files)}"
        self._files[name] = data
        return {"file_id": name, "file_unique_id": f"u-{name}", "file_size": len(data), **fields}

    def photo(self, data: bytes) -> list[Payload]:
        """In two sizes, of which the first is a thumbnail."""
        return [self.file(b"small", width=90, height=90), self.file(data, width=1280, height=960)]

    def react(self, sender: Payload, chat: int, message: int, old: Sequence[str], new: Sequence[str]) -> None:
        told = {"chat": self._chats[chat], "message_id": message, "user": sender, "date": int(time.time())}
        told |= {
            name: [{"type": "emoji", "emoji": one} for one in emojis]
            for name, emojis in (("old_reaction", old), ("new_reaction", new))
        }
        self.update(message_reaction=told)

    def press(self, user: Payload, shown: Shown, data: str, fields: Payload) -> Payload:
        """Any data at all, as a client of one's own might send it."""
        message = self._messages[shown.chat, shown.message_id]
        query = {"id": str(next(self._query_ids)), "from": user, "message": message, "chat_instance": "1", "data": data}
        self._queries.add(query["id"])
        self.update(callback_query=query | fields)
        return query

    def update(self, **content: Any) -> Payload:
        """Any update at all, as it is."""
        update = {"update_id": next(self._update_ids), **content}
        self._updates.append(update)
        self._notify()
        return update

    @property
    def unconfirmed(self) -> list[Payload]:
        return list(self._updates)

    # --- what is seen ------------------------------------------------------------------------------------------------

    def seen_by(self, chat: "Person | Payload | int") -> list[str]:
        """What stands in the chat from the bot, in order, as it is read."""
        return [shown.text for shown in self.shown if shown.chat == _chat_id(chat)]

    async def sees(
        self,
        chat: "Person | Payload | int",
        wanted: str | Callable[[Shown], bool],
        within_seconds: float = PATIENCE_SECONDS,
    ) -> Shown:
        """The first message of the bot there that holds this text, or fulfils this; waits for it."""
        fulfils = wanted if callable(wanted) else lambda shown: wanted in shown.text

        def found() -> Shown | None:
            return next((one for one in self.shown if one.chat == _chat_id(chat) and fulfils(one)), None)

        await self.until(found, within_seconds, lambda: f"seen there: {self.seen_by(chat)}")
        shown = found()
        assert shown is not None
        return shown

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

    # --- faults ------------------------------------------------------------------------------------------------------

    def script(self, method: str, *faults: Refuse | Fault) -> None:
        """The next calls of `method` meet these, one each."""
        self._scripts[method.lower()].extend(faults)

    def revoke(self) -> None:
        """The token is no longer any good; `self.token` is the new one."""
        self.token = f"{self.me['id']}:another-token"

    async def goes_down(self) -> None:
        """Connections are refused and open ones closed. Nothing is forgotten."""
        self._ended.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def comes_back(self) -> None:
        """On the same port."""
        self._ended = asyncio.Event()
        app = web.Application(client_max_size=60 << 20)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.*}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- the calls ---------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        parameters = {**request.query, **(await request.post() if request.method == "POST" else {})}
        self.calls.append(Call(method, parameters, time.monotonic()))
        self._notify()
        script = self._scripts[method.lower()]
        fault = script.popleft() if script else None
        try:
            result = await self._done(request.match_info["token"], method, parameters, fault)
        except _Refused as refused:
            body = {"ok": False, "error_code": refused.status, "description": refused.description}
            parts = {"parameters": refused.parameters} if refused.parameters else {}
            return web.json_response(body | parts, status=refused.status)
        if fault in (DROPPED, LOST_ANSWER):
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True, "result": result})

    async def _done(self, token: str, method: str, parameters: Payload, fault: Refuse | Fault | None) -> Any:
        if token != self.token:
            raise _Refused(401, "Unauthorized")
        if isinstance(fault, Refuse):
            stated = {"retry_after": fault.retry_after, "migrate_to_chat_id": fault.migrate_to_chat_id}
            raise _Refused(fault.status, fault.description, **{key: value for key, value in stated.items() if value})
        if fault == SILENCE:
            await self._ended.wait()
        if fault in (SILENCE, DROPPED):
            return None
        methods: dict[str, Callable[[Payload], Coroutine[Any, Any, Any]]] = {
            "getme": self._get_me,
            "getupdates": self._get_updates,
            "sendmessage": self._send_message,
            "sendchataction": self._send_chat_action,
            "senddocument": self._send_document,
            "sendphoto": self._send_photo,
            "setmessagereaction": self._set_reaction,
            "getfile": self._get_file,
            "editmessagetext": self._edit_message,
            "answercallbackquery": self._answer_query,
            "setmycommands": self._set_commands,
        }
        if method.lower() not in methods:
            raise _Refused(404, "Not Found")
        return await methods[method.lower()](parameters)

    async def _get_me(self, _: Payload) -> Payload:
        return self.me

    async def _get_updates(self, parameters: Payload) -> list[Payload]:
        if self._poll is not None:
            self._poll.ended.set()
        mine = self._poll = _Poll()
        offset = int(parameters.get("offset", 0))
        if offset > 0:
            self._updates = [update for update in self._updates if update["update_id"] >= offset]
            self._notify()
        kinds = json.loads(parameters.get("allowed_updates", "[]"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(float(parameters.get("timeout", 0))):
                while not (self._waiting(kinds) or self.rival or mine.ended.is_set() or self._ended.is_set()):
                    await _first_of(self._changed, mine.ended, self._ended)
        if mine.ended.is_set() or (self.rival and float(parameters.get("timeout", 0)) > 0):
            raise _Refused(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            )
        self._poll = None if self._poll is mine else self._poll
        handed = self._waiting(kinds)[:BATCH]
        for update in handed:
            self.handed_at.setdefault(update["update_id"], time.monotonic())
        return handed

    def _waiting(self, kinds: list[str]) -> list[Payload]:
        return [update for update in self._updates if not kinds or any(kind in update for kind in kinds)]

    async def _send_message(self, parameters: Payload) -> Payload:
        raw = parameters.get("text", "")
        return self._show(parameters, raw, self._text(raw, parameters.get("parse_mode")))

    def _show(self, parameters: Payload, raw: str, text: str, file: "Shown.File | None" = None) -> Payload:
        chat = self._chat(parameters)
        thread = parameters.get("message_thread_id")
        reply_to = self._replied(chat, json.loads(parameters.get("reply_parameters", "{}")))
        message = {
            "message_id": next(self._message_ids),
            "from": self.me,
            "chat": chat,
            "date": int(time.time()),
            "text": text,
        }
        if thread is not None:
            message |= {"message_thread_id": int(thread), "is_topic_message": True}
        self._messages[chat["id"], message["message_id"]] = message
        self.shown.append(
            Shown(
                chat=chat["id"],
                text=text,
                html=raw,
                formatted="parse_mode" in parameters,
                thread=None if thread is None else int(thread),
                reply_to=reply_to,
                at=time.monotonic(),
                message_id=message["message_id"],
                file=file,
                buttons=_buttons(parameters),
                silent=parameters.get("disable_notification") == "true",
            )
        )
        self._notify()
        return message

    async def _send_document(self, parameters: Payload) -> Payload:
        sent = parameters.get("document")
        if not isinstance(sent, web.FileField):
            raise _Refused(400, "Bad Request: there is no document in the request")
        return self._show(parameters, "", "", Shown.File("document", sent.filename, sent.file.read()))

    async def _send_photo(self, parameters: Payload) -> Payload:
        sent = parameters.get("photo")
        if not isinstance(sent, web.FileField):
            raise _Refused(400, "Bad Request: there is no photo in the request")
        data = sent.file.read()
        if not data.startswith((b"\x89PNG", b"\xff\xd8")):
            raise _Refused(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._show(parameters, "", "", Shown.File("photo", sent.filename, data))

    async def _set_reaction(self, parameters: Payload) -> bool:
        chat, message = self._chat(parameters), int(parameters["message_id"])
        if (chat["id"], message) not in self._messages:
            raise _Refused(400, "Bad Request: message to react not found")
        (reaction,) = json.loads(parameters["reaction"])
        if reaction["emoji"] not in EMOJIS:
            raise _Refused(400, "Bad Request: REACTION_INVALID")
        self.reactions[chat["id"], message] = reaction["emoji"]
        return True

    async def _get_file(self, parameters: Payload) -> Payload:
        name = parameters.get("file_id", "")
        if name not in self._files:
            raise _Refused(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(self._files[name]) > DOWNLOAD_LIMIT:
            raise _Refused(400, "Bad Request: file is too big")
        return {"file_id": name, "file_size": len(self._files[name]), "file_path": f"documents/{name}"}

    async def _download(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["path"].removeprefix("documents/")
        self.calls.append(Call("download", {"path": request.match_info["path"]}, time.monotonic()))
        script = self._scripts["download"]
        fault = script.popleft() if script else None
        if isinstance(fault, Refuse) or request.match_info["token"] != self.token or name not in self._files:
            return web.Response(status=fault.status if isinstance(fault, Refuse) else 404)
        if fault == SILENCE:
            await self._ended.wait()
        return web.Response(body=self._files[name])

    async def _edit_message(self, parameters: Payload) -> Payload:
        chat, number = self._chat(parameters), int(parameters.get("message_id", 0))
        raw = parameters.get("text", "")
        text, buttons = self._text(raw, parameters.get("parse_mode")), _buttons(parameters)
        known = (chat["id"], number) in self._messages
        found = [n for n, one in enumerate(self.shown) if known and (one.chat, one.message_id) == (chat["id"], number)]
        if not found:
            raise _Refused(400, "Bad Request: message to edit not found")
        old = self.shown[found[0]]
        if (old.html, old.buttons) == (raw, buttons):
            raise _Refused(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the "
                "same as a current content and reply markup of the message",
            )
        self.shown[found[0]] = replace(old, text=text, html=raw, buttons=buttons, before=(*old.before, old.text))
        message = self._messages[chat["id"], number]
        message |= {"text": text, "edit_date": int(time.time())}
        self._notify()
        return message

    async def _answer_query(self, parameters: Payload) -> bool:
        query, text = parameters.get("callback_query_id", ""), parameters.get("text", "")
        if query not in self._queries:
            raise _Refused(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        if len(text) > 200:
            raise _Refused(400, "Bad Request: MESSAGE_TOO_LONG")
        self._queries.discard(query)
        self.toasts[query] = text
        self._notify()
        return True

    async def _set_commands(self, parameters: Payload) -> bool:
        self.commands = json.loads(parameters.get("commands", "[]"))
        self._notify()
        return True

    async def _send_chat_action(self, parameters: Payload) -> bool:
        self._chat(parameters)
        if parameters.get("action") not in ACTIONS:
            raise _Refused(400, "Bad Request: wrong parameter action in request")
        return True

    def _chat(self, parameters: Payload) -> Payload:
        chat = self._chats.get(int(parameters.get("chat_id", 0)))
        if chat is None:
            raise _Refused(400, "Bad Request: chat not found")
        if chat["id"] in self.blocked:
            raise _Refused(403, "Forbidden: bot was blocked by the user")
        return chat

    def _text(self, raw: str, parse_mode: str | None) -> str:
        if len(raw.encode()) > TEXT_BYTES_MAX:
            raise _Refused(400, "Bad Request: text is too long")
        try:
            text = (parsed(raw) if parse_mode else raw).strip()
        except BadEntities as error:
            raise _Refused(400, f"Bad Request: can't parse entities: {error}") from None
        if not text:
            raise _Refused(400, "Bad Request: message text is empty")
        if utf16_length(text) > MESSAGE_LIMIT:
            raise _Refused(400, "Bad Request: message is too long")
        return text

    def _replied(self, chat: Payload, reply: Payload) -> int | None:
        if not reply:
            return None
        if (chat["id"], reply["message_id"]) not in self._messages:
            if reply.get("allow_sending_without_reply") and not chat.get("is_forum"):
                return None
            raise _Refused(400, "Bad Request: message to be replied not found")
        return int(reply["message_id"])

    def forget(self, message: Payload) -> None:
        """As if its author had deleted it."""
        self._messages.pop((message["chat"]["id"], message["message_id"]))


def _buttons(parameters: Payload) -> tuple[tuple[str, str], ...]:
    """Of an inline keyboard, row by row."""
    rows = json.loads(parameters.get("reply_markup", "{}")).get("inline_keyboard", [])
    for button in itertools.chain(*rows):
        if not 1 <= len(button["callback_data"].encode()) <= 64:
            raise _Refused(400, "Bad Request: BUTTON_DATA_INVALID")
    return tuple((button["text"], button["callback_data"]) for row in rows for button in row)


def _chat_id(chat: "Person | Payload | int") -> int:
    return chat.id if isinstance(chat, Person) else chat if isinstance(chat, int) else int(chat["id"])


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
