"""Which mails no person wrote to be answered: RFC 3834 and what the world does besides. Pure.

X-Auto-Response-Suppress is no sign: people's mail programs set it too.
"""

import re
from enum import Enum

from mediums.email.account import Account
from mediums.email.headers import Fields, Mailbox, mailboxes

STAMP = "X-Frontdesk"  # on every mail that an assistant of this kind sends

_DAEMONS = ("mailer-daemon", "postmaster")
_BULK = ("bulk", "junk")
_BY_ITSELF = ("x-autoreply", "x-autorespond", "x-autoresponse", "x-autoreply-from", "x-auto-reply", "x-mail-autoreply")
# Exchange says it in the subject alone, between people of one house.
_AWAY = re.compile(
    r"\s*(automatic reply|auto ?reply|out of (the )?office|automatische antwort|abwesenheitsnotiz|réponse automatique|"
    r"respuesta automática|resposta automática|risposta automatica|automatisch antwoord|automatiskt svar|autosvar|"
    r"automatyczna odpowiedź|automatická odpověď|автоматический ответ|автоответ|自动答复|自動返信|自動回覆)\s*[:：]",
    re.IGNORECASE,
)


class Kind(Enum):
    PERSON = "a person's mail"
    OWN = "the assistant's own mail"
    BOUNCE = "a report about a mail that was not delivered"
    AUTOMATIC = "an automatic answer"
    BULK = "a mass mailing"
    LIST = "a mail to a mailing list"  # heard, as in a room where nobody has asked


def kind_of(fields: Fields, content_type: str, author: Mailbox | None, account: Account) -> Kind:
    """Of the outer header alone: what stands in an attached mail says nothing about this one."""
    if any(account.is_own(one.address) for one in mailboxes(fields.all("from"))):
        return Kind.OWN
    if content_type == "multipart/report" and "disposition-notification" in fields.first("content-type").casefold():
        return Kind.AUTOMATIC  # that it was read, or deleted: RFC 8098
    if content_type == "multipart/report" or (author and author.address.partition("@")[0] in _DAEMONS):
        return Kind.BOUNCE
    if STAMP.casefold() in fields or _answers_by_itself(fields):
        return Kind.AUTOMATIC
    precedence = fields.first("precedence").casefold()
    if "list-id" in fields or "list-post" in fields or precedence == "list":
        return Kind.LIST
    if "list-unsubscribe" in fields or precedence in _BULK:
        return Kind.BULK
    return Kind.PERSON


def _answers_by_itself(fields: Fields) -> bool:
    """An empty envelope sender asks for no answer: RFC 3834, section 2."""
    submitted = fields.first("auto-submitted").partition(";")[0].strip().casefold()
    return (
        submitted not in ("", "no")
        or fields.first("return-path").replace(" ", "") == "<>"
        or fields.first("precedence").casefold() == "auto_reply"
        or any(name in fields for name in _BY_ITSELF)
        or (_AWAY.match(fields.text("subject")) is not None and ("in-reply-to" in fields or "references" in fields))
    )
