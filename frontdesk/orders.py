"""`frontdesk people …`: who is who, and changes of it, which the brain carries out. Words in, Markdown out."""

import asyncio
import uuid
from collections.abc import Callable

from brain.contacts import Contacts
from brain.people import PeopleEntry, PeopleState
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.journal import Follower, publish
from gateway.people import BOOK, ORDERS, ChangePeople
from gateway.written import contact_address

PATIENCE_SECONDS = 4.0  # less than that of the command line
USAGE = (
    "Write `people`, `people link NAME ADDRESS`, `people unlink ADDRESS`, or `people merge NAME INTO`; a name of "
    "several words in quotes."
)


class Orders:
    def __init__(self, broker: Broker, contacts: Callable[[PeopleState], Contacts]) -> None:
        self._broker = broker
        self._book = Follower(broker, BOOK, PeopleState(), PeopleEntry)
        self._contacts = contacts

    async def contacts(self) -> Contacts:
        """As the book says now."""
        return self._contacts(await self._book.now())

    async def people(self, words: list[str]) -> str:
        """Raises LookupError with words for the operator."""
        if not words:
            return _listed(await self.contacts())
        order = _order(words)
        await publish(self._broker, ORDERS, order, order.id)
        why = await self._answer(order.id)
        if why:
            raise LookupError(f"Not done: {why}.")
        contacts = await self.contacts()
        return f"{_done(order, contacts)}\n\n{_listed(contacts)}"

    async def _answer(self, order: str) -> str:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while order not in (book := await self._book.now()).answers:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise LookupError("Nobody has taken the order yet: the role `brain` does, when it runs.") from None
        return book.answers[order]


def _order(words: list[str]) -> ChangePeople:
    made = uuid.uuid4().hex
    try:
        match words:
            case ["link", name, address]:
                return ChangePeople(id=made, verb="link", person=name, address=contact_address(address))
            case ["unlink", address]:
                return ChangePeople(id=made, verb="unlink", address=Address.parse(address))
            case ["merge", name, into]:
                return ChangePeople(id=made, verb="merge", person=name, into=into)
    except ValueError as error:
        raise LookupError(str(error)) from None
    raise LookupError(USAGE)


def _done(order: ChangePeople, contacts: Contacts) -> str:
    if order.verb != "merge" or (one := contacts.named(order.into)) is None:
        return "Done."
    return f"Done, for good: {order.person} is {one.name}, in the role of {one.role}."


def _listed(contacts: Contacts) -> str:
    lines = []
    for one in contacts.everyone():
        lines.append(f"- **{one.name}**, {one.role}")
        for address in one.addresses:
            link = contacts.link(address)
            lines.append(f"  - {address} (by {link.how if link else 'nobody'})")
    return "\n".join(lines) or "There is nobody in the contacts."
