"""What a Slack message says, as one text for a reader, and its files: markup decoded, the bot's own mention out. Pure.

Slack escapes three characters and writes mentions and links in angle brackets, so a bracket that a person typed never
looks like markup: https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
Each is decoded once, after the markup around it was taken apart. Ids stay readable beside names: "@Ana (U7)".
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.record import Record, whole_text
from mediums.incoming import Found
from mediums.slack import blocks

NAME_LENGTH = 60

Payload = dict[str, Any]

_MARKUP = re.compile(r"<([^<>]+)>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}
_NO_MEMBER = ("is_restricted", "is_ultra_restricted", "is_stranger", "deleted")
_OF_OTHERS = ("is_share", "is_msg_unfurl", "from_url", "original_url", "app_unfurl_url", "bot_id")  # of an attachment
_USER = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


class Me(Record, frozen=True, kw_only=True):
    """The bot's own account, as auth.test tells it. `scopes` are what its token may do."""

    team: str
    user: str
    name: str = ""
    workspace: str = ""
    scopes: tuple[str, ...] = ()


class Profile(Record, frozen=True, kw_only=True):
    """Of a person or a bot, as users.info tells it. `team` is their own, empty when it is not told.

    `guest`: of this workspace only in part, of another one, or not any more.
    """

    name: str
    team: str = ""
    bot: bool = False
    guest: bool = False


Profiles = Mapping[str, Profile]


def profile(user: Payload) -> Profile:
    """https://docs.slack.dev/reference/objects/user-object"""
    shown = user.get("profile") or {}
    names = (shown.get("display_name"), shown.get("real_name"), user.get("real_name"), user.get("name"))
    return Profile(
        name=next((name for one in names if (name := one_line(one or ""))), "somebody"),
        team=user.get("team_id") or "",
        bot=bool(user.get("is_bot")) or user.get("id") == "USLACKBOT",
        guest=any(user.get(sign) for sign in _NO_MEMBER),
    )


def said(message: Payload, me: Me, profiles: Profiles) -> str:
    """The author's own words, with the tables that they pasted. Empty for nothing."""
    own = decoded(_without_mention(message.get("text") or "", me), profiles)
    beside = [one for one in message.get("attachments") or [] if not any(one.get(sign) for sign in _OF_OTHERS)]
    tables = blocks.tables([message, *beside], lambda raw: decoded(raw, profiles))
    return whole_text("\n".join(piece for piece in (own, tables) if piece))


def shared(message: Payload, profiles: Profiles) -> str:
    """Other people's messages that the author shared with this one, quoted; empty when there are none."""
    return "\n".join(_shared(one, profiles) for one in _passed_on(message))


def _shared(one: Payload, profiles: Profiles) -> str:
    name = one_line(one.get("author_name") or "") or "somebody"
    inside = [
        block for told in one.get("message_blocks") or [] for block in (told.get("message") or {}).get("blocks") or []
    ]
    text = decoded(one.get("text") or "", profiles) or blocks.text(inside, lambda raw: decoded(raw, profiles))
    if not (text or one.get("files")):
        text = decoded(one.get("fallback") or "", profiles)
    return quoted(f"[shared, written by {name}:]", text) if text else f"[shared, from {name}]"


def _passed_on(message: Payload) -> list[Payload]:
    return [one for one in message.get("attachments") or [] if one.get("is_share") or one.get("is_msg_unfurl")]


def attached(message: Payload, profiles: Profiles) -> str:
    """What a robot has put beside its text or in its place, in short."""

    def decode(raw: str) -> str:
        return decoded(raw, profiles)

    told = [blocks.text(message.get("blocks") or [], decode)]
    for one in message.get("attachments") or []:
        told.append(
            decode(one.get("text") or "")
            or blocks.text(one.get("blocks") or [], decode)
            or decode(one.get("fallback") or one.get("title") or "")
        )
    return whole_text("\n".join(one for one in told if one))


def mentions(message: Payload) -> Iterator[str]:
    """The ids of all who are named."""
    return (found.group(1) for found in _USER.finditer(message.get("text") or ""))


def decoded(raw: str, profiles: Profiles) -> str:
    """Slack's markup as plain text."""
    pieces = _MARKUP.split(raw)  # text and what stood in brackets, in turn
    return "".join(
        _reference(piece, profiles) if number % 2 else _plain(piece) for number, piece in enumerate(pieces)
    ).strip()


def one_line(text: str) -> str:
    """A name cannot close the bracket that it stands in."""
    return " ".join(whole_text(text).translate({ord("["): "(", ord("]"): ")"}).split())[:NAME_LENGTH]


def quoted(heading: str, text: str) -> str:
    return "\n".join([heading, *(f"> {line}" for line in text.splitlines())])


# --- inside a text ---------------------------------------------------------------------------------------------------


def _without_mention(raw: str, me: Me) -> str:
    """Mentions of the bot go, with the comma or colon that calls it."""
    for found in reversed([found for found in _USER.finditer(raw) if found.group(1) == me.user]):
        before, after = raw[: found.start()], raw[found.end() :]
        raw = before + (after.lstrip(" ,:") if not before.strip() or before[-1].isspace() else after)
    return raw.strip()


def _plain(text: str) -> str:
    return _ENTITY.sub(lambda found: _CHARACTERS[found.group(1)], text)


def _reference(inside: str, profiles: Profiles) -> str:
    target, bar, label = (_plain(part) for part in inside.partition("|"))
    match target[:1]:
        case "@":
            known = profiles.get(target[1:])
            return _named("@", label or (known.name if known else ""), target[1:])
        case "#":
            return _named("#", label, target[1:])
        case "!":
            return _special(target[1:], label)
        case _:
            return _link(target, label if bar else "")


def _named(sign: str, name: str, identity: str) -> str:
    return f"{sign}{one_line(name)} ({identity})" if name else f"{sign}{identity}"


def _special(target: str, label: str) -> str:
    """`!here`, `!subteam^S1|@oncall`, `!date^1767600000^{date}|5 Jan`: the label is what a reader sees."""
    kind, _, rest = target.partition("^")
    if kind == "subteam":
        return _named("@", label.removeprefix("@"), rest)
    if kind == "date" and not label:
        return _moment(rest.partition("^")[0])
    return label if label.startswith("@") or kind == "date" else f"@{label or kind}"


def _moment(seconds: str) -> str:
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC" if seconds.isdecimal() else "a date"


def _link(target: str, label: str) -> str:
    scheme, _, rest = target.partition(":")
    shown = rest if scheme in ("mailto", "tel") else target
    if scheme == "tel":
        return label or shown
    same = not label or label in (shown, target, rest.removeprefix("//"))
    return shown if same else f"{label} ({shown})"


# --- files -----------------------------------------------------------------------------------------------------------


def files(message: Payload) -> tuple[Found, ...]:
    """What came with it, and with the messages that are shared with it."""
    return tuple(file(one) for part in (message, *_passed_on(message)) for one in part.get("files") or [])


def file(told: Payload) -> Found:
    """https://docs.slack.dev/reference/objects/file-object; one that is gone or not shown has no name.

    Fetched by its address. Where Slack wants to be asked for it first (as in shared channels) it has only an id.
    """
    name, kind = told.get("name") or told.get("title") or "file", told.get("mimetype") or ""
    why = ""
    if told.get("mode") == "tombstone":
        why = "it was deleted"
    elif told.get("mode") == "hidden_by_limit":
        why = "Slack no longer shows it, as the workspace is over its limit"
    elif told.get("is_external") or told.get("mode") == "external":
        why = "it is not kept at Slack but elsewhere; please send the file itself"
    address = told.get("url_private_download") or told.get("url_private") or told.get("id") or ""
    return Found(name=name, kind=kind, fetch=str(address), size=int(told.get("size") or 0), why=why)


# --- emojis ----------------------------------------------------------------------------------------------------------

_EMOJIS = {
    "👍": "+1",
    "👎": "-1",
    "❤": "heart",
    "🎉": "tada",
    "👀": "eyes",
    "🙏": "pray",
    "😁": "grin",
    "🤔": "thinking_face",
    "👌": "ok_hand",
    "🔥": "fire",
    "😢": "cry",
    "💯": "100",
}
_ALIASES = {"thumbsup": "👍", "thumbsdown": "👎"}
_CHARACTERS_OF = {name: emoji for emoji, name in _EMOJIS.items()} | _ALIASES


def emoji_name(emoji: str) -> str | None:
    """Slack's name of it, without colons, for those that the assistant uses."""
    return _EMOJIS.get(emoji.removesuffix("\ufe0f"))


def emoji_of(name: str) -> str:
    """As a character where it is one of those, else as its name; a skin tone is left out."""
    plain = name.partition("::")[0]
    return _CHARACTERS_OF.get(plain, f":{one_line(plain)}:")
