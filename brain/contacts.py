"""Who is who: addresses to contacts, contacts to conversations.

Decided in code, from the address that the medium vouches for: never from a display name, a text, or a model. What each
role may cause is in `rights`.
"""

import hashlib
from collections.abc import Iterable
from typing import Literal

from brain.rights import Place, Rights, Role
from gateway.addresses import Address, journal_key
from gateway.events import MediumFact
from gateway.record import Record

Unknown = Literal["ignore", "reply"]


class Contact(Record, frozen=True, kw_only=True):
    """`key` names the contact's private conversation for ever; it is made from the name in the settings."""

    key: str
    name: str
    role: Role
    addresses: tuple[Address, ...] = ()
    timezone: str = "UTC"


class Contacts:
    """`unknown` is what becomes of a stranger's message: ignored, or answered as a guest's."""

    def __init__(self, contacts: Iterable[Contact], unknown: Unknown = "ignore", timezone: str = "UTC") -> None:
        self._by_address = {address: contact for contact in contacts for address in contact.addresses}
        self._by_key = {contact.key: contact for contact in self._by_address.values()}
        self._unknown, self._timezone = unknown, timezone

    def of(self, fact: MediumFact) -> Contact | None:
        """Who said it; None for a stranger who is to be ignored."""
        known = self._by_address.get(fact.author.address)
        if known is not None or self._unknown == "ignore":
            return known
        return _stranger(fact, self._timezone)

    def role_of(self, address: Address) -> Role:
        contact = self._by_address.get(address)
        return contact.role if contact else "stranger"

    def same(self, one: Address, other: Address) -> bool:
        """Whether two addresses are one person's."""
        contact = self._by_address.get(one)
        return one == other or (contact is not None and other in contact.addresses)

    def rights(self, conversation: str) -> Rights:
        place: Place = "shared" if conversation.startswith("s-") else "private"
        return Rights(place, self.role_of, self.same)

    def with_key(self, key: str) -> Contact | None:
        return self._by_key.get(key)


def owner(contacts: Iterable[Contact]) -> Contact:
    """The first; there always is one."""
    return next(contact for contact in contacts if contact.role == "owner")


def contact_key(name: str) -> str:
    """Stable, readable, and one subject token."""
    return journal_key(name.strip().lower().replace(" ", "-"))[:40] or "someone"


def conversation_of(fact: MediumFact, contact: Contact) -> str:
    """Private: all that is said one to one with a contact, on all mediums. Shared: one place."""
    if fact.private:
        return f"p-{contact.key}"
    room = ":".join(part for part in (fact.route.account, fact.route.place, fact.route.thread) if part)
    return f"s-{journal_key(room)}"


def _stranger(fact: MediumFact, timezone: str) -> Contact:
    digest = hashlib.sha256(str(fact.author.address).encode()).hexdigest()[:12]
    return Contact(
        key=f"guest-{digest}",
        name=fact.author.name,
        role="stranger",
        addresses=(fact.author.address,),
        timezone=timezone,
    )
