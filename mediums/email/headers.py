"""What stands in a mail's header, read as senders really write it. Pure; nothing here raises on any bytes.

The standard library's parsed headers are not used: they raise on bracketed Message-IDs and unknown charsets, take
`boss@corp.example <evil@attacker.example>` for boss, and show the first of two From fields. Fields are taken raw, in
their order, and read here: https://www.rfc-editor.org/rfc/rfc5322 and https://www.rfc-editor.org/rfc/rfc2047
"""

import base64
import binascii
import quopri
import re
from collections.abc import Iterable
from email.errors import MessageError
from email.message import Message

from gateway.record import Record
from mediums.email.charsets import decoded

NAME_LENGTH = 60
SUBJECT_LENGTH = 300
ID_LENGTH = 250  # longer ones are nobody's; a header line has 998 octets
FIELDS_READ = 400
FIELD_LENGTH = 50_000

# From the library's parser and writer, on broken mail.
UNREADABLE = (MessageError, RecursionError, LookupError, ValueError, TypeError, AttributeError)

_ENCODED = re.compile(r"=\?([^?\s]*)\?([bBqQ])\?([^?]*(?:\?(?!=)[^?]*)*)\?=")  # a question mark in it is not allowed
_ADDRESS = re.compile(r"[^\s<>()@,;:\"\[\]\\]+@[^\s<>()@,;:\"\[\]\\]+")
_ID = re.compile(r"<[^<>\s]+>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def text_of(raw: str) -> str:
    """A raw header value as one line: unfolded, encoded words decoded, nothing that could break a line."""
    raw = raw.replace("\r", "").replace("\n", "")
    shown: list[str] = []
    words: list[tuple[str, bytes]] = []  # adjacent ones; of one charset they are joined before they are decoded
    at = 0
    for found in _ENCODED.finditer(raw):
        between = raw[at : found.start()]
        if between.strip() or not words:
            shown += [decoded(data, charset) for charset, data in words]
            words = []
            shown.append(_eight_bit(between))
        charset, data = found[1].partition("*")[0].casefold(), _word(found[2], found[3])
        if words and words[-1][0] == charset:
            words[-1] = (charset, words[-1][1] + data)
        else:
            words.append((charset, data))
        at = found.end()
    shown += [decoded(data, charset) for charset, data in words]
    shown.append(_eight_bit(raw[at:]))
    return " ".join(_CONTROL.sub(" ", "".join(shown)).split())


def _word(encoding: str, text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return quopri.decodestring(data, header=True)
    try:
        return base64.b64decode(data.rstrip(b"=") + b"=" * (-len(data.rstrip(b"=")) % 4))
    except (binascii.Error, ValueError):
        return data


def _eight_bit(raw: str) -> str:
    return decoded(raw.encode("utf-8", "surrogateescape"), "")


# --- fields ----------------------------------------------------------------------------------------------------------


class Fields:
    """The header of one message, in order, each value raw and unfolded."""

    def __init__(self, message: "Message[str, str]") -> None:
        self.items: tuple[tuple[str, str], ...] = tuple(
            (name.casefold().strip(), str(value)[:FIELD_LENGTH].replace("\r", "").replace("\n", ""))
            for name, value in list(message.raw_items())[:FIELDS_READ]
        )

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self.items if key == name)

    def first(self, name: str) -> str:
        """The topmost, nearest to the receiving server; empty without one."""
        return next(iter(self.all(name)), "").strip()

    def text(self, name: str) -> str:
        return text_of(self.first(name))

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.items)


def subject_of(fields: Fields) -> str:
    subject = fields.text("subject")
    return subject if len(subject) <= SUBJECT_LENGTH else subject[: SUBJECT_LENGTH - 1] + "…"


# --- addresses -------------------------------------------------------------------------------------------------------


class Mailbox(Record, frozen=True, kw_only=True):
    """`address` in lower case; `name` as shown, empty where it passes itself off as another address."""

    address: str
    name: str = ""


def mailboxes(values: Iterable[str]) -> tuple[Mailbox, ...]:
    """Those of To, Cc and their like that can be read; groups are their members."""
    found: dict[str, Mailbox] = {}
    for value in values:
        for piece in _pieces(value):
            one = _mailbox(piece)
            if one is not None:
                found.setdefault(one.address, one)
    return tuple(found.values())


def only_mailbox(values: Iterable[str]) -> Mailbox | None:
    """For From: the one mailbox of the one field. None when there are more, or when it can be read in two ways."""
    fields = list(values)
    pieces = _pieces(fields[0]) if len(fields) == 1 else []
    return _mailbox(pieces[0]) if len(pieces) == 1 else None


def _pieces(value: str) -> list[str]:
    """Cut at commas and group marks that stand in no quotes, comment or brackets; comments are left out."""
    pieces, piece, quoted, depth, angle, escaped = [], "", False, 0, False, False
    for character in value:
        if escaped:
            escaped = False
            piece += character if not depth else ""
        elif character == "\\" and (quoted or depth):
            escaped = True
            piece += character if not depth else ""
        elif quoted:
            quoted = character != '"'
            piece += character
        elif character == "(":
            depth += 1
        elif depth:
            depth -= character == ")"
        elif character in ",;" and not angle:
            pieces.append(piece)
            piece = ""
        elif character == ":" and not angle:
            piece = ""  # the name of a group
        else:
            quoted = character == '"'
            angle = character == "<" or (angle and character != ">")
            piece += character
    pieces.append(piece)
    return [one.strip() for one in pieces if one.strip()]


def _mailbox(piece: str) -> Mailbox | None:
    piece = _eight_bit(piece)
    unquoted = re.sub(r'"(?:\\.|[^"\\])*"', "", piece)
    if "<" not in unquoted:
        return Mailbox(address=piece.casefold()) if _ADDRESS.fullmatch(piece) else None
    display, _, rest = piece.rpartition("<")
    address = rest.removesuffix(">").strip()
    if unquoted.count("<") != 1 or not rest.endswith(">") or not _ADDRESS.fullmatch(address):
        return None
    return Mailbox(address=address.casefold(), name=shown_name(display, address))


def shown_name(display: str, address: str) -> str:
    """A display name is its sender's own claim: one that holds another address is not shown."""
    name = re.sub(r"\\(.)", r"\1", display.strip().removeprefix('"').removesuffix('"'))
    name = text_of(name).translate({ord("["): "(", ord("]"): ")"})[:NAME_LENGTH].strip()
    return "" if "@" in name and name.casefold() != address.casefold() else name


# --- ids -------------------------------------------------------------------------------------------------------------


def message_id(fields: Fields) -> str | None:
    """Byte for byte, with its brackets; None where it has none that could be written in an answer."""
    found = _ID.search(fields.first("message-id"))
    return found.group() if found and _can_be_written(found.group()) else None


def references(fields: Fields) -> tuple[str, ...]:
    """The ids that this mail comes after, the oldest first, each once: RFC 5322, section 3.6.4."""
    ids = [found for found in _ID.findall(" ".join(fields.all("references"))) if _is_id(found)]
    if not ids:
        parents = [found for found in _ID.findall(fields.first("in-reply-to")) if _is_id(found)]
        ids = parents if len(parents) == 1 else []
    return tuple(dict.fromkeys(ids))


def _is_id(text: str) -> bool:
    return text.count("@") == 1 and _can_be_written(text)


def _can_be_written(text: str) -> bool:
    return text.isascii() and text.isprintable() and len(text) <= ID_LENGTH
