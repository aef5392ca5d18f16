"""Who the settings know, and by which key."""

from collections.abc import Sequence

import msgspec

from brain.contacts import Contact, contact_key, owner
from gateway.addresses import Address, journal_key
from gateway.settings import Settings


def key_of(known: Sequence[Contact], address: Address) -> str:
    """Of the person with that address, the same for all of their addresses."""
    found = next((one.key for one in known if address in one.addresses), None)
    return found or f"guest-{journal_key(str(address))}"


def people(settings: Settings) -> list[Contact]:
    """The contacts; the owner also has the local page and terminal. Without an owner, whoever is local is it."""
    found = [
        Contact(
            key=contact_key(one.name),
            name=one.name,
            role=one.role,
            addresses=one.addresses,
            timezone=str(one.timezone or settings.assistant.timezone),
        )
        for one in settings.contacts
    ]
    if not any(person.role == "owner" for person in found):
        found.insert(0, Contact(key="owner", name="You", role="owner", timezone=str(settings.assistant.timezone)))
    first = found.index(owner(found))
    local = tuple(Address(medium=medium, user="owner") for medium in ("web", "terminal"))
    found[first] = msgspec.structs.replace(found[first], addresses=(*found[first].addresses, *local))
    return found
