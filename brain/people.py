"""The book of who is who: what its journal holds, and its fold. Pure.

The settings say who there is; the book says what was learned since: which address was linked to whom and how, who
turned out to be whom, which codes are good. It is the truth: nothing of it is written into a file of settings.
"""

import hashlib
from datetime import datetime
from typing import Literal, TypeVar

from gateway.addresses import Address
from gateway.journal import Emitted, Outgoing, Owned, Released
from gateway.record import Record, Tagged, decode

How = Literal["settings", "code", "operator"]
ANSWERS_KEPT = 100
V = TypeVar("V")


class Linked(Tagged, frozen=True, kw_only=True):
    """`key` is the contact's. By a code: its digest, and the message in which it was said."""

    address: Address
    key: str
    how: How
    at: datetime
    digest: str = ""
    message: str = ""
    order: str = ""


class Unlinked(Tagged, frozen=True, kw_only=True):
    address: Address
    how: How
    at: datetime
    order: str = ""


class Merged(Tagged, frozen=True, kw_only=True):
    key: str
    into: str
    at: datetime
    order: str = ""


class Offered(Tagged, frozen=True, kw_only=True):
    """A code, as its digest; a newer one of the same address makes it void."""

    digest: str
    by: Address
    at: datetime
    until: datetime


class Voided(Tagged, frozen=True, kw_only=True):
    digest: str
    at: datetime


class Declined(Tagged, frozen=True, kw_only=True):
    """What became of an order that was not carried out."""

    order: str
    why: str
    at: datetime


class Moved(Tagged, frozen=True, kw_only=True):
    """A place that the platform named anew: its conversation stays the one that it was."""

    account: str
    old: str
    new: str
    at: datetime


PeopleEntry = Moved | Linked | Unlinked | Merged | Offered | Voided | Declined | Owned | Released | Emitted


class Link(Record, frozen=True, kw_only=True):
    key: str
    how: How


class Code(Record, frozen=True, kw_only=True):
    by: Address
    until: datetime


class Pairing(Record, frozen=True, kw_only=True):
    """`address` is the one that was new."""

    address: Address
    key: str


class PeopleFrozen(Record, frozen=True, kw_only=True):
    """Stored for ever: fields are added with defaults only."""

    links: list[tuple[Address, Link]]
    unlinked: list[tuple[Address, int]]
    merged: dict[str, str]
    codes: dict[str, Code]
    pairings: dict[str, Pairing]
    answers: dict[str, str]
    places: dict[str, str] = {}


class PeopleState:
    def __init__(self) -> None:
        self.links: dict[Address, Link] = {}
        self.unlinked: dict[Address, int] = {}  # how often
        self.merged: dict[str, str] = {}  # keys whose conversations have joined another's
        self.codes: dict[str, Code] = {}
        self.pairings: dict[str, Pairing] = {}  # by the message that said the code
        self.answers: dict[str, str] = {}  # to orders; empty when it was carried out
        self.places: dict[str, str] = {}  # by account and name: what the place was called at first
        self.outgoing: list[Outgoing] = []
        self.changes = 0

    def freeze(self) -> PeopleFrozen:
        return PeopleFrozen(
            links=list(self.links.items()),
            unlinked=list(self.unlinked.items()),
            merged=self.merged,
            codes=self.codes,
            pairings=self.pairings,
            answers=self.answers,
            places=self.places,
        )

    def thaw(self, frozen: bytes) -> None:
        kept: PeopleFrozen = decode(frozen, PeopleFrozen)
        self.links, self.unlinked, self.merged = dict(kept.links), dict(kept.unlinked), kept.merged
        self.codes, self.pairings, self.answers = kept.codes, kept.pairings, kept.answers
        self.places = kept.places
        self.changes += 1

    def stranger(self, address: Address) -> str:
        """The key of a person of whom only this address is known. Once it was parted from somebody it is new."""
        digest = hashlib.sha256(str(address).encode()).hexdigest()[:12]
        times = self.unlinked.get(address, 0)
        return f"guest-{digest}-{times}" if times else f"guest-{digest}"

    def now(self, key: str) -> str:
        """Whom that person turned out to be."""
        while key in self.merged:
            key = self.merged[key]
        return key

    def formerly(self, key: str) -> list[str]:
        """All keys that were merged into it."""
        return [old for old in self.merged if self.now(old) == key]

    def place(self, account: str, name: str) -> str:
        """What the place was called when its conversation began."""
        return self.places.get(f"{account}:{name}", name)

    def apply(self, entry: PeopleEntry) -> None:
        self.changes += 1
        match entry:
            case Linked(address=address, key=key):
                if address not in self.links:
                    self._merge(self.stranger(address), key)
                self.links[address] = Link(key=key, how=entry.how)
                self.codes.pop(entry.digest, None)
                if entry.message:
                    _keep(self.pairings, entry.message, Pairing(address=address, key=key))
                self._answer(entry.order, "")
            case Unlinked(address=address):
                self.links.pop(address, None)
                self.unlinked[address] = self.unlinked.get(address, 0) + 1
                self.codes = {digest: code for digest, code in self.codes.items() if code.by != address}
                self._answer(entry.order, "")
            case Merged(key=key, into=into):
                self._merge(key, into)
                self._answer(entry.order, "")
            case Offered(digest=digest, by=by, until=until):
                self.codes = {known: code for known, code in self.codes.items() if code.by != by}
                self.codes[digest] = Code(by=by, until=until)
            case Voided(digest=digest):
                self.codes.pop(digest, None)
            case Declined(order=order, why=why):
                self._answer(order, why)
            case Moved(account=account, old=old, new=new):
                self.places[f"{account}:{new}"] = self.place(account, old)
            case Owned() | Released() | Emitted():
                self.changes -= 1
            case _:
                raise TypeError(f"the book of people holds no {type(entry).__name__}")

    def _merge(self, key: str, into: str) -> None:
        into = self.now(into)
        if key != into and key not in self.merged:
            self.merged[key] = into

    def _answer(self, order: str, why: str) -> None:
        if order:
            _keep(self.answers, order, why)


def _keep(kept: dict[str, V], key: str, value: V) -> None:
    kept[key] = value
    for old in list(kept)[:-ANSWERS_KEPT]:
        del kept[old]
