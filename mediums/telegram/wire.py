"""From the Bot API's payloads to Frontdesk's words: updates to facts. Pure.

What a message says is worked out in `words`; nothing here waits, remembers or connects.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

from gateway import cards
from gateway.addresses import Address, Route
from gateway.commands import stands_alone
from gateway.events import Album, ControlPressed, MessageReacted, MessageReceived, Person, PlaceMoved
from gateway.record import Record
from mediums.incoming import Found
from mediums.telegram import words
from mediums.telegram.entities import Me, Payload

MEDIUM = "telegram"
UPDATES = ("message", "edited_message", "message_reaction", "callback_query")


class Said(Record, frozen=True, kw_only=True):
    """A message as it was last seen: its own words, its files, its topic, and whether it called the bot."""

    text: str
    addressed: bool = False
    files: tuple[str, ...] = ()
    thread: str | None = None


class Heard(Record, frozen=True, kw_only=True):
    """`fact` is None when an edit changed nothing that is read; its files are still to be fetched. `key` and `said` are
    for recognising the next edit."""

    fact: MessageReceived | None
    key: str
    said: Said
    files: tuple[Found, ...] = ()


def account_of(token: str) -> str:
    """`telegram-<bot id>`. Raises ValueError; its text does not hold the token."""
    bot, colon, secret = token.partition(":")
    if not (bot.isdecimal() and colon and secret):
        raise ValueError("mediums.telegram.token is no bot token: it looks like 123456:ABC-DEF, from @BotFather")
    return f"{MEDIUM}-{bot}"


def message_key(update: Payload) -> str:
    """Chat and message, the same for all versions; empty for an update without a message."""
    message = _message(update) or update.get("message_reaction")
    return f"{message['chat']['id']}/{message['message_id']}" if message else ""


def heard(update: Payload, me: Me, before: Said | None) -> Heard | None:
    """One update (https://core.telegram.org/bots/api#update), or None for what no person said: service messages, the
    bot's own, other kinds. `before` is the message as it was until now, if that is remembered.

    Raises KeyError, TypeError, ValueError or AttributeError for what is not shaped as documented.
    """
    message = _message(update)
    if message is None or message.get("from", {}).get("id") == me.id:
        return None
    own, files = words.said(message, me), words.files(message)
    if not (own or files):
        return None
    route = _route(message, me)
    private = message["chat"]["type"] == "private"
    addressed = private or words.addressed(message, me)
    said = Said(text=own, addressed=addressed, files=tuple(_unique(message)), thread=route.thread)
    key, edited = message_key(update), "edited_message" in update
    moved = "location" in message  # a live one is told every few seconds, and is no new word
    if edited and (moved or (before is not None and _says_the_same(before, said))):
        return Heard(fact=None, key=key, said=said)
    text, quoted = words.forwarded(message, own), "" if stands_alone(own) else words.context(message, me)
    album = message.get("media_group_id")
    fact = MessageReceived(
        identity=f"{me.account}/message/{key}/{_version(message, said) if edited else 0}",
        route=route,
        author=_author(message),
        text="\n\n".join(piece for piece in (quoted, text) if piece),
        at=datetime.fromtimestamp(message.get("edit_date") or message["date"], UTC),
        private=private,
        addressed=addressed,
        robot=bool(message.get("from", {}).get("is_bot")) and "sender_chat" not in message,
        album=Album(id=str(album), place=int(message["message_id"])) if album else None,
        edited=edited,
        before=before.text if edited and before is not None else "",
    )
    return Heard(fact=fact, key=key, said=said, files=files)


def _says_the_same(before: Said, now: Said) -> bool:
    """A mention is no word of its own, but one that an edit adds calls the bot."""
    same = (before.text.strip(), before.files) == (now.text.strip(), now.files)
    return same and (before.addressed or not now.addressed)


def reacted(update: Payload, me: Me, thread: str | None, own: bool) -> MessageReacted | None:
    """https://core.telegram.org/bots/api#messagereactionupdated; in groups an administrator alone is told.

    `thread` and `own` are of the message that it is about, as far as they are remembered. Raises as `heard`.
    """
    told = update.get("message_reaction")
    sender = (told or {}).get("user") or (told or {}).get("actor_chat")
    if told is None or sender is None or sender["id"] == me.id:
        return None
    new, old = _emojis(told["new_reaction"]), _emojis(told["old_reaction"])
    put, taken = [one for one in new if one not in old], [one for one in old if one not in new]
    if not (put or taken):
        return None
    place, number = str(told["chat"]["id"]), str(told["message_id"])
    account = me.account
    return MessageReacted(
        identity=f"{account}/reaction/{place}/{number}/{update['update_id']}",
        message=f"{account}/message/{place}/{number}",
        route=Route(medium=MEDIUM, account=account, place=place, thread=thread, reply_to=number),
        author=Person(address=Address(medium=MEDIUM, user=str(sender["id"])), name=words.name_of(sender)),
        at=datetime.fromtimestamp(told["date"], UTC),
        emoji=" ".join(put or taken),
        removed=not put,
        own=own,
        private=told["chat"]["type"] == "private",
    )


def moved(update: Payload, me: Me) -> PlaceMoved | None:
    """A group that became a supergroup has another id; each of the two is told of the other. Raises as `heard`.
    https://core.telegram.org/bots/api#message"""
    message = _message(update) or {}
    new, old = message.get("migrate_to_chat_id"), message.get("migrate_from_chat_id")
    if new is None and old is None:
        return None
    here, at = message["chat"]["id"], datetime.fromtimestamp(message["date"], UTC)
    return renamed(me.account, here if old is None else old, here if new is None else new, at)


def renamed(account: str, old: int, new: int, at: datetime) -> PlaceMoved:
    identity = f"{account}/moved/{old}"
    return PlaceMoved(identity=identity, medium=MEDIUM, account=account, old=str(old), new=str(new), at=at)


def _emojis(reactions: list[Payload]) -> list[str]:
    return [one.get("emoji") or one["type"].replace("_", " ") for one in reactions]


def _unique(message: Payload) -> Iterator[str]:
    """What tells a file from another; the same for ever: https://core.telegram.org/bots/api#document"""
    for part in words.parts(message):
        kind = next((kind for kind in words.FILES if kind in part), "")
        if kind:
            stated = part[kind][-1] if kind == "photo" else part[kind]
            yield str(stated.get("file_unique_id") or stated.get("file_id") or kind)


def pressed(query: Payload, me: Me, at: datetime, topic: Callable[[str], str | None]) -> ControlPressed:
    """A button of a card: https://core.telegram.org/bots/api#callbackquery

    Of a card that Telegram does not show any more it tells no topic: https://core.telegram.org/bots/api#inaccessiblemessage
    So `topic` says what is remembered, by chat and message.

    Raises KeyError, TypeError, ValueError or AttributeError for what is no press of ours: a client may send any data.
    """
    message, press = query["message"], cards.pressed(query["data"])
    route = _route(message, me)
    if message.get("date") == 0:
        route = msgspec.structs.replace(route, thread=topic(f"{message['chat']['id']}/{message['message_id']}"))
    return ControlPressed(
        identity=f"{me.account}/press/{query['id']}",
        route=route,
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


def _version(message: Payload, said: Said) -> str:
    """`edit_date` counts whole seconds, so two quick edits share it; the words tell them apart."""
    digest = hashlib.sha256("\0".join((said.text, *said.files)).encode()).hexdigest()
    return f"{message.get('edit_date', 0)}-{digest[:8]}"
