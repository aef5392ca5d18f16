"""From Frontdesk's words to the Bot API's calls: parts, files, cards and emojis. Pure."""

import html
import re
from typing import Any

import msgspec

from gateway.addresses import Route
from gateway.cards import Card
from gateway.files import Attachment
from gateway.outbox import Rejected
from gateway.record import Record
from mediums import markup
from mediums.telegram.failures import Failure, Refusal

LIMIT = 4096  # UTF-16 units after entities parsing: https://core.telegram.org/bots/api#sendmessage
PAYLOAD_LIMIT = 32768  # bytes with tags; the server answers "text is too long" beyond it
LONGEST_ESCAPE = 6  # bytes of HTML that one byte of Markdown may become
PRESS_BYTES = 64  # of callback_data: https://core.telegram.org/bots/api#inlinekeyboardbutton

_TAG = re.compile(r"<[^>]+>")
_REPLY_IS_GONE = re.compile(r"\brepl(y|ied)\b.*\bnot found\b")  # its words have changed more than once


class SendMessage(Record, frozen=True, kw_only=True):
    """The arguments of one sendMessage, or of one editMessageText where it `edits` a message.

    `html` is None once Telegram has refused the formatting. `buttons` are rows of text and data, for a card.
    """

    chat: int
    markdown: str
    html: str | None
    thread: int | None = None
    reply_to: int | None = None
    edits: int | None = None
    buttons: tuple[tuple[tuple[str, str], ...], ...] = ()
    silent: bool = False

    @property
    def text(self) -> str:
        """Unformatted: with the links' addresses, unless they make it too long."""
        shown = markup.plain(self.markdown) or self.markdown
        fits = _units(shown) <= LIMIT
        return shown if fits else html.unescape(_TAG.sub("", markup.telegram_html(self.markdown)))


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
        markdown=markdown,
        html=markup.telegram_html(markdown) or html.escape(markdown, quote=False),
        thread=thread,
        reply_to=int(route.reply_to) if marked and route.reply_to and route.reply_to.isdecimal() else None,
    )


def card(route: Route, shown: Card, edits: str | None) -> SendMessage:
    """Without a sound: what somebody must hear of is told by a message. Raises Rejected as `message` does."""
    if edits is not None and not edits.isdecimal():
        raise Rejected(f"{edits} is no message on Telegram")
    call = message(route, shown.text, marked=False)
    number = None if edits is None else int(edits)
    return msgspec.structs.replace(call, edits=number, buttons=_rows(shown), silent=True)


def _rows(shown: Card) -> tuple[tuple[tuple[str, str], ...], ...]:
    """An answer has a row of its own; what steers shares one."""
    fitting = [one for one in shown.buttons if len(one.press.encode()) <= PRESS_BYTES]
    answers = [((one.text, one.press),) for one in fitting if one.does("answer")]
    others = tuple((one.text, one.press) for one in fitting if not one.does("answer"))
    return (*answers, others) if others else tuple(answers)


class SendFile(Record, frozen=True, kw_only=True):
    """The arguments of one sendDocument or sendPhoto."""

    chat: int
    name: str
    photo: bool
    thread: int | None = None
    reply_to: int | None = None


PHOTO_KINDS = ("image/jpeg", "image/png", "image/webp")
PHOTO_BYTES = 10_000_000  # https://core.telegram.org/bots/api#sendphoto


def file(route: Route, sent: Attachment, marked: bool) -> SendFile:
    """A picture is shown, unless it is too large for that. Raises Rejected for a route that is not Telegram's."""
    chat, thread = place(route)
    return SendFile(
        chat=chat,
        name=sent.name,
        photo=sent.kind in PHOTO_KINDS and sent.size <= PHOTO_BYTES,
        thread=thread,
        reply_to=int(route.reply_to) if marked and route.reply_to and route.reply_to.isdecimal() else None,
    )


Call = SendMessage | SendFile


class SetReaction(Record, frozen=True, kw_only=True):
    """The arguments of one setMessageReaction."""

    chat: int
    message: int
    emoji: str


def reaction(route: Route, emoji: str) -> SetReaction:
    """Raises Rejected for a route that leads to no message."""
    chat, _ = place(route)
    if not (route.reply_to and route.reply_to.isdecimal()):
        raise Rejected("there is no message to put an emoji to")
    return SetReaction(chat=chat, message=int(route.reply_to), emoji=emoji)


def place(route: Route) -> tuple[int, int | None]:
    """Chat and topic. Raises Rejected for a route that is not Telegram's."""
    try:
        return int(route.place), None if route.thread is None else int(route.thread)
    except ValueError as error:
        raise Rejected(f"{route.place}/{route.thread} is no place on Telegram: chats and topics are numbers") from error


def shows_replies(route: Route) -> bool:
    """A reply is marked in groups, where others speak in between; users have positive ids, groups negative ones."""
    return route.place.startswith("-")


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def mended(call: Call, failure: Failure) -> Call | None:
    """The same without what Telegram refused in it, or None. Each thing is given up once: its formatting, the mark of
    a reply whose target is gone, the old id of a group that became a supergroup, showing as a picture."""
    if not isinstance(failure, Refusal) or failure.status != 400:
        return None
    description = failure.description.lower()
    if isinstance(call, SendMessage) and call.html is not None and "can't parse entities" in description:
        return _replaced(call, html=None)
    if call.reply_to is not None and _REPLY_IS_GONE.search(description):
        return _replaced(call, reply_to=None)
    if failure.migrate_to is not None and failure.migrate_to != call.chat:
        return _replaced(call, chat=failure.migrate_to, reply_to=None)
    if isinstance(call, SendFile) and call.photo and ("photo" in description or "image" in description):
        return _replaced(call, photo=False)
    return None


def _replaced(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, **changes)
