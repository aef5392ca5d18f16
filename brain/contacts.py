"""Who is who: addresses to contacts, contacts to conversations.

Decided in code, from the address that the medium vouches for: never from a display name, a text, or a model. What each
role may cause is in `rights`.
"""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from brain.people import Link, PeopleState
from brain.rights import Place, Rights, Role
from gateway.addresses import Address, journal_key
from gateway.events import MediumFact
from gateway.quiet import QuietHours
from gateway.record import Record

Unknown = Literal["ignore", "pair", "reply"]


class Contact(Record, frozen=True, kw_only=True):
    """`key` names the contact's private conversation for ever; made from the name that the settings gave first."""

    key: str
    name: str
    role: Role
    addresses: tuple[Address, ...] = ()
    timezone: str = "UTC"
    language: str = ""
    quiet_hours: QuietHours | None = None
    urgent_questions: bool = False


class Contacts:
    """`contacts` are those of the settings, `book` is what was learned since. `unknown` is what becomes of a stranger's
    message on a medium: ignored, paired, or answered."""

    def __init__(
        self,
        contacts: Iterable[Contact],
        unknown: Callable[[str], Unknown] = lambda medium: "ignore",
        timezone: str = "UTC",
        book: PeopleState | None = None,
    ) -> None:
        self.settings = tuple(contacts)
        self._by_key = {contact.key: contact for contact in self.settings}
        self._in_settings = {one: Link(key=c.key, how="settings") for c in self.settings for one in c.addresses}
        self.book = book or PeopleState()
        self.unknown, self.timezone = unknown, timezone
        self._found: tuple[PeopleState | None, int] = None, -1  # the book, and how far it was, of:
        self._addresses: dict[str, tuple[Address, ...]] = {}
        self._present: dict[str, Contact] = {}

    def with_book(self, book: PeopleState) -> "Contacts":
        return Contacts(self.settings, self.unknown, self.timezone, book)

    def of(self, fact: MediumFact) -> Contact:
        """Who said it; a contact of the role stranger where nobody knows."""
        return self.known(fact.author.address) or Contact(
            key=self.key_of(fact.author.address),
            name=fact.author.name,
            role="stranger",
            addresses=(fact.author.address,),
            timezone=self.timezone,
        )

    def known(self, address: Address) -> Contact | None:
        return self.with_key(self.key_of(address))

    def key_of(self, address: Address) -> str:
        """The same for all addresses of a person."""
        link = self.link(address)
        return self.book.now(link.key if link else self.book.stranger(address))

    def link(self, address: Address) -> Link | None:
        """What the settings no longer say counts no longer."""
        learned = self.book.links.get(address)
        return learned if learned and learned.how != "settings" else self._in_settings.get(address)

    def addresses(self, key: str) -> tuple[Address, ...]:
        self._look()
        return self._addresses.get(key, ())

    def _look(self) -> None:
        now = self.book, self.book.changes
        if self._found == now:
            return
        self._found, self._addresses = now, {}
        for address in dict.fromkeys((*self._in_settings, *self.book.links)):
            if self.link(address):
                whose = self.key_of(address)
                self._addresses[whose] = (*self._addresses.get(whose, ()), address)
        renamed = {self.book.now(contact.key): contact for contact in reversed(self.settings)}
        self._present = {key: self._by_key.get(key, contact) for key, contact in renamed.items()}

    def role_of(self, address: Address) -> Role:
        contact = self.with_key(self.key_of(address))
        return contact.role if contact else "stranger"

    def same(self, one: Address, other: Address) -> bool:
        """Whether two addresses are one person's."""
        return self.key_of(one) == self.key_of(other)

    def rights(self, conversation: str) -> Rights:
        place: Place = "shared" if conversation.startswith("s-") else "private"
        return Rights(place, self.role_of, self.same)

    def with_key(self, key: str) -> Contact | None:
        """With all addresses, and under the name of now."""
        self._look()
        contact = self._present.get(key) or self._by_key.get(key)
        if contact is None:
            return None
        return msgspec.structs.replace(contact, key=key, addresses=self._addresses.get(key, ()))

    def name_of(self, contact: Contact) -> str:
        """What the operator calls them. A stranger's is whatever they typed, and may be a contact's."""
        if contact.role == "stranger" and contact.name.strip().casefold() in {
            one.name.casefold() for one in self.settings
        }:
            return f"{contact.name} (not the contact)"
        return contact.name

    def named(self, name: str) -> Contact | None:
        """By key or by name; as whoever they turned out to be."""
        return self.with_key(self.book.now(contact_key(name)))

    def home(self, conversation: str) -> str:
        """Where that conversation goes on."""
        private = conversation.removeprefix("p-")
        return conversation if private == conversation else f"p-{self.book.now(private)}"

    def everyone(self) -> list[Contact]:
        """Without those who turned out to be somebody else."""
        keys = dict.fromkeys(self.book.now(one.key) for one in self.settings)
        return [one for key in keys if (one := self.with_key(key)) is not None]


def owner(contacts: Iterable[Contact]) -> Contact:
    """The first; there always is one."""
    return next(contact for contact in contacts if contact.role == "owner")


def contact_key(name: str) -> str:
    """Stable, readable, and one subject token."""
    return journal_key(name.strip().lower().replace(" ", "-"))[:40] or "someone"


def conversation_of(fact: MediumFact, contact: Contact, book: PeopleState) -> str:
    """Private: all that is said one to one with a contact, on all mediums. Shared: one place."""
    if fact.private:
        return f"p-{contact.key}"
    route = fact.route
    room = ":".join(part for part in (route.account, book.place(route.account, route.place), route.thread) if part)
    return f"s-{journal_key(room)}"
