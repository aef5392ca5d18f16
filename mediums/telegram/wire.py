"""Between the Bot API's payloads and Frontdesk's words: updates to facts, parts to calls. Pure.

What a message says is worked out in `words`; nothing here waits, remembers or connects.
"""

import hashlib
import html
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway import cards
from gateway.addresses import Address, Route
from gateway.cards import Card
from gateway.events import ControlPressed, MessageReceived, Person
from gateway.outbox import Rejected
from gateway.record import Record
from mediums import markup
from mediums.telegram import words
from mediums.telegram.failures import Failure, Refusal
from mediums.telegram.words import Me, Payload

MEDIUM = "telegram"
LIMIT = 4096  # UTF-16 units after entities parsing: https://core.telegram.org/bots/api#sendmessage
PAYLOAD_LIMIT = 32768  # bytes with tags; the server answers "text is too long" beyond it
LONGEST_ESCAPE = 6  # bytes of HTML that one byte of Markdown may become
OLD_TEXT_LENGTH = 300  # of an edited message, shown beside the new text
UPDATES = ("message", "edited_message", "callback_query")
PRESS_BYTES = 64  # of callback_data: https://core.telegram.org/bots/api#inlinekeyboardbutton

_TAG = re.compile(r"<[^>]+>")


# --- what arrives ----------------------------------------------------------------------------------------------------


class Heard(Record, frozen=True, kw_only=True):
    """`fact` is None when an edit changed nothing that is read. `key` and `said` are for recognising the next edit."""

    fact: MessageReceived | None
    key: str
    said: str


def account_of(token: str) -> str:
    """`telegram-<bot id>`. Raises ValueError; its text does not hold the token."""
    bot, colon, secret = token.partition(":")
    if not (bot.isdecimal() and colon and secret):
        raise ValueError("mediums.telegram.token is no bot token: it looks like 123456:ABC-DEF, from @BotFather")
    return f"{MEDIUM}-{bot}"


def message_key(update: Payload) -> str:
    """Chat and message, the same for all versions; empty for an update without a message."""
    message = _message(update)
    return f"{message['chat']['id']}/{message['message_id']}" if message else ""


def heard(update: Payload, me: Me, before: str | None) -> Heard | None:
    """One update (https://core.telegram.org/bots/api#update), or None for what no person said: service messages, the
    bot's own, other kinds. `before` is what the message said until now, if that is remembered.

    Raises KeyError, TypeError, ValueError or AttributeError for what is not shaped as documented.
    """
    message = _message(update)
    if message is None or message.get("from", {}).get("id") == me.id:
        return None
    own = words.said(message, me)
    if not own:
        return None
    key, edited = message_key(update), "edited_message" in update
    if edited and before is not None and before.strip() == own.strip():
        return Heard(fact=None, key=key, said=own)
    text = words.forwarded(message, own)
    if edited:
        text = _edited(text, before)
    quoted = words.context(message, me)
    private = message["chat"]["type"] == "private"
    fact = MessageReceived(
        identity=f"{me.account}/message/{key}/{_version(message, own) if edited else 0}",
        route=_route(message, me),
        author=_author(message),
        text=f"{quoted}\n\n{text}" if quoted else text,
        at=datetime.fromtimestamp(message.get("edit_date") or message["date"], UTC),
        private=private,
        addressed=private or words.addressed(message, me),
        robot=bool(message.get("from", {}).get("is_bot")) and "sender_chat" not in message,
    )
    return Heard(fact=fact, key=key, said=own)


def pressed(query: Payload, me: Me, at: datetime) -> ControlPressed:
    """A button of a card: https://core.telegram.org/bots/api#callbackquery

    Raises KeyError, TypeError, ValueError or AttributeError for what is no press of ours: a client may send any data.
    """
    message, press = query["message"], cards.pressed(query["data"])
    return ControlPressed(
        identity=f"{me.account}/press/{query['id']}",
        route=_route(message, me),
        author=Person(address=Address(medium=MEDIUM, user=str(query["from"]["id"])), name=words.name_of(query["from"])),
        at=at,
        verb=press.verb,
        action=press.action,
        question=press.question,
        option=press.option,
        private=message["chat"]["type"] == "private",
    )


def _message(update: Payload) -> Payload | None:
    return update.get("message") or update.get("edited_message")


def _route(message: Payload, me: Me) -> Route:
    """`message_thread_id` is a topic only with `is_topic_message`; without, it names a chain of replies."""
    topic = message.get("message_thread_id") if message.get("is_topic_message") else None
    return Route(
        medium=MEDIUM,
        account=me.account,
        place=str(message["chat"]["id"]),
        thread=None if topic is None else str(topic),
        reply_to=str(message["message_id"]),
    )


def _author(message: Payload) -> Person:
    """Who speaks as a chat (an anonymous administrator, a channel) is that chat: its `from` is a shared account."""
    sender = message.get("sender_chat") or message["from"]
    return Person(address=Address(medium=MEDIUM, user=str(sender["id"])), name=words.name_of(sender))


def _version(message: Payload, said: str) -> str:
    """`edit_date` counts whole seconds, so two quick edits share it; the words tell them apart."""
    return f"{message.get('edit_date', 0)}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def _edited(text: str, before: str | None) -> str:
    if before is None:
        return f"[edited an earlier message, which now says:]\n{text}"
    old = before if len(before) <= OLD_TEXT_LENGTH else before[: OLD_TEXT_LENGTH - 1] + "…"
    return "\n".join(["[edited an earlier message, which said:]", *(f"> {line}" for line in old.splitlines()),
                      "[and now says:]", text])  # fmt: skip


# --- what is sent ----------------------------------------------------------------------------------------------------


class SendMessage(Record, frozen=True, kw_only=True):
    """The arguments of one sendMessage, or of one editMessageText where it `edits` a message.

    `html` is None once Telegram has refused the formatting. `buttons` are rows of text and data, for a card.
    """

    chat: int
    text: str
    html: str | None
    thread: int | None = None
    reply_to: int | None = None
    edits: int | None = None
    buttons: tuple[tuple[tuple[str, str], ...], ...] = ()
    silent: bool = False


def fullness(markdown: str) -> float:
    """How much of one message this Markdown takes, formatted or plain; it fits up to 1."""
    shown = _units(markup.plain(markdown)) / LIMIT  # never shorter than what the formatted text shows
    if shown > 1 or len(markdown.encode()) * LONGEST_ESCAPE <= PAYLOAD_LIMIT:
        return shown
    return max(shown, len(markup.telegram_html(markdown).encode()) / PAYLOAD_LIMIT)


def message(route: Route, markdown: str, marked: bool) -> SendMessage:
    """`marked`: as a reply to the message that it answers. Raises Rejected for a route that is not Telegram's."""
    chat, thread = place(route)
    return SendMessage(
        chat=chat,
        text=_unformatted(markdown),
        html=markup.telegram_html(markdown) or html.escape(markdown, quote=False),
        thread=thread,
        reply_to=int(route.reply_to) if marked and route.reply_to and route.reply_to.isdecimal() else None,
    )


def card(route: Route, shown: Card, edits: str | None) -> SendMessage:
    """Without a sound: what somebody must hear of is told by a message. Raises Rejected as `message` does."""
    if edits is not None and not edits.isdecimal():
        raise Rejected(f"{edits} is no message on Telegram")
    call = message(route, shown.text, marked=False)
    return _replaced(call, edits=None if edits is None else int(edits), buttons=_rows(shown), silent=True)


def _rows(shown: Card) -> tuple[tuple[tuple[str, str], ...], ...]:
    """An answer has a row of its own; what steers shares one."""
    fitting = [one for one in shown.buttons if len(one.press.encode()) <= PRESS_BYTES]
    answers = [((one.text, one.press),) for one in fitting if one.does("answer")]
    others = tuple((one.text, one.press) for one in fitting if not one.does("answer"))
    return (*answers, others) if others else tuple(answers)


def place(route: Route) -> tuple[int, int | None]:
    """Chat and topic. Raises Rejected for a route that is not Telegram's."""
    try:
        return int(route.place), None if route.thread is None else int(route.thread)
    except ValueError as error:
        raise Rejected(f"{route.place}/{route.thread} is no place on Telegram: chats and topics are numbers") from error


def shows_replies(route: Route) -> bool:
    """A reply is marked in groups, where others speak in between; users have positive ids, groups negative ones."""
    return route.place.startswith("-")


def _unformatted(markdown: str) -> str:
    """For the case that the formatting is refused: with the links' addresses, unless they make it too long."""
    shown = markup.plain(markdown) or markdown
    return shown if _units(shown) <= LIMIT else html.unescape(_TAG.sub("", markup.telegram_html(markdown)))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def mended(call: SendMessage, failure: Failure) -> SendMessage | None:
    """The same message without what Telegram refused in it, or None. Each thing is given up once:
    its formatting, the mark of a reply whose target is gone, the old id of a group that became a supergroup."""
    if not isinstance(failure, Refusal) or failure.status != 400:
        return None
    description = failure.description.lower()
    if call.html is not None and "can't parse entities" in description:
        return _replaced(call, html=None)
    if call.reply_to is not None and "message to be replied not found" in description:
        return _replaced(call, reply_to=None)
    if failure.migrate_to is not None and failure.migrate_to != call.chat:
        return _replaced(call, chat=failure.migrate_to, reply_to=None)
    return None


def _replaced(call: SendMessage, **changes: Any) -> SendMessage:
    return msgspec.structs.replace(call, **changes)
