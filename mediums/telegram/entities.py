"""What a text's entities say: mentions taken out, hidden links and what a mark means written out. Pure.

Offsets are in UTF-16 code units (https://core.telegram.org/bots/api#messageentity), so all cutting is done on UTF-16.
A mark is written as in Markdown where the words would say something else without it: what is struck out, what is
quoted, what is code.
"""

from collections.abc import Iterator
from typing import Any

from gateway.commands import command
from gateway.record import Record, whole_text
from mediums.telegram import rich

Payload = dict[str, Any]
Edit = tuple[int, int, int, int, str]  # from, in which order there, to, what stands there instead; in UTF-16 units

_QUOTES = ("blockquote", "expandable_blockquote")
_AROUND = {"strikethrough": "~~", "code": "`"}
_CLOSING, _OPENING = 0, 1


class Me(Record, frozen=True, kw_only=True):
    """The bot, as getMe tells of it. `account` is the one of its token, under which its messages leave."""

    id: int
    username: str
    account: str


def text_of(message: Payload) -> tuple[str, list[Payload]]:
    """Its text or caption, and the entities in that."""
    if "text" in message:
        return message["text"], message.get("entities", [])
    if message.get("rich_message"):
        return rich.told(message["rich_message"])
    return message.get("caption", ""), message.get("caption_entities", [])


def own_words(text: str, entities: list[Payload], me: Me) -> str:
    """Hidden links are written out; mentions of the bot go, with the comma or colon that calls it."""
    units, said, at = _units(text), b"", 0
    for start, _, _, end, instead in sorted(_edits(text, entities, me)):
        if end >= at:
            said += units[2 * at : 2 * start] + _units(instead)
            at = end
    words = _string(said + units[2 * at :])
    return words if words.strip() else ""  # a half of a split paste may begin or end with a space that counts


def called(text: str, entity: Payload) -> tuple[str, str]:
    start, length = entity["offset"], entity["length"]
    return entity["type"], _string(_units(text)[2 * start : 2 * (start + length)]) if start >= 0 else ""


def is_mention_of(me: Me, entity: Payload, name: str) -> bool:
    if entity["type"] == "text_mention":
        return bool(entity.get("user", {}).get("id") == me.id)
    return entity["type"] == "mention" and name.casefold() == f"@{me.username}".casefold()


def is_command_for(me: Me, name: str) -> bool:
    return name.startswith("/") and name.partition("@")[2].casefold() == me.username.casefold()


def is_slashed(text: str) -> bool:
    found = command(text)
    return found is not None and not found.plain


def _edits(text: str, entities: list[Payload], me: Me) -> Iterator[Edit]:
    length, quotes = _length(text), [one for one in entities if one["type"] in _QUOTES]
    outermost_first = sorted(entities, key=lambda one: (one["offset"], -one["length"], one not in quotes))
    for number, entity in enumerate(outermost_first):
        start, end = entity["offset"], entity["offset"] + entity["length"]
        inside = any(one["offset"] <= start and end <= one["offset"] + one["length"] for one in quotes)
        if start >= 0 and end <= length and not (entity["type"] == "pre" and inside):
            for opens, closes, instead in _of(text, entity, me):
                rank = (_CLOSING, -number) if closes == opens == end else (_OPENING, number)
                yield (opens, *rank, closes, instead)


def _of(text: str, entity: Payload, me: Me) -> list[tuple[int, int, str]]:
    """From, to, and what stands there instead."""
    kind, name = called(text, entity)
    start, end = entity["offset"], entity["offset"] + entity["length"]
    if kind == "text_link" and entity.get("url", "").rstrip("/") != name.rstrip("/"):
        return [(end, end, f" ({entity['url']})")]
    if kind == "bot_command" and is_command_for(me, name):
        return [(start, end, name.partition("@")[0])]
    if is_mention_of(me, entity, name):
        return [(start, end + _comma(text, start, end), "")]
    if kind in _QUOTES:
        lines = [0, *(at + 1 for at, one in enumerate(name[:-1]) if one == "\n")]
        return [(start + _length(name[:at]), start + _length(name[:at]), "> ") for at in lines]
    if kind == "pre" and name.strip():
        closing = "```" if name.endswith("\n") else "\n```"
        return [(start, start, f"```{entity.get('language', '')}\n"), (end, end, closing)]
    if kind in _AROUND and name.strip():
        start += _length(name[: len(name) - len(name.lstrip())])
        end -= _length(name[len(name.rstrip()) :])
        return [(start, start, _AROUND[kind]), (end, end, _AROUND[kind])]
    return []


def _comma(text: str, start: int, end: int) -> int:
    """How much of what follows belongs to the call."""
    units = _units(text)
    before, after = _string(units[: 2 * start]), _string(units[2 * end :])
    calls = not before.strip() or before[-1].isspace()
    return len(after) - len(after.lstrip(" ,:")) if calls else 0


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _string(units: bytes) -> str:
    return whole_text(units.decode("utf-16-le", "surrogatepass"))


def _length(text: str) -> int:
    return len(_units(text)) // 2
