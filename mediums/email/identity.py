"""Who wrote a mail, as far as the receiving server vouches for it. Pure.

Anybody can write any From. A mail counts as its author's only when the server that received it says so: the topmost
Authentication-Results (RFC 8601) under the pinned name, with one DMARC result, a pass for the domain of the one From.
What a sender puts into a mail stands below the Received line of the server that took it, so only what is above that
line is believed. `dkim=pass` and `spf=pass` prove nothing here: they may be for another domain.

Everyone else gets an address with UNVERIFIED in it. No contact can have that: addresses in settings are in lower case.
"""

import re
from typing import NamedTuple

from gateway.addresses import UNVERIFIED, Address
from mediums.email.account import MEDIUM
from mediums.email.headers import Fields, Mailbox, mailboxes, only_mailbox

# They write their results below their own Received line, and take out what claims to be from them.
_BELOW_THEIR_LINE = frozenset({"mx.google.com"})

_LOCAL_DELIVERY = re.compile(r"\bwith\s+LMTPS?A?\b", re.IGNORECASE)  # a hop after the one that took it from outside
_COMMENT = re.compile(r"\([^()]*\)|\"[^\"]*\"")  # a sender chooses what stands there
_BY = re.compile(r"\bby\s+([^\s;()]+)", re.IGNORECASE)
_RESULT = re.compile(r"^\s*dmarc(?:\s*/\s*1)?\s*=\s*([a-z]+)\b(.*)$", re.IGNORECASE | re.DOTALL)
_DOMAIN = re.compile(r'\bheader\.from\s*=\s*"?([^\s;"]+)', re.IGNORECASE)


class Author(NamedTuple):
    """`mailbox` is None when From names nobody, or several."""

    address: Address
    name: str
    mailbox: Mailbox | None
    verified: bool


def author(fields: Fields, authserv_id: str) -> Author:
    mailbox = only_mailbox(fields.all("from"))
    if mailbox is not None and vouched_domain(fields, authserv_id) == mailbox.address.rpartition("@")[2]:
        return Author(
            Address(medium=MEDIUM, user=mailbox.address), mailbox.name or mailbox.address, mailbox, verified=True
        )
    claimed = mailbox or next(iter(mailboxes(fields.all("from"))), None)
    user = claimed.address if claimed else "nobody"
    address = Address(medium=MEDIUM, user=f"{UNVERIFIED}:{user}")
    return Author(address, f"{user} (not verified)", mailbox, verified=False)


def vouched_domain(fields: Fields, authserv_id: str) -> str | None:
    """The From domain whose DMARC check the receiving server says was passed."""
    wanted = authserv_id.casefold()
    for at, (name, value) in enumerate(fields.items):
        if name == "authentication-results":
            server, results = _results(value)
            if server == wanted:
                return _passed(results) if _is_the_servers(fields, at, wanted) else None
    return None


def servers(fields: Fields) -> tuple[str, ...]:
    """All names that results stand under, topmost first: to find the right one for the settings."""
    return tuple(dict.fromkeys(_results(value)[0] for value in fields.all("authentication-results")))


def _is_the_servers(fields: Fields, at: int, authserv_id: str) -> bool:
    lines = [_COMMENT.sub("", value) for name, value in fields.items[:at] if name == "received"]
    above = [line for line in lines if not _LOCAL_DELIVERY.search(line)]
    if authserv_id in _BELOW_THEIR_LINE:
        at_the_border = [n for n, value in enumerate(above) if _is_by(value, authserv_id)]
        return bool(at_the_border) and at_the_border[0] == len(above) - 1
    return not above


def _is_by(received: str, host: str) -> bool:
    found = _BY.search(received)
    return found is not None and found[1].casefold().rstrip(".") == host


def _results(value: str) -> tuple[str, list[str]]:
    """The server's name and its results, cut where a semicolon stands in no quotes; comments are left out."""
    pieces, piece, quoted, depth, escaped = [], "", False, 0, False
    for character in value:
        if escaped or (character == "\\" and (quoted or depth)):
            escaped = not escaped
        elif quoted:
            quoted = character != '"'
            piece += character
        elif character == "(":
            depth += 1
        elif depth:
            depth -= character == ")"
        elif character == ";":
            pieces.append(piece)
            piece = ""
        else:
            quoted = character == '"'
            piece += character
    words = (pieces[0] if pieces else piece).split()
    return (words[0].strip('"').casefold() if words else ""), [*pieces[1:], *([piece] if pieces else [])]


def _passed(results: list[str]) -> str | None:
    dmarc = [found for found in map(_RESULT.match, results) if found]
    if len(dmarc) != 1 or dmarc[0][1].casefold() != "pass":
        return None
    domains = {found.casefold().rstrip(".") for found in _DOMAIN.findall(dmarc[0][2])}
    return domains.pop() if len(domains) == 1 else None
