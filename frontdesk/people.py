"""Who the settings know, and who is who in the book that the brain keeps."""

import asyncio
import logging

import msgspec

from brain.contacts import Contact, Contacts, Unknown, contact_key, owner
from brain.people import PeopleEntry, PeopleState
from gateway import live
from gateway.addresses import Address
from gateway.broker.protocol import Broker, Unconfirmed
from gateway.events import Person
from gateway.holding import MEND, CannotServe
from gateway.journal import Follower
from gateway.people import BOOK
from gateway.record import Undecodable
from gateway.settings import Settings

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 30.0  # a signal may be lost


def contacts(settings: Settings, book: PeopleState | None = None) -> Contacts:
    def unknown(medium: str) -> Unknown:
        return getattr(settings.access, medium, None) or settings.access.unknown

    return Contacts(people(settings), unknown, str(settings.assistant.timezone), book)


class Directory:
    """Who is who, for the parts of a process that only look it up; a moment behind the brain."""

    def __init__(self, settings: Settings) -> None:
        self.contacts = contacts(settings, PeopleState())

    def whose(self, person: Person) -> str:
        """The key of a person, the same for all of their addresses."""
        return self.contacts.key_of(person.address)

    async def follow(self, broker: Broker) -> None:
        """For ever. Raises CannotServe."""
        book = Follower(broker, BOOK, self.contacts.book, PeopleEntry)
        changed = asyncio.Event()
        unwatch = broker.watch(live.PEOPLE, lambda _: changed.set())
        try:
            while True:
                changed.clear()
                try:
                    await book.now()
                except Unconfirmed as error:
                    log.warning("the book of people cannot be read now: %s", error)
                except Undecodable as error:
                    raise CannotServe(f"Nobody is known without the book of people. {error}. {MEND}") from error
                try:
                    async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    pass
        finally:
            unwatch()


def people(settings: Settings) -> list[Contact]:
    """The contacts; the owner also has the local page and terminal. Without an owner, whoever is local is it."""
    found = [
        Contact(
            key=contact_key(one.name),
            name=one.name,
            role=one.role,
            addresses=one.addresses,
            timezone=str(one.timezone or settings.assistant.timezone),
            language=one.language,
            quiet_hours=one.quiet_hours,
            urgent_questions=one.urgent_questions,
        )
        for one in settings.contacts
    ]
    if not any(person.role == "owner" for person in found):
        found.insert(0, Contact(key="owner", name="You", role="owner", timezone=str(settings.assistant.timezone)))
    first = found.index(owner(found))
    local = tuple(Address(medium=medium, user="owner") for medium in ("web", "terminal"))
    found[first] = msgspec.structs.replace(found[first], addresses=(*found[first].addresses, *local))
    return found
