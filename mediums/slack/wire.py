"""Between Slack's payloads and Frontdesk's words: events to facts, parts to calls. Pure.

What a message says is worked out in `words`; nothing here waits, remembers or connects. A `ts` is an identity and
stays text, byte for byte; only the time of a message is read from it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from gateway import cards
from gateway.addresses import Address, Route
from gateway.cards import Button, Card
from gateway.events import ControlPressed, MessageReceived, Person
from gateway.outbox import Rejected
from gateway.record import Record
from mediums import markup
from mediums.slack import words
from mediums.slack.words import Me, Payload, Profiles

MEDIUM = "slack"
LIMIT = 4000  # characters of `text`, as escaped: https://docs.slack.dev/reference/methods/chat.postMessage#truncating

SECTION_LIMIT, BUTTON_LIMIT, BUTTONS_LIMIT = 3000, 75, 25  # https://docs.slack.dev/reference/block-kit

# https://docs.slack.dev/reference/scopes; with the first it works in direct messages and where it is mentioned.
NEEDED_SCOPES = ("app_mentions:read", "chat:write", "im:history", "users:read")
THREAD_SCOPES = ("channels:history", "groups:history", "mpim:history")
BOT_EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")

_SPOKEN = (None, "file_share", "me_message", "thread_broadcast")
_CHANGED = "message_changed"


class Memory(Protocol):
    """What the adapter remembers of the rooms that it is in."""

    def takes_part(self, channel: str, thread: str) -> bool:
        """The bot has written in this thread, or was called into it."""

    def was_called(self, channel: str, ts: str) -> bool:
        """This message called the bot, and was published for it."""


def account_of(team: str) -> str:
    return f"{MEDIUM}-{team}"


# --- what arrives ----------------------------------------------------------------------------------------------------


class _Spoken(NamedTuple):
    """A person's message as it stands now. `before` is the message that it was, for a change that Slack tells."""

    message: Payload
    channel: str
    direct: bool
    version: str = "0"
    before: Payload | None = None

    @property
    def ts(self) -> str:
        return str(self.message["ts"])

    @property
    def thread(self) -> str | None:
        """Of a message in one; the message that began a thread is in the channel."""
        root = self.message.get("thread_ts")
        return str(root) if root and root != self.ts else None


def people(payload: Payload, me: Me) -> Iterator[str]:
    """The ids whose profiles `heard` can use: the author's first, then of those who are named."""
    spoken = _spoken(payload, me)
    if spoken is not None:
        yield str(spoken.message["user"])
        yield from (user for user in words.mentions(spoken.message) if user != me.user)


def heard(payload: Payload, me: Me, profiles: Profiles, memory: Memory) -> MessageReceived | None:
    """One event (https://docs.slack.dev/apis/events-api/#callback-field), or None for what no person said: joins,
    robots, the bot's own, a link's preview, a deletion, somebody of whom nobody can say to which workspace they belong.

    A mention comes as two events, `app_mention` and `message`; both give a fact with one identity.
    Raises KeyError, TypeError, ValueError or AttributeError for what is not shaped as documented.
    """
    spoken = _spoken(payload, me)
    if spoken is None:
        return None
    author = str(spoken.message["user"])
    known = profiles.get(author)
    team = _team(payload, spoken.message, known.team if known else "", me)
    if team is None or (known and known.bot):
        return None
    text = _text(spoken, me, profiles, memory)
    if not text:
        return None
    by_name = spoken.direct or me.user in words.mentions(spoken.message)
    addressed = by_name or _takes_part(spoken, me, memory)
    return MessageReceived(
        identity=f"{account_of(me.team)}/message/{spoken.channel}/{spoken.ts}/{spoken.version}",
        route=Route(
            medium=MEDIUM,
            account=account_of(me.team),
            place=spoken.channel,
            thread=spoken.thread or (spoken.ts if addressed and not spoken.direct else None),
            reply_to=spoken.ts,
        ),
        author=Person(address=Address(medium=MEDIUM, user=f"{team}/{author}"), name=known.name if known else author),
        text=text,
        at=time_of(spoken.ts if spoken.version == "0" else spoken.version),
        private=spoken.direct,
        addressed=addressed,
        by_name=by_name or not addressed,
        in_thread=spoken.thread is not None and not spoken.direct,
    )


def pressed(payload: Payload, me: Me) -> ControlPressed:
    """A button of a card: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload

    Raises KeyError, TypeError, ValueError or AttributeError for what is no press of ours.
    """
    (action,) = payload["actions"]
    press = cards.pressed(action["value"])
    container, user = payload["container"], payload["user"]
    channel, card = str(container["channel_id"]), str(container["message_ts"])
    root = container.get("thread_ts") or (payload.get("message") or {}).get("thread_ts")
    return ControlPressed(
        identity=f"{account_of(me.team)}/press/{channel}/{card}/{user['id']}/{action['action_ts']}",
        route=Route(
            medium=MEDIUM,
            account=account_of(me.team),
            place=channel,
            thread=str(root) if root and root != card else None,
            reply_to=card,
        ),
        author=Person(
            address=Address(medium=MEDIUM, user=f"{user.get('team_id') or payload['team']['id']}/{user['id']}"),
            name=words.one_line(user.get("name") or user.get("username") or "") or str(user["id"]),
        ),
        at=time_of(str(action["action_ts"])),
        verb=press.verb,
        action=press.action,
        question=press.question,
        option=press.option,
        private=channel.startswith("D"),
    )


def time_of(ts: str) -> datetime:
    seconds, _, micros = ts.partition(".")
    return datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(micros[:6].ljust(6, "0")))


def _spoken(payload: Payload, me: Me) -> _Spoken | None:
    event = payload.get("event") or {}
    if event.get("type") not in ("message", "app_mention"):
        return None
    changed = event.get("subtype") == _CHANGED
    message = event["message"] if changed else event
    if message.get("subtype") not in _SPOKEN or not message.get("user"):
        return None
    if message["user"] == me.user or message.get("bot_id") or message.get("bot_profile"):
        return None
    edit = (message.get("edited") or {}).get("ts")
    return _Spoken(
        message=message,
        channel=str(event["channel"]),
        direct=event.get("channel_type") == "im" or str(event["channel"]).startswith("D"),
        version=str(edit or (event["ts"] if changed else "0")),
        before=event.get("previous_message") or {} if changed else None,
    )


def _text(spoken: _Spoken, me: Me, profiles: Profiles, memory: Memory) -> str:
    """Empty for a change that changed no word, and for an edited mention that was heard before it was edited: of that
    the change itself is told."""
    text = words.said(spoken.message, me, profiles)
    if spoken.before is not None:
        before = words.said(spoken.before, me, profiles)
        return "" if text == before else words.edited(text, before)
    if spoken.version != "0" and memory.was_called(spoken.channel, spoken.ts):
        return ""
    return "\n\n".join(piece for piece in (words.shared(spoken.message, profiles), text) if piece)


def _takes_part(spoken: _Spoken, me: Me, memory: Memory) -> bool:
    """It is in a thread that the bot began or has spoken in."""
    if spoken.message.get("parent_user_id") == me.user:
        return True
    return spoken.thread is not None and memory.takes_part(spoken.channel, spoken.thread)


def _team(payload: Payload, message: Payload, profiled: str, me: Me) -> str | None:
    """The author's own workspace, which in a channel shared with another company need not be this one. None when
    nobody says: an id alone may be somebody else's there."""
    stated = message.get("user_team") or message.get("source_team") or profiled or message.get("team")
    return str(stated) if stated else None if payload.get("is_ext_shared_channel") else me.team


# --- what is sent ----------------------------------------------------------------------------------------------------


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
        shown: list[Payload] = [
            {"type": "section", "text": {"type": "mrkdwn", "verbatim": True, "text": self.text[:SECTION_LIMIT]}}
        ]
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
    return element | ({"style": "danger"} if cards.pressed(button.press).verb == "stop" else {})


def fullness(markdown: str) -> float:
    """How much of one message this Markdown takes; it fits up to 1. Beyond it Slack cuts a message in two itself."""
    return len(_mrkdwn(markdown).encode("utf-16-le", "surrogatepass")) / 2 / LIMIT


def message(route: Route, markdown: str) -> PostMessage:
    """Raises Rejected for a route that is not Slack's."""
    if route.medium != MEDIUM or not route.place.isalnum():
        raise Rejected(f"{route.medium}:{route.place} is no place on Slack: those are ids, as in C024BE91L")
    return PostMessage(channel=route.place, text=_mrkdwn(markdown), thread=route.thread)


def card(route: Route, shown: Card, edits: str | None) -> PostMessage:
    """Raises Rejected for a route that is not Slack's."""
    return msgspec.structs.replace(message(route, shown.text), edits=edits, buttons=shown.buttons)


def _mrkdwn(markdown: str) -> str:
    return markup.mrkdwn(markdown) or markup.escaped(markdown)
