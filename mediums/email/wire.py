"""From a mail to a fact: who says what to whom, in which thread, and where an answer goes. Pure.

A mail's identity is a digest of what it is: its author as vouched for, what that author wrote at the head, and the
whole body. So it is the same when the mailbox is numbered anew (UIDVALIDITY), when it is fetched again, and when a list
or an alias brings a second copy; while no stranger can use it up, whatever Message-ID they choose: a mail with the same
digest says the same, by the same author.

One to one with the assistant is private; with others in To or Cc it is shared. A shared thread is a place for just the
people in it: who takes somebody in starts another place, and knowing an old Message-ID opens none.
"""

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from email import message_from_bytes
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import compat32

from gateway.addresses import Route
from gateway.commands import needs_no_model
from gateway.events import MessageReceived, Person
from gateway.outbox import CameBack
from gateway.record import Record
from mediums.email import body, identity, letter, returns
from mediums.email.account import MEDIUM, Account
from mediums.email.body import Enclosed
from mediums.email.clients import PASSED_ON
from mediums.email.headers import UNREADABLE, Fields, Mailbox, mailboxes, message_id, references, subject_of
from mediums.email.identity import Author
from mediums.email.quotes import QUOTED
from mediums.email.robots import Kind, kind_of

PARTS_IN_PARTS = 200  # the parser's time grows with their square, and its stack has an end
NAMED = 6  # people whose addresses are shown above a shared mail
_WRITTEN = ("from", "date", "subject", "message-id")  # what copies of one mail share
_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_NO_REPLY = ("noreply", "no-reply", "donotreply", "do-not-reply", "no_reply")


class Heard(Record, frozen=True, kw_only=True):
    """`fact` is None for what nobody wrote to be answered; `kind` says what it was, `about` a few words for the log.
    `returned` is the mail of ours that did not arrive."""

    kind: Kind
    fact: MessageReceived | None
    thread: str = ""
    about: str = ""
    files: tuple[Enclosed, ...] = ()
    returned: CameBack | None = None


def heard(raw: bytes, account: Account, at: datetime) -> Heard:
    """`at` is when the mailbox got it: a Date is its sender's own. Raises nothing: a mail that cannot be read is
    one that says so."""
    if len(_BOUNDARY.findall(raw)) > PARTS_IN_PARTS:
        return noticed(raw, account, at, "this mail was not read: it has too many parts in parts")
    try:
        message = message_from_bytes(raw, policy=compat32)
        read = body.read(message, at_length=_is_new_here(Fields(message), account))
        return _heard(message, read, raw, account, at)
    except UNREADABLE:
        return noticed(raw, account, at, "this mail cannot be read: it is broken")


def noticed(raw: bytes, account: Account, at: datetime, note: str) -> Heard:
    """Of a mail whose text is not read: its header, and why. `raw` may be the header alone."""
    header = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n\n"
    try:
        return _heard(
            BytesHeaderParser(policy=compat32).parsebytes(header), body.Read(text=f"[{note}]"), header, account, at
        )
    except UNREADABLE:
        return Heard(kind=Kind.PERSON, fact=None, about="a mail whose header cannot be read")


def _heard(message: "Message[str, str]", read: body.Read, raw: bytes, account: Account, at: datetime) -> Heard:
    fields = Fields(message)
    author = identity.author(fields, account.authserv_id)
    kind = kind_of(fields, message.get_content_type(), author.mailbox, account)
    bounce = kind is Kind.BOUNCE
    about = f"{kind.value}{returns.failed_to(message, fields) if bounce else ''} from {author.address.user}"
    digest = _digest(fields, author, raw)
    ids = (*references(fields), *((own,) if (own := message_id(fields)) else ()))
    thread = letter.thread_of(account, ids, digest)
    to, copied = mailboxes(fields.all("to")), mailboxes(fields.all("cc"))
    others = _others((*to, *copied), author, account)
    private = not others and kind is Kind.PERSON
    fact = MessageReceived(
        identity=f"{account.key}/message/{digest}/0",
        route=Route(
            medium=MEDIUM,
            account=account.key,
            place=_place(thread, [author.address.user, *others]),
            reply_to=_answer(fields, author).uri() if author.mailbox else None,
        ),
        author=Person(address=author.address, name=author.name),
        text=_labelled(read.text, subject_of(fields), (to, copied) if others else None, account),
        at=at,
        private=private,
        addressed=private or (kind is Kind.PERSON and any(account.is_own(one.address) for one in to)),
    )
    wanted = kind in (Kind.PERSON, Kind.LIST) and author.mailbox is not None
    said = bool(fact.text.strip() or read.files)
    return Heard(
        kind=kind,
        fact=fact if wanted and said else None,
        thread=thread,
        about=about,
        files=read.files,
        returned=returns.came_back(message, fields, raw, account) if bounce else None,
    )


def _is_new_here(fields: Fields, account: Account) -> bool:
    """What it quotes was not said to the assistant: somebody passes it on, or asks it into a thread in which it has not
    spoken. What it merely overhears is quoted in short all the same."""
    asked = any(account.is_own(one.address) for one in mailboxes(fields.all("to")))
    passed_on = PASSED_ON.match(subject_of(fields)) is not None
    return passed_on or (asked and not letter.is_ours(account, references(fields)))


def _others(people: tuple[Mailbox, ...], author: Author, account: Account) -> list[str]:
    own = author.mailbox.address if author.mailbox else ""
    return [one.address for one in people if one.address != own and not account.is_own(one.address)]


def _digest(fields: Fields, author: Author, raw: bytes) -> str:
    """Without a Message-ID nothing says that two mails are copies of one: then all bytes count."""
    _, _, after = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    written = "\n".join(f"{name}: {value.strip()}" for name, value in fields.items if name in _WRITTEN)
    hashed = hashlib.sha256(f"{author.address}\n{written}\n\n".encode("utf-8", "surrogateescape"))
    hashed.update(after if "message-id" in fields else raw)
    return hashed.hexdigest()[:32]


def place(root: str, people: Iterable[str], account: Account) -> str:
    """Of the thread that begins with this Message-ID, among these people."""
    return _place(letter.thread_of(account, (root,), ""), people)


def _place(thread: str, people: Iterable[str]) -> str:
    return f"{thread}.{letter.short(' '.join(sorted({*people})))[:8]}"


# --- where an answer goes --------------------------------------------------------------------------------------------


def _answer(fields: Fields, author: Author) -> letter.Target:
    """To the author alone, never to a list or to all."""
    own = message_id(fields)
    return letter.Target(
        to=_addressee(fields, author), subject=subject_of(fields), answers=own, references=references(fields)
    )


def _addressee(fields: Fields, author: Author) -> str:
    """A Reply-To can be added to a mail that somebody else has signed, so it leads nowhere, but from an address that
    nobody reads to another one of the same domain."""
    assert author.mailbox is not None
    address = author.mailbox.address
    wanted = mailboxes(fields.all("reply-to"))
    local, _, domain = address.rpartition("@")
    if author.verified and local in _NO_REPLY and len(wanted) == 1 and wanted[0].address.endswith(f"@{domain}"):
        return wanted[0].address
    return address


# --- what is shown above the text ------------------------------------------------------------------------------------


def _labelled(
    text: str, subject: str, people: tuple[tuple[Mailbox, ...], tuple[Mailbox, ...]] | None, account: Account
) -> str:
    """Mails of several threads are one conversation: each says which it belongs to. A command stays bare."""
    own = text.partition(f"\n\n{QUOTED}")[0] or subject  # whose subject says it all
    if needs_no_model(own):
        return own
    labels = [f"subject: {_unbracketed(subject)}"] if subject else []
    if people is not None:
        labels += [
            f"{word}: {_names(group, account)}" for word, group in zip(("to", "cc"), people, strict=True) if group
        ]
    label = f"[{' · '.join(labels)}]" if labels else ""
    return "\n".join(piece for piece in (label, text) if piece)


def _names(people: tuple[Mailbox, ...], account: Account) -> str:
    shown = ["you" if account.is_own(one.address) else one.address for one in people]
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more


def _unbracketed(text: str) -> str:
    return text.translate({ord("["): "(", ord("]"): ")"})
