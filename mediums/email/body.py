"""What a mail says, as one text for a reader, and its files: the right parts of it, the rest left out. Pure.

Of alternatives the plain one is read, unless it is blank; parts that stand side by side are read one after the other.
An attached mail is somebody else's: it is a file, its beginning is quoted, and nothing in it counts for anything else.
Nothing is ever fetched from an address in a mail.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from email.policy import Compat32

from gateway.record import Record, whole_text
from mediums.email import quotes
from mediums.email.charsets import codec, decoded
from mediums.email.flowed import unflowed
from mediums.email.headers import UNREADABLE, Fields, only_mailbox, subject_of, text_of
from mediums.email.hypertext import GOES_ON, from_html

DEPTH = 8  # of parts in parts
PARTS = 100
TEXT_LENGTH = 40_000  # characters; an event has 256 KB at most
HTML_LENGTH = 1_000_000
ATTACHED_LENGTH = 2000
NAME_LENGTH = 80
META_BYTES = 2048
DECORATION_BYTES = 30_000  # of a picture within a text

Part = Message  # compat32: headers as they came

_ALREADY_SHOWN = re.compile(r"cid:([^\"'\s>]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
# https://www.rfc-editor.org/rfc/rfc9580#name-cleartext-signature-framewo
_SIGNED = re.compile(r"\A\s*-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n")
_SIGNATURE = re.compile(
    r"^-----BEGIN PGP SIGNATURE-----\r?$.*?^-----END PGP SIGNATURE-----\r?$", re.DOTALL | re.MULTILINE
)
_ESCAPED = re.compile(r"^- ", re.MULTILINE)
_CLOSED = "[this mail is encrypted or sealed, by S/MIME or PGP: it cannot be read here; say so]"
_MORE_PARTS = "[there is more in this mail: it has too many parts in parts, which were not read]"
_SEALED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
_METHODS = {"CANCEL": "cancelled invitation", "REPLY": "answer to an invitation", "COUNTER": "other time proposed"}
_PARTSTAT = re.compile(r"PARTSTAT=\"?([A-Z-]{3,20})", re.IGNORECASE)
_DATE = re.compile(r"^(\d{8})(?:T(\d{6})(Z?))?$")


class _AsItCame(Compat32):
    """The library's own refuses to write what it has read (`X: a\\x0bY: b`)."""

    def fold_binary(self, name: str, value: str) -> bytes:
        return f"{name}: {value}{self.linesep}".encode("utf-8", "surrogateescape")


_AS_IT_CAME = _AsItCame()


class Enclosed(Record, frozen=True, kw_only=True):
    name: str
    kind: str
    data: bytes


class Read(Record, frozen=True, kw_only=True):
    """`text` is empty for a mail with nothing in it."""

    text: str
    files: tuple[Enclosed, ...] = ()


@dataclass
class _Found:
    texts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    attached: list[Enclosed] = field(default_factory=list)
    shown_images: set[str] = field(default_factory=set)
    parts: int = 0


def read(message: "Part[str, str]", *, at_length: bool = False) -> Read:
    """The person's words, then those that came with them, and the files. `at_length` for a thread that is new here."""
    found = _Found()
    _read(message, found, 0)
    words = quotes.own_words("\n\n".join(text for text in found.texts if text.strip()), at_length=at_length)
    text = "\n\n".join(piece for piece in (_cut(words), *found.notes) if piece)
    return Read(text=whole_text(text), files=tuple(found.attached))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else f"{text[:TEXT_LENGTH]}…\n{GOES_ON}"


def _read(part: "Part[str, str]", found: _Found, depth: int) -> None:
    found.parts += 1
    if depth > DEPTH or found.parts > PARTS:
        found.notes += [] if _MORE_PARTS in found.notes else [_MORE_PARTS]
        return
    kind = part.get_content_type()
    if kind == "message/rfc822":
        _attached_mail(part, found, depth)
    elif kind in _SEALED:
        found.texts.append(_CLOSED)
    elif kind == "multipart/alternative" and part.is_multipart():
        _alternatives([one for one in part.get_payload() if isinstance(one, Message)], found, depth)
    elif part.is_multipart():
        inner = [one for one in part.get_payload() if isinstance(one, Message)]
        if kind == "multipart/signed":
            inner = inner[:1]  # the other is the signature
        for one in inner:
            _read(one, found, depth + 1)
    elif _is_attachment(part, kind):
        _attachment(part, kind, found)
    elif kind == "text/html":
        found.shown_images |= _shown_in(_text(part))
        found.texts.append(from_html(_text(part)))
    elif kind == "text/calendar":
        _invitation(part, found)
    else:
        text = _unframed(_text(part))
        found.texts.append(_CLOSED if text.lstrip().startswith("-----BEGIN PGP MESSAGE-----") else text)


def _unframed(text: str) -> str:
    """What is signed within the text."""
    if not _SIGNED.match(text):
        return text
    return _ESCAPED.sub("", _SIGNATURE.sub("", _SIGNED.sub("", text), count=1))


def _alternatives(inner: "list[Part[str, str]]", found: _Found, depth: int) -> None:
    """The best of them, and what an invitation says besides."""
    best = [_best(inner)] if inner else []
    for one in inner:
        if one in best or one.get_content_type() == "text/calendar":
            _read(one, found, depth + 1)
        else:
            _files_within(one, found, depth + 1, alone=True)


def _files_within(part: "Part[str, str]", found: _Found, depth: int, *, alone: bool = False) -> None:
    """Of an alternative that is not read: Apple's programs put the files between the pieces of its HTML."""
    found.parts += 1
    kind = part.get_content_type()
    if depth > DEPTH or found.parts > PARTS:
        return
    if part.is_multipart() and kind != "message/rfc822":
        for one in part.get_payload():
            if isinstance(one, Message):
                _files_within(one, found, depth + 1)
    elif kind == "text/html":
        found.shown_images |= _shown_in(_text(part))
    elif not alone and _is_attachment(part, kind):
        _attachment(part, kind, found)


def _best(alternatives: "list[Part[str, str]]") -> "Part[str, str]":
    """The plain text, unless it says nothing; an invitation's text is said by what it invites to."""
    plain = [one for one in alternatives if one.get_content_type() == "text/plain" and _text(one).strip()]
    others = [one for one in alternatives if one.get_content_type() != "text/plain"]
    html = [one for one in others if one.get_content_type() == "text/html" or one.is_multipart()]
    return next(iter([*plain, *html, *others, *alternatives]))


def _is_attachment(part: "Part[str, str]", kind: str) -> bool:
    disposition = str(part.get("content-disposition", "")).partition(";")[0].strip().casefold()
    if kind == "text/calendar":
        return False
    if kind.startswith("multipart/"):  # its boundary is nowhere: what there is is its text
        return False
    named = bool(_file_name(part)) and (bool(disposition) or kind not in ("text/plain", "text/html"))
    return disposition == "attachment" or named or not kind.startswith("text/")


def _attachment(part: "Part[str, str]", kind: str, found: _Found) -> None:
    """A small picture that the text shows is of a signature, and handed over by nobody; a large one was put there to be
    looked at."""
    shown, data = str(part.get("content-id", "")).strip().strip("<>").casefold(), _data(part)
    if len(data) > DECORATION_BYTES or not (kind.startswith("image/") and shown and shown in found.shown_images):
        found.attached.append(Enclosed(name=_file_name(part) or "attachment", kind=kind, data=data))


def _shown_in(html: str) -> set[str]:
    return {one.casefold() for one in _ALREADY_SHOWN.findall(html)}


def _file_name(part: "Part[str, str]") -> str:
    try:
        name = part.get_filename() or ""
    except (LookupError, UnicodeError, ValueError, TypeError):
        name = ""
    return _one_line(text_of(name))


def _data(part: "Part[str, str]") -> bytes:
    """The library knows an encoding only where nothing stands behind its name."""
    stated = str(part.get("content-transfer-encoding", ""))
    meant = re.split(r"[;(]", stated)[0].strip()
    if meant != stated:
        part.replace_header("content-transfer-encoding", meant)
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: "Part[str, str]") -> str:
    data = _data(part)
    try:
        label = part.get_content_charset("") or ""
    except (LookupError, UnicodeError, ValueError, TypeError):
        label = ""
    if part.get_content_type() == "text/html" and codec(label) is None:
        label = _stated_inside(data)
    text = decoded(data, label)[: HTML_LENGTH if part.get_content_type() == "text/html" else 4 * TEXT_LENGTH]
    if _parameter(part, "format") == "flowed" and part.get_content_type() == "text/plain":
        return unflowed(text, delsp=_parameter(part, "delsp") == "yes")
    return text


def _stated_inside(data: bytes) -> str:
    """https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding"""
    found = _META.search(data[:META_BYTES])
    return found[1].decode("ascii") if found else ""


def _parameter(part: "Part[str, str]", name: str) -> str:
    try:
        return str(part.get_param(name, "")).casefold()
    except (LookupError, UnicodeError, ValueError, TypeError):
        return ""


# --- what else comes by mail -----------------------------------------------------------------------------------------


def _attached_mail(part: "Part[str, str]", found: _Found, depth: int) -> None:
    """Its text is quoted once, at the first depth; what is attached to it is named inside the quote."""
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) and payload else None
    if not isinstance(inner, Message):
        return
    fields = Fields(inner)
    subject = _one_line(subject_of(fields)) or "mail"
    found.attached.append(Enclosed(name=f"{subject}.eml", kind="message/rfc822", data=_bytes(inner)))
    if depth >= 2:
        return
    writer = only_mailbox(fields.all("from"))
    within = _Found()
    _read(inner, within, max(depth, 1) + 1)
    text = "\n".join([*within.texts, *(f"[attachment {one.name}]" for one in within.attached)])
    heading = f"[the attached mail “{subject}”, written by {writer.address if writer else 'somebody'}:]"
    if text.strip():
        found.notes.append(quotes.quoted(heading, text.strip(), ATTACHED_LENGTH))


def _bytes(message: "Part[str, str]") -> bytes:
    """As it came, as far as the parser has kept it."""
    try:
        return message.as_bytes(policy=_AS_IT_CAME)
    except UNREADABLE:
        return b""


def _invitation(part: "Part[str, str]", found: _Found) -> None:
    """Named, never answered by itself: https://www.rfc-editor.org/rfc/rfc5545"""
    lines = re.sub(r"\r?\n[ \t]", "", _text(part)).splitlines()
    event = lines[lines.index("BEGIN:VEVENT") :] if "BEGIN:VEVENT" in lines else lines
    values: dict[str, tuple[str, str]] = {}
    for line in event:
        name, _, value = line.partition(":")
        key, _, parameters = name.partition(";")
        values.setdefault(key.upper(), (parameters, value))
    method = next((line.partition(":")[2].strip().upper() for line in lines if line.upper().startswith("METHOD:")), "")
    summary = re.sub(r"\\([,;nN\\])", _unescaped, values.get("SUMMARY", ("", "without a title"))[1])
    start, end = (_moment(values[key]) if key in values else "" for key in ("DTSTART", "DTEND"))
    when = f", {start}" + (f" to {end}" if end else "") if start else ""
    said = _PARTSTAT.search(values.get("ATTENDEE", ("", ""))[0]) if method in ("REPLY", "COUNTER") else None
    answer = f", {said[1].lower()}" if said else ""
    found.texts.append(f"[{_METHODS.get(method, 'invitation')}: {_one_line(summary)}{when}{answer}]")
    found.attached.append(Enclosed(name=_file_name(part) or "invite.ics", kind="text/calendar", data=_data(part)))


def _unescaped(found: "re.Match[str]") -> str:
    return " " if found[1] in "nN" else found[1]


def _moment(stamped: tuple[str, str]) -> str:
    parameters, value = stamped
    found = _DATE.match(value.strip())
    if found is None:
        return _one_line(value)
    try:
        day = datetime.strptime(found[1] + (found[2] or "000000"), "%Y%m%d%H%M%S")
    except ValueError:
        return _one_line(value)
    zone = re.search(r"TZID=\"?([^;:\"]+)", parameters, re.IGNORECASE)
    told = "UTC" if found[3] else _one_line(zone[1]) if zone else "local time"
    return f"{day:%Y-%m-%d %H:%M} {told}" if found[2] else f"{day:%Y-%m-%d}"


def _one_line(text: str) -> str:
    """A name cannot close the bracket that it stands in."""
    return " ".join(text.translate({ord("["): "(", ord("]"): ")"}).split())[:NAME_LENGTH]
