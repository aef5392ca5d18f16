"""Who becomes whom: codes are given and taken, orders carried out, the settings' contacts entered. All in the book.

A code is good once, for fifteen minutes, for whoever says it in private; it links an address that nobody knows to the
person at the other end. One that others could read is void. Guessing is bounded per address. Here is the book's only
writer.
"""

import hashlib
import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta

from brain.contacts import Contacts
from brain.people import Declined, Linked, Merged, Moved, Offered, PeopleEntry, PeopleState, Unlinked, Voided
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.clock import Now
from gateway.events import MediumFact, MessageReceived, PlaceMoved
from gateway.holding import Guard
from gateway.journal import Journal
from gateway.people import BOOK, ChangePeople

log = logging.getLogger(__name__)

LOCAL = ("web", "terminal")
GOOD_FOR = timedelta(minutes=15)
TRIES, TRIES_FOR = 5, timedelta(minutes=15)  # wrong codes of one address; beyond that also right ones are refused
ADDRESSES_KEPT = 1000
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_CODE = re.compile(rf"\b([{_LETTERS}]{{4}})-([{_LETTERS}]{{4}})\b", re.IGNORECASE)
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)


class Registry:
    def __init__(
        self, broker: Broker, guard: Guard, worker: str, contacts: Contacts, now: Now, changed: Callable[[], None]
    ) -> None:
        """`contacts` looks things up in this book; `changed` tells other processes to look again."""
        self.contacts, self._now, self._changed = contacts, now, changed
        self.journal = Journal(broker, BOOK, contacts.book, PeopleEntry, guard, worker)
        self._wrong: OrderedDict[Address, list[datetime]] = OrderedDict()
        self.whys: OrderedDict[str, str] = OrderedDict()  # why the code in that message was not taken

    @property
    def book(self) -> PeopleState:
        return self.contacts.book

    async def open(self) -> None:
        await self.journal.open()

    async def enter_settings(self, has_spoken: Callable[[str], bool]) -> list[Address]:
        """What the settings say now that they did not say before; the addresses that they no longer give to whom they
        did. `has_spoken`: there is a conversation of that key."""
        said = {address: contact.key for contact in self.contacts.settings for address in contact.addresses}
        links, now = self.book.links.items(), self.book.now
        entered = {address: now(link.key) for address, link in links if link.how == "settings"}
        for new, old in renamed(said, entered, self.book):
            if not has_spoken(new):
                log.info("%s is called %s in the settings now, and stays who they were", old, new)
                await self._write(Merged(key=new, into=old, at=self._now()))
        gone = [address for address, key in entered.items() if address not in said or now(said[address]) != key]
        for address in gone:
            await self._write(Unlinked(address=address, how="settings", at=self._now()))
        for address, key in said.items():
            if address not in self.book.links:
                await self._write(Linked(address=address, key=key, how="settings", at=self._now()))
        return gone

    async def move(self, fact: PlaceMoved) -> None:
        """Once, however often and by whom it is told."""
        moved = Moved(account=fact.account, old=fact.old, new=fact.new, at=self._now())
        await self.journal.write(lambda book: None if f"{fact.account}:{fact.new}" in book.places else moved)

    # --- codes -------------------------------------------------------------------------------------------------------

    async def offer(self, by: Address) -> str:
        """A new code for that address; its older one is void."""
        code = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        now = self._now()
        await self._write(Offered(digest=_digest(code), by=by, at=now, until=now + GOOD_FOR))
        return code

    def offered(self, by: Address) -> bool:
        """That address has a code that is still good."""
        return any(code.by == by and code.until > self._now() for code in self.book.codes.values())

    def has_code(self, text: str) -> bool:
        return _said(text) is not None

    def is_about(self, fact: MediumFact) -> bool:
        """A code was said in it, and taken or refused."""
        return fact.identity in self.book.pairings or fact.identity in self.whys

    async def hear(self, message: MessageReceived) -> None:
        """Before anything else is made of a message: is a code said in it? One that others can read is void anyhow."""
        found = _said(message.text) if message.private else _CODE.search(message.text)
        if found is None or message.identity in self.book.pairings:
            return
        digest = _digest(f"{found[1]}-{found[2]}")
        if not message.private:
            if digest in self.book.codes:
                await self._write(Voided(digest=digest, at=self._now()))
        elif why := await self._present(digest, message):
            self.whys[message.identity] = why
            if len(self.whys) > ADDRESSES_KEPT:
                self.whys.popitem(last=False)

    async def _present(self, digest: str, message: MessageReceived) -> str:
        address = message.author.address
        stranger = self.contacts.known(address) is None
        if self._tries(address) >= TRIES:
            return TOO_MANY
        code = self.book.codes.get(digest)
        if code is None or code.until <= self._now():
            if stranger:
                self._note_try(address)
            return NOT_GOOD if stranger or code is not None else ""  # of a code that never was: any other text
        whose = self.contacts.known(code.by)
        here = self.contacts.known(address)
        new, person = (address, whose) if here is None else (code.by, here)
        if code.by == address:
            return SAME_PLACE
        if person is None or (whose and here) or message.robot or not (address.vouched and code.by.vouched):
            await self._write(Voided(digest=digest, at=self._now()))
            return NOT_HERE
        now = self._now()
        linked = Linked(address=new, key=person.key, how="code", at=now, digest=digest, message=message.identity)
        taken = await self.journal.write(lambda book: linked if digest in book.codes else None)
        self._changed()
        return "" if taken else NOT_GOOD

    def _tries(self, address: Address) -> int:
        since = self._now() - TRIES_FOR
        return sum(at > since for at in self._wrong.get(address, ()))

    def _note_try(self, address: Address) -> None:
        self._wrong[address] = [*self._wrong.pop(address, ())[-TRIES:], self._now()]
        if len(self._wrong) > ADDRESSES_KEPT:
            self._wrong.popitem(last=False)

    # --- orders ------------------------------------------------------------------------------------------------------

    async def unlink(self, address: Address, order: str = "") -> str:
        """Empty, or why not."""
        link = self.contacts.link(address)
        if link is None:
            return f"{address} is linked to nobody"
        if link.how == "settings":
            if (now := self.contacts.with_key(self.book.now(link.key))) and now.key != link.key:
                return f"{address} came to {now.name} by a merge, which is for good"
            return f"{address} stands in the settings, where whoever runs this can remove it"
        await self._write(Unlinked(address=address, how="operator", at=self._now(), order=order))
        return ""

    async def carry_out(self, order: ChangePeople) -> None:
        """Once; its answer is in the book."""
        if order.id not in self.book.answers and (why := await self._carry_out(order)):
            await self._write(Declined(order=order.id, why=why, at=self._now()))

    async def _carry_out(self, order: ChangePeople) -> str:
        person = self.contacts.named(order.person)
        match order:
            case ChangePeople(verb="unlink", address=Address() as address):
                return await self.unlink(address, order.id)
            case _ if person is None:
                return f"there is no contact {order.person}; contacts are made in [[contacts]]"
            case ChangePeople(verb="link", address=Address() as address):
                if (known := self.contacts.known(address)) is not None:
                    mend = "" if known.key == person.key else ": unlink it, or merge the two"
                    return f"{address} is {known.name}'s already{mend}"
                if not address.vouched:
                    return f"{address} is not vouched for: anybody can write under it"
                linked = Linked(address=address, key=person.key, how="operator", at=self._now(), order=order.id)
                await self._write(linked)
                return ""
            case ChangePeople(verb="merge", into=into):
                other = self.contacts.named(into)
                if other is None or self.book.now(other.key) == self.book.now(person.key):
                    return f"there is no other contact {into}"
                await self._write(Merged(key=person.key, into=other.key, at=self._now(), order=order.id))
                return ""
            case _:
                return "an address is missing"

    async def _write(self, entry: PeopleEntry) -> None:
        await self.journal.write(lambda _: entry)
        self._changed()


TOO_MANY = "That were too many wrong codes. Wait a quarter of an hour, and ask for a new one."
NOT_GOOD = "That code is not good, or not any more. They last fifteen minutes and work once; `/link` gives a new one."
SAME_PLACE = "Say it to me where you already talk to me, not here."
NOT_HERE = "That code is void: it can only link a place where I don't know you to one where I do."


def renamed(said: dict[Address, str], entered: dict[Address, str], book: PeopleState) -> list[tuple[str, str]]:
    """(new key, old key) of contacts that the settings call otherwise now: all addresses of somebody who is not there
    any more are a newcomer's. The page and the terminal are the owner's, whoever that is, and prove it only of whom has
    nothing else."""
    present = {book.now(key) for key in said.values()}
    found = []
    for old in dict.fromkeys(entered.values()):
        had = [address for address, key in entered.items() if key == old]
        own = [address for address in had if address.medium not in LOCAL] or had
        whose = {said.get(address) for address in own}
        new = whose.pop()
        if old not in present and not whose and new and new not in entered.values() and book.now(new) == new:
            found.append((new, old))
    return found


def _said(text: str) -> re.Match[str] | None:
    """In their own words: whoever answers the mail with the code has it below, and means something else."""
    return _CODE.search(_QUOTED.sub("", text))


def _digest(code: str) -> str:
    return hashlib.sha256(code.upper().encode()).hexdigest()
