"""From an answer to a mail on the wire: whom it goes to, what it answers, and its bytes. Pure.

All that an answer needs stands in its route, so that it can be written an hour later, after a restart, and when the
mail that it answers has been deleted: `reply_to` is a mailto address with the fields of the answer
(https://www.rfc-editor.org/rfc/rfc6068 allows In-Reply-To there). A route without `reply_to`, whose place is a mailto
address, is a mail of its own.

Message-IDs are made here from the thread and the send's key. So a mail that answers one of ours is known by that alone
to belong to the thread, with nothing remembered; and one send has one id, however often it is tried.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from email.charset import QP, Charset
from email.encoders import encode_base64
from email.header import Header
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.policy import compat32
from email.utils import format_datetime
from urllib.parse import parse_qsl, quote, unquote

from gateway.addresses import Route
from gateway.files import LARGEST_BYTES, size_text
from gateway.outbox import Carried, Rejected
from gateway.outbox_state import mark_of
from gateway.record import Record
from mediums import markup
from mediums.email.account import Account
from mediums.email.robots import STAMP

REFERENCES = 20  # ids in an answer: the first, and the last ones
OWN_SUBJECT_LENGTH = 70
LINE_LENGTH = 78

_SCHEME = "mailto:"
_REPLY = re.compile(r"^\s*(?:(?:re|aw|antw|sv|vs|odp|ref)\s*(?:\[\d+\]|\(\d+\))?\s*:\s*)+", re.IGNORECASE)
_STYLE = (
    "table{border-collapse:collapse}th,td{border:1px solid #bbb;padding:2px 8px;text-align:left}"
    "pre{background:#f4f4f4;padding:8px}blockquote{margin-left:0;padding-left:10px;border-left:3px solid #bbb}"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UTF8 = Charset("utf-8")
_UTF8.body_encoding = QP
_POLICY = compat32.clone(linesep="\r\n", max_line_length=LINE_LENGTH, mangle_from_=False)


class Target(Record, frozen=True, kw_only=True):
    """Whom an answer goes to, and what it answers. `references` are the ids before `answers`, the oldest first."""

    to: str
    subject: str = ""
    answers: str | None = None
    references: tuple[str, ...] = ()

    def uri(self) -> str:
        fields = [("subject", self.subject), ("in-reply-to", self.answers or ""), ("references", self._kept())]
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields if value)
        return f"{_SCHEME}{quote(self.to, safe='@')}" + (f"?{query}" if query else "")

    def _kept(self) -> str:
        """Bounded as in RFC 5322, section 3.6.4: a thread hangs by its first id and its last ones."""
        kept = self.references if len(self.references) < REFERENCES else (
            self.references[0], *self.references[-(REFERENCES - 2) :]
        )  # fmt: skip
        return " ".join(kept)


class Letter(Record, frozen=True, kw_only=True):
    """One mail, ready to send; `sender` and `recipient` are those of the envelope."""

    sender: str
    recipient: str
    message_id: str
    data: bytes


def target(uri: str) -> Target:
    """Raises ValueError for what is no mailto address of one person."""
    if not uri.lower().startswith(_SCHEME):
        raise ValueError(f"{uri[:60]!r} is no mailto address")
    address, _, query = uri[len(_SCHEME) :].partition("?")
    to = unquote(address)
    if not re.fullmatch(r"[^\s,;<>@]+@[^\s,;<>@]+", to):
        raise ValueError(f"{to[:60]!r} is no mail address")
    # A plus sign stands for itself here, unlike in a form.
    fields = {name.lower(): value for name, value in parse_qsl(query.replace("+", "%2B"), errors="replace")}
    return Target(
        to=to,
        subject=fields.get("subject", ""),
        answers=fields.get("in-reply-to"),
        references=tuple(fields.get("references", "").split()),
    )


def letter(
    account: Account, route: Route, markdown: str, key: str, now: datetime, files: Sequence[Carried] = ()
) -> Letter:
    """Raises Rejected for a route that is no mail's, and for an addressee that cannot be written to."""
    try:
        to = target(route.reply_to or route.place)
    except ValueError as error:
        raise Rejected(f"{error}: an answer by mail needs a mail that it answers, or a mailto address") from None
    if sum(len(one.data) for one in files) > LARGEST_BYTES:
        raise Rejected(f"together the files are larger than the {size_text(LARGEST_BYTES)} that one mail may carry")
    message_id = minted(account, _thread(route, key), key)
    words = MIMEMultipart("alternative", policy=_POLICY)
    message = MIMEMultipart("mixed", policy=_POLICY) if files else words
    message["From"] = _from(account)
    message["To"] = _ascii_address(to.to)
    subject = _subject(to, route, markdown or ", ".join(one.file.name for one in files))
    message["Subject"] = _encoded(subject, "Subject")
    message["Date"] = format_datetime(now)
    message["Message-ID"] = message_id
    if to.answers and _is_id(to.answers):
        message["In-Reply-To"] = to.answers
        chain = dict.fromkeys((*(one for one in to.references if _is_id(one)), to.answers))
        message["References"] = " ".join(chain)
    message["Auto-Submitted"] = "auto-replied" if route.reply_to else "auto-generated"  # RFC 3834, section 5
    message["X-Auto-Response-Suppress"] = "OOF, AutoReply"  # Exchange's way to be asked for no automatic answer
    message[STAMP] = account.key
    words.attach(_part(markup.plain(markdown) or markdown, "plain"))
    words.attach(_part(_page(markdown), "html"))
    if files:
        message.attach(words)
    for carried in files:
        message.attach(_file(carried))
    return Letter(
        sender=account.address,
        recipient=_ascii_address(to.to),
        message_id=message_id,
        data=message.as_bytes(policy=_POLICY),
    )


# --- threads and ids -------------------------------------------------------------------------------------------------


def thread_of(account: Account, ids: tuple[str, ...], otherwise: str) -> str:
    """A short name of the thread: from one of our ids in it, else from its first id."""
    return _ours(account, ids) or short(ids[0] if ids else otherwise)


def is_ours(account: Account, ids: tuple[str, ...]) -> bool:
    """We have written in the thread."""
    return bool(_ours(account, ids))


def _ours(account: Account, ids: tuple[str, ...]) -> str:
    ours = re.compile(rf"<fd\.([0-9a-f]{{16}})\.[0-9a-f]{{16}}@{re.escape(account.domain)}>", re.IGNORECASE)
    return next((found[1].lower() for one in reversed(ids) if (found := ours.fullmatch(one))), "")


def minted(account: Account, thread: str, key: str) -> str:
    return f"<fd.{thread}.{mark_of(account.key, key)}@{account.domain}>"


def short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _thread(route: Route, key: str) -> str:
    named = route.place.partition(".")[0]
    return named if re.fullmatch(r"[0-9a-f]{16}", named) else short(key)


def _is_id(text: str) -> bool:
    return re.fullmatch(r"<[!-;=?-~]+>", text) is not None


# --- fields ----------------------------------------------------------------------------------------------------------


def _from(account: Account) -> str:
    name = _CONTROL.sub(" ", account.name).replace("\\", "").replace('"', "").strip()
    shown = f'"{name}"' if name.isascii() else _encoded(name, "From")
    return f"{shown} <{account.address}>" if name else account.address


def _subject(to: Target, route: Route, markdown: str) -> str:
    subject = _CONTROL.sub(" ", to.subject).strip()
    if route.reply_to:
        return f"Re: {_REPLY.sub('', subject)}".strip()
    first = markup.plain(markdown).strip().partition("\n")[0]
    return subject or _CONTROL.sub(" ", first)[:OWN_SUBJECT_LENGTH].strip()


def _encoded(text: str, field: str) -> str:
    """A value that stays one field whatever is in it; longer lines are folded where it is written, and the first has
    room for the field's name."""
    return text if text.isascii() and "=?" not in text else Header(text, "utf-8", header_name=field).encode(linesep="")


def _ascii_address(address: str) -> str:
    """Raises Rejected for a local part that only SMTPUTF8 could carry."""
    local, _, domain = address.rpartition("@")
    try:
        return f"{local.encode('ascii').decode()}@{domain.encode('idna').decode()}"
    except UnicodeError:
        raise Rejected(
            f"{address} cannot be written to: its name is not in ASCII, which is not supported yet"
        ) from None


def _part(text: str, kind: str) -> MIMENonMultipart:
    part = MIMENonMultipart("text", kind, policy=_POLICY, charset="utf-8")
    part.set_payload(text, _UTF8)
    return part


def _file(carried: Carried) -> MIMENonMultipart:
    """In base64, whatever it is; its name as in RFC 2231."""
    kind, _, sort = carried.file.kind.partition("/")
    if kind in ("multipart", "message"):  # those are not to be encoded: RFC 2045, section 6.4
        kind, sort = "application", "octet-stream"
    part = MIMENonMultipart(kind, sort, policy=_POLICY)
    part.set_payload(carried.data)
    encode_base64(part)
    name = carried.file.name
    part.add_header("Content-Disposition", "attachment", filename=name if name.isascii() else ("utf-8", "", name))
    return part


def _page(markdown: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><style>{_STYLE}</style></head>\n'
        f'<body style="font-family: sans-serif; line-height: 1.45">\n{markup.web_html(markdown)}</body></html>\n'
    )
