"""What a Slack message says, as one text for a reader: markup decoded, the bot's own mention out, files named. Pure.

Slack escapes three characters and writes mentions and links in angle brackets, so a bracket that a person typed never
looks like markup: https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
Each is decoded once, after the markup around it was taken apart. Ids stay readable beside names: "@Ana (U7)".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.record import Record, whole_text

OLD_TEXT_LENGTH = 300  # of an edited message, shown beside the new text
NAME_LENGTH = 60
FILES_NAMED = 20

Payload = dict[str, Any]

_MARKUP = re.compile(r"<([^<>]+)>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}
_USER = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


class Me(Record, frozen=True, kw_only=True):
    """The bot's own account, as auth.test tells it. `scopes` are what its token may do."""

    team: str
    user: str
    name: str = ""
    workspace: str = ""
    scopes: tuple[str, ...] = ()


class Profile(Record, frozen=True, kw_only=True):
    """Of a person or a bot, as users.info tells it. `team` is their own, empty when it is not told."""

    name: str
    team: str = ""
    bot: bool = False


Profiles = Mapping[str, Profile]


def profile(user: Payload) -> Profile:
    """https://docs.slack.dev/reference/objects/user-object"""
    shown = user.get("profile") or {}
    names = (shown.get("display_name"), shown.get("real_name"), user.get("real_name"), user.get("name"))
    return Profile(
        name=next((name for one in names if (name := one_line(one or ""))), "somebody"),
        team=user.get("team_id") or "",
        bot=bool(user.get("is_bot")) or user.get("id") == "USLACKBOT",
    )


def said(message: Payload, me: Me, profiles: Profiles) -> str:
    """The author's own words, with the files that came along. Empty for nothing."""
    words = decoded(_without_mention(message.get("text") or "", me), profiles)
    return whole_text("\n".join(piece for piece in (words, *_files(message)) if piece))


def shared(message: Payload, profiles: Profiles) -> str:
    """Other people's messages that the author shared with this one, quoted; empty when there are none."""
    passed_on = [one for one in message.get("attachments") or [] if one.get("is_share")]
    return "\n".join(
        quoted(
            f"[shared, written by {one_line(one.get('author_name', '')) or 'somebody'}:]",
            decoded(one.get("text") or one.get("fallback") or "", profiles),
        )
        for one in passed_on
    )


def edited(text: str, before: str) -> str:
    old = before if len(before) <= OLD_TEXT_LENGTH else before[: OLD_TEXT_LENGTH - 1] + "…"
    return "\n".join([quoted("[edited an earlier message, which said:]", old), "[and now says:]", text])


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
    return label or f"@{kind}"


def _link(target: str, label: str) -> str:
    scheme, _, rest = target.partition(":")
    shown = rest if scheme in ("mailto", "tel") else target
    if scheme == "tel":
        return label or shown
    same = not label or label in (shown, target, rest.removeprefix("//"))
    return shown if same else f"{label} ({shown})"


# --- files -----------------------------------------------------------------------------------------------------------


def _files(message: Payload) -> Iterator[str]:
    """https://docs.slack.dev/reference/objects/file-object; one that is gone or not shown has no name."""
    files = message.get("files") or []
    for file in files[:FILES_NAMED]:
        if file.get("mode") == "tombstone":
            yield "[a file that was deleted]"
        elif file.get("mode") == "hidden_by_limit":
            yield "[a file that Slack no longer shows]"
        else:
            yield f"[{' '.join(filter(None, ('file', one_line(file.get('name') or ''))))}, not yet readable]"
    if len(files) > FILES_NAMED:
        yield f"[and {len(files) - FILES_NAMED} more files]"
