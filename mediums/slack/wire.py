"""From Slack's payloads to Frontdesk's words: events to facts. Pure.

What a message says is worked out in `words`; nothing here waits, remembers or connects. A `ts` is an identity and
stays text, byte for byte; only the time of a message is read from it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from gateway import cards
from gateway.addresses import Address, Route
from gateway.events import ControlPressed, MediumFact, MessageDeleted, MessageReacted, MessageReceived, Person
from mediums.incoming import Found
from mediums.slack import words
from mediums.slack.words import Me, Payload, Profiles

MEDIUM = "slack"

# https://docs.slack.dev/reference/scopes; with the first it works in direct messages and where it is mentioned.
NEEDED_SCOPES = ("app_mentions:read", "chat:write", "im:history", "users:read")
THREAD_SCOPES = ("channels:history", "groups:history", "mpim:history")
MORE_SCOPES = {  # without them it works, but not this
    "im:write": "write first to somebody who has not written to it",
    "files:read": "take the files that people send",
    "files:write": "send files",
    "reactions:read": "see the emojis that people put to messages",
    "reactions:write": "put emojis to messages",
}
BOT_EVENTS = (
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
)

_SPOKEN = (None, "file_share", "me_message", "thread_broadcast")
_CHANGED, _DELETED, _STONE = "message_changed", "message_deleted", "tombstone"
_REACTIONS = ("reaction_added", "reaction_removed")


class Memory(Protocol):
    """What the adapter remembers of the rooms that it is in."""

    def takes_part(self, channel: str, thread: str) -> bool:
        """The bot has written in this thread, or was called into it."""

    def was_called(self, channel: str, ts: str) -> bool:
        """This message called the bot, and was published for it."""

    def thread_of(self, channel: str, ts: str) -> str | None:
        """Of a message that was published, or is one of the bot's."""


def account_of(team: str) -> str:
    return f"{MEDIUM}-{team}"


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
    event = payload.get("event") or {}
    if event.get("type") in _REACTIONS:
        yield str(event["user"])
    if _gone(event) is not None and (author := (event.get("previous_message") or {}).get("user")):
        yield str(author)
    spoken = _spoken(payload, me)
    if spoken is not None:
        yield str(spoken.message["user"])
        yield from (user for user in words.mentions(spoken.message) if user != me.user)


def is_person(place: str) -> bool:
    """https://docs.slack.dev/reference/objects/user-object: ids of people and bots begin so, none of a channel does."""
    return place.startswith(("U", "W"))


def channel_of(payload: Payload) -> str:
    """Whatever is said in one is kept in order."""
    event = payload.get("event") or {}
    return str(event.get("channel") or (event.get("item") or {}).get("channel") or "")


class Heard(NamedTuple):
    fact: MediumFact
    files: tuple[Found, ...] = ()


def heard(payload: Payload, me: Me, profiles: Profiles, memory: Memory) -> Heard | None:
    """One event (https://docs.slack.dev/apis/events-api/#callback-field), or None for what no person said: joins,
    robots, the bot's own, a link's preview, somebody of whom nobody can say to which workspace they belong.

    A mention comes as two events, `app_mention` and `message`; both give a fact with one identity.
    Raises KeyError, TypeError, ValueError or AttributeError for what is not shaped as documented.
    """
    event = payload.get("event") or {}
    if event.get("type") in _REACTIONS:
        reacted = _reacted(payload, event, me, profiles, memory)
        return Heard(reacted) if reacted else None
    if (gone := _gone(event)) is not None:
        deleted = _deleted(payload, event, gone, me, profiles, memory)
        return Heard(deleted) if deleted else None
    spoken = _spoken(payload, me)
    return None if spoken is None else _said(spoken, payload, me, profiles, memory)


def _said(spoken: _Spoken, payload: Payload, me: Me, profiles: Profiles, memory: Memory) -> Heard | None:
    author = str(spoken.message["user"])
    known = profiles.get(author)
    team = _team(payload, spoken.message, known.team if known else "", me)
    if team is None or (known and known.bot):
        return None
    text, files = words.said(spoken.message, me, profiles), words.files(spoken.message)
    before = None if spoken.before is None else words.said(spoken.before, me, profiles)
    if text == before:
        return None
    if before is None and spoken.version != "0" and memory.was_called(spoken.channel, spoken.ts):
        return None  # an edited mention that was heard before it was edited: of that the change itself is told
    shared = words.shared(spoken.message, profiles)
    called = me.user in words.mentions(spoken.message)
    if not (text or files or before or shared):
        if not called:
            return None
        text = f"@{me.name or me.user}"  # who is merely called is called all the same
    by_name = spoken.direct or called
    addressed = by_name or _takes_part(spoken, me, memory)
    fact = MessageReceived(
        identity=f"{account_of(me.team)}/message/{spoken.channel}/{spoken.ts}/{spoken.version}",
        route=Route(
            medium=MEDIUM,
            account=account_of(me.team),
            place=spoken.channel,
            thread=spoken.thread or (spoken.ts if addressed and not spoken.direct else None),
            reply_to=spoken.ts,
        ),
        author=Person(address=Address(medium=MEDIUM, user=f"{team}/{author}"), name=known.name if known else author),
        text="\n\n".join(piece for piece in (shared, text) if piece),
        at=time_of(spoken.ts if spoken.version == "0" else spoken.version),
        private=spoken.direct,
        addressed=addressed,
        by_name=by_name or not addressed,
        in_thread=spoken.thread is not None and not spoken.direct,
        edited=before is not None,
        before=before or "",
        outsider=team != me.team or known is None or known.guest,
    )
    return Heard(fact, files)


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


def _gone(event: Payload) -> str | None:
    """The message that a person took away, if the event tells of one. Of one with answers a stone stays in its place,
    so that is told as a change; once the answers are gone too, the stone is deleted, and that is no new word.
    https://docs.slack.dev/reference/events/message/message_deleted"""
    if event.get("type") != "message":
        return None
    message, before = event.get("message") or {}, event.get("previous_message") or {}
    if event.get("subtype") == _DELETED and before.get("subtype") != _STONE:
        return str(event["deleted_ts"])
    return str(message["ts"]) if event.get("subtype") == _CHANGED and message.get("subtype") == _STONE else None


def _deleted(
    payload: Payload, event: Payload, ts: str, me: Me, profiles: Profiles, memory: Memory
) -> MessageDeleted | None:
    """Without what it was, nobody knows whose."""
    before = event.get("previous_message") or {}
    author, channel = before.get("user"), str(event["channel"])
    known = profiles.get(str(author))
    team = _team(payload, before, known.team if known else "", me)
    if not author or author == me.user or before.get("bot_id") or team is None:
        return None
    root = before.get("thread_ts")
    return MessageDeleted(
        identity=f"{account_of(me.team)}/deleted/{channel}/{ts}/0",
        message=f"{account_of(me.team)}/message/{channel}/{ts}",
        route=_route(me, channel, ts, str(root) if root and root != ts else memory.thread_of(channel, ts)),
        author=Person(
            address=Address(medium=MEDIUM, user=f"{team}/{author}"), name=known.name if known else str(author)
        ),
        at=time_of(str(event.get("event_ts") or event["ts"])),
        private=event.get("channel_type") == "im" or channel.startswith("D"),
    )


def _reacted(payload: Payload, event: Payload, me: Me, profiles: Profiles, memory: Memory) -> MessageReacted | None:
    """https://docs.slack.dev/reference/events/reaction_added; of messages alone, not of files."""
    item, user = event.get("item") or {}, str(event["user"])
    known = profiles.get(user)
    team = _team(payload, event, known.team if known else "", me)
    if item.get("type") != "message" or user == me.user or team is None or (known and known.bot):
        return None
    channel, ts, removed = str(item["channel"]), str(item["ts"]), event["type"] == "reaction_removed"
    what = "unreaction" if removed else "reaction"
    return MessageReacted(
        identity=f"{account_of(me.team)}/{what}/{channel}/{ts}/{user}/{event['reaction']}/{event['event_ts']}",
        message=f"{account_of(me.team)}/message/{channel}/{ts}",
        route=_route(me, channel, ts, memory.thread_of(channel, ts)),
        author=Person(address=Address(medium=MEDIUM, user=f"{team}/{user}"), name=known.name if known else user),
        at=time_of(str(event["event_ts"])),
        emoji=words.emoji_of(str(event["reaction"])),
        removed=removed,
        own=event.get("item_user") == me.user,
        private=channel.startswith("D"),
    )


def _route(me: Me, channel: str, ts: str, thread: str | None) -> Route:
    return Route(medium=MEDIUM, account=account_of(me.team), place=channel, thread=thread, reply_to=ts)


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
    if changed and not edit:
        return None  # a preview, or the count of a thread: no person has changed it
    return _Spoken(
        message=message,
        channel=str(event["channel"]),
        direct=event.get("channel_type") == "im" or str(event["channel"]).startswith("D"),
        version=str(edit or "0"),
        before=event.get("previous_message") or {} if changed else None,
    )


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
