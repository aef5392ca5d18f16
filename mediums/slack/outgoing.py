"""From Frontdesk's words to Slack's calls: parts, files, cards and emojis. Pure."""

import msgspec

from gateway.addresses import Route
from gateway.cards import Button, Card
from gateway.files import Attachment
from gateway.outbox import Rejected
from gateway.record import Record
from mediums import markup
from mediums.slack import words
from mediums.slack.wire import MEDIUM
from mediums.slack.words import Payload

LIMIT = 4000  # characters of `text`, as escaped: https://docs.slack.dev/reference/methods/chat.postMessage#truncating
SECTION_LIMIT, BUTTON_LIMIT, BUTTONS_LIMIT = 3000, 75, 25  # https://docs.slack.dev/reference/block-kit


class PostMessage(Record, frozen=True, kw_only=True):
    """The arguments of one chat.postMessage, or of one chat.update where it `edits` a message. `text` is mrkdwn.

    A card has `buttons`, perhaps none; a message has None.
    """

    channel: str
    text: str
    thread: str | None = None
    edits: str | None = None
    buttons: tuple[Button, ...] | None = None

    @property
    def blocks(self) -> list[Payload] | None:
        """https://docs.slack.dev/reference/block-kit/blocks"""
        if self.buttons is None:
            return None
        shown: list[Payload] = [{"type": "section", "text": {"type": "mrkdwn", "verbatim": True, "text": self.text}}]
        if self.buttons:
            shown.append({"type": "actions", "elements": [_element(one) for one in self.buttons[:BUTTONS_LIMIT]]})
        return shown


def _element(button: Button) -> Payload:
    """`action_id` must differ within a message."""
    element = {
        "type": "button",
        "action_id": button.press,
        "value": button.press,
        "text": {"type": "plain_text", "text": button.text[:BUTTON_LIMIT], "emoji": True},
    }
    return element | ({"style": "danger"} if button.does("stop") else {})


def fullness(markdown: str) -> float:
    """How much of one message this Markdown takes; it fits up to 1. Beyond it Slack cuts a message in two itself."""
    return len(_mrkdwn(markdown).encode("utf-16-le", "surrogatepass")) / 2 / LIMIT


def message(route: Route, markdown: str) -> PostMessage:
    """Raises Rejected for a route that is not Slack's."""
    return PostMessage(channel=_channel(route), text=_mrkdwn(markdown), thread=route.thread)


class Reaction(Record, frozen=True, kw_only=True):
    """The arguments of one reactions.add."""

    channel: str
    ts: str
    name: str


def reaction(route: Route, emoji: str) -> Reaction:
    """Raises Rejected for a route that leads to no message, and for an emoji that has no name here."""
    name = words.emoji_name(emoji)
    if route.medium != MEDIUM or not route.reply_to:
        raise Rejected("there is no message to put an emoji to")
    if name is None:
        raise Rejected(f"{emoji} has no name on Slack that is known here")
    return Reaction(channel=route.place, ts=route.reply_to, name=name)


class Upload(Record, frozen=True, kw_only=True):
    """A file, shared in a channel or a thread of it."""

    channel: str
    thread: str | None
    file: Attachment


def upload(route: Route, file: Attachment) -> Upload:
    """Raises Rejected for a route that is not Slack's."""
    return Upload(channel=_channel(route), thread=route.thread, file=file)


def _channel(route: Route) -> str:
    if route.medium != MEDIUM or not route.place.isalnum():
        raise Rejected(f"{route.medium}:{route.place} is no place on Slack: those are ids, as in C024BE91L")
    return route.place


def card(route: Route, shown: Card, edits: str | None) -> PostMessage:
    """Raises Rejected for a route that is not Slack's."""
    (text, *_) = markup.split(shown.text, lambda part: len(_mrkdwn(part)) / SECTION_LIMIT) or (shown.text,)
    return msgspec.structs.replace(message(route, text), edits=edits, buttons=shown.buttons)


def _mrkdwn(markdown: str) -> str:
    return markup.mrkdwn(markdown) or markup.escaped(markdown)
