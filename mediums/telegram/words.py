"""What a Telegram message says, as one text for a reader, and its files: mentions taken out, quotes marked. Pure.

Words that are not the author's own (a quote, a forwarded message) stand behind `> `, under a line that says whose
they are: nothing inside them can end the quote.
"""

from typing import Any

from mediums.incoming import Found
from mediums.telegram import entities, rich
from mediums.telegram.entities import Me, Payload

QUOTE_LENGTH = 1000  # characters of a fragment the author chose
REPLY_LENGTH = 300  # of a message that is merely answered
NAME_LENGTH = 60


def said(message: Payload, me: Me, *, naming_files: bool = False) -> str:
    """The author's own words, without the mention that called the bot. Empty for what is no message of a person, and
    for a file without a word, unless it is to be named."""
    text, marks = entities.text_of(message)
    shown = attachment(message) or (f"[{file_kind(message)}]" if naming_files and file_kind(message) else "")
    pieces = [shown, entities.own_words(text, marks, me)]
    words = "\n".join(piece for piece in pieces if piece)
    return words or text.strip()


def context(message: Payload, me: Me) -> str:
    """Whose other words the message comes with, quoted; empty when there are none."""
    if is_topic_root(message):
        return ""
    answered = message.get("reply_to_message") or message.get("external_reply") or {}
    fragment = (message.get("quote") or {}).get("text", "")
    text = fragment or said(answered, me, naming_files=True)
    if not text:
        return ""
    whose = _whose(answered, message, me)
    return _quoted(f"[{whose}, quoted here:]", _cut(text, QUOTE_LENGTH if fragment else REPLY_LENGTH))


def forwarded(message: Payload, words: str) -> str:
    """A forwarded message is somebody else's words, all of it."""
    origin = message.get("forward_origin")
    if origin and not words:
        return f"[forwarded, from {_origin(origin)}]"
    return _quoted(f"[forwarded, written by {_origin(origin)}:]", words) if origin else words


def is_topic_root(message: Payload) -> bool:
    """In a forum topic every message that answers none "replies" to the service message that opened the topic."""
    answered = message.get("reply_to_message") or {}
    return "forum_topic_created" in answered or (
        bool(message.get("is_topic_message")) and answered.get("message_id") == message.get("message_thread_id")
    )


def addressed(message: Payload, me: Me) -> bool:
    """In a group: the bot is mentioned, named by a command, or one of its messages is answered; or all of it is one of
    its commands, which clients send without a name where it is the only bot.

    Only entities count, as Telegram marks neither code nor addresses as mentions; a command for another bot is its.
    """
    text, marks = entities.text_of(message)
    calls = [entities.called(text, mark) for mark in marks]
    commands = [name for kind, name in calls if kind == "bot_command" and "@" in name]
    if commands and not any(entities.is_command_for(me, name) for name in commands):
        return False
    answered = {} if is_topic_root(message) else message.get("reply_to_message") or {}
    return (
        answered.get("from", {}).get("id") == me.id
        or any(entities.is_command_for(me, name) for name in commands)
        or any(kind == "bot_command" and entities.is_slashed(text) for kind, _ in calls)
        or any(entities.is_mention_of(me, mark, name) for mark, (_, name) in zip(marks, calls, strict=True))
    )


def name_of(sender: Payload) -> str:
    """Of a user or of a chat that speaks as itself."""
    full = f"{sender.get('first_name', '')} {sender.get('last_name', '')}"
    return _one_line(full) or _one_line(sender.get("title", "")) or sender.get("username", "") or "somebody"


def files(message: Payload) -> tuple[Found, ...]:
    """What came with it, and in a group with the message that it answers, which the bot need not have seen."""
    answered = message.get("reply_to_message") or {}
    whole = message["chat"]["type"] == "private" or is_topic_root(message)
    others = () if whole else parts(answered)
    return tuple(file for part in (*parts(message), *others) for file in _files(part))


def parts(message: Payload) -> tuple[Payload, ...]:
    """Of a message, what may hold a file: itself, and the pictures and the like on a rich one's page."""
    return (message, *rich.media(message.get("rich_message") or {}))


def file_kind(message: Payload) -> str:
    """In a word or two, with its name; empty for none."""
    kind = next((kind for kind in FILES if kind in message), "")
    if not kind:
        return ""
    named = message[kind].get("file_name", "") if isinstance(message[kind], dict) else ""
    return f"{FILES[kind][0]} {_one_line(named)}".rstrip()


def attachment(message: Payload) -> str:
    """What came instead of words and is no file, in brackets. What can be read at once is written out."""
    for kind, describe in _ATTACHMENTS.items():
        if kind in message:
            return f"[{describe(message[kind])}]"
    return ""


# --- other people's words --------------------------------------------------------------------------------------------


def _whose(answered: Payload, message: Payload, me: Me) -> str:
    if answered.get("origin"):
        return f"{_origin(answered['origin'])} wrote elsewhere"
    author = answered.get("sender_chat") or answered.get("from") or {}
    if author.get("id") == me.id:
        return "you wrote"
    if author and author.get("id") == (message.get("sender_chat") or message.get("from") or {}).get("id"):
        return "they wrote earlier"
    return f"{name_of(author)} wrote"


def _origin(origin: Payload) -> str:
    """https://core.telegram.org/bots/api#messageorigin"""
    if origin.get("type") == "hidden_user":
        return _one_line(origin.get("sender_user_name", "")) or "somebody"
    return name_of(origin.get("sender_user") or origin.get("sender_chat") or origin.get("chat") or {})


def _quoted(heading: str, text: str) -> str:
    return heading + "\n" + "\n".join(f"> {line}" for line in text.splitlines())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _one_line(text: str) -> str:
    """A name cannot close the bracket that it stands in."""
    return " ".join(text.translate({ord("["): "(", ord("]"): ")"}).split())[:NAME_LENGTH]


# --- attachments -----------------------------------------------------------------------------------------------------


# The Bot API's field, what it is called, and a name and a media type for one that has none.
FILES = {
    "photo": ("photo", "photo.jpg", "image/jpeg"),
    "live_photo": ("live photo", "live photo.mp4", "video/mp4"),
    "animation": ("animation", "animation.mp4", "video/mp4"),  # before document: an animation carries both
    "document": ("file", "file", ""),
    "voice": ("voice message", "voice message.ogg", "audio/ogg"),
    "video": ("video", "video.mp4", "video/mp4"),
    "video_note": ("video message", "video message.mp4", "video/mp4"),
    "audio": ("audio", "audio.mp3", "audio/mpeg"),
}


def _files(message: Payload) -> tuple[Found, ...]:
    """https://core.telegram.org/bots/api#file"""
    kind = next((kind for kind in FILES if kind in message), "")
    if not kind:
        return ()
    _, name, media = FILES[kind]
    stated = message[kind][-1] if kind == "photo" else message[kind]  # of a picture's sizes the last is the largest
    return (
        Found(
            name=stated.get("file_name") or name,
            kind=stated.get("mime_type") or media,
            fetch=stated.get("file_id") or "",
            size=int(stated.get("file_size") or 0),
            why="" if stated.get("file_id") else "Telegram does not hand it over",
        ),
    )


def _unread(what: str) -> Any:
    return lambda _: f"{what}, not readable"


def _place(place: Payload) -> str:
    return f"location {place['latitude']}, {place['longitude']}"


def _task(task: Payload) -> str:
    return f"{task['text']} (done)" if task.get("completion_date") else str(task["text"])


_ATTACHMENTS: dict[str, Any] = {
    "paid_media": _unread("paid media"),
    "story": _unread("story"),
    "checklist": lambda told: f"checklist: {told['title']} " + " / ".join(_task(task) for task in told["tasks"]),
    "game": _unread("game"),
    "invoice": _unread("invoice"),
    "sticker": lambda sticker: f"sticker {sticker.get('emoji', '')}".rstrip(),
    "dice": lambda dice: f"dice {dice['emoji']} {dice['value']}",
    "contact": lambda who: f"contact: {name_of(who)}, {who['phone_number']}",
    "venue": lambda venue: f"{_one_line(venue['title'])}, {_one_line(venue['address'])}, {_place(venue['location'])}",
    "location": _place,
    "poll": lambda poll: f"poll: {poll['question']} " + " / ".join(option["text"] for option in poll["options"]),
}
