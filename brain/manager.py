"""The ConversationManager: every fact to its lane, durably, before it is acknowledged. It has no tools for the work.

Who somebody is, is looked up here; when that changes, their conversations are joined or parted before the next fact.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from brain import audience, prompt
from brain.around import Neighbours, Reach
from brain.attention import Manner, manner
from brain.contacts import Contact, Contacts, conversation_of
from brain.entries import LaneEntry
from brain.hold import Pace
from brain.kept import UNREAD, Kept
from brain.lane import Lane
from brain.lanes import Lanes, Parked
from brain.means import Means
from brain.pairing import Pairing
from brain.purse import Caps, Purse
from brain.recalling import Recall
from brain.registry import Registry
from brain.showing import Shows, Tell
from brain.state import LaneState
from gateway import live
from gateway.addresses import Route
from gateway.broker.protocol import Broker
from gateway.clock import Now
from gateway.events import (
    ActionFact,
    ControlPressed,
    Fact,
    MediumFact,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    PlaceMoved,
    Ref,
    Send,
    SendClosed,
    TimerFired,
)
from gateway.holding import Guard
from gateway.journal import Journal, acknowledge, publish
from gateway.keeping import Consumed
from gateway.llm.model import Model
from gateway.notes import Notes
from gateway.people import ChangePeople
from gateway.record import Undecodable, decode

PARKED = (
    "I can't go on here: what I had noted of our conversation cannot be read. The person who runs me has been told. "
    "What you write is kept, and I shall answer it when that is mended."
)


class Manager:
    """`tell` carries live signals to an account's medium; `operator` hears what somebody must mend. In the places of
    `ambient` (`slack:C024BE91L`) the model hears also what is not said to it."""

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        worker: str,
        *,
        assistant: str,
        contacts: Contacts,
        model: Model,
        tell: Tell,
        operator: Callable[[str], None],
        now: Now,
        pace: Pace,
        notes: Notes | None = None,
        recall: Recall | None = None,
        by_schema: bool = False,
        ambient: frozenset[str] = frozenset(),
        reach: Reach = lambda address: None,
        caps: Caps | None = None,
    ) -> None:
        self._broker, self._guard, self._worker = broker, guard, worker
        self._assistant, self._contacts, self._model = assistant, contacts, model
        self._tell, self._operator, self._now, self._pace = tell, operator, now, pace
        self._notes, self._recall, self._ambient, self._by_schema = notes, recall, ambient, by_schema
        self._registry = Registry(broker, guard, worker, contacts, now, lambda: broker.signal(live.PEOPLE, b""))
        self._pairing = Pairing(self._registry)
        self._kept = Kept(broker)
        self._lanes: Lanes | None = None
        self._around = Neighbours(contacts, self._shared, self._state, reach)
        self._settled = -1  # the changes of the book that all conversations have followed
        self._told: set[str] = set()
        caps = caps or Caps()
        self._zone = caps.zone
        self._purse = Purse(caps, contacts.key_of, now, operator)

    async def run(self) -> None:
        unwatch = self._broker.watch(live.AGAIN, self._show_again)
        await self._registry.open()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._registry.journal.run(), name="the book of people")
                lanes = self._lanes = Lanes(self._open, group, self._operator)
                for subject in await self._broker.subjects("log.lane.>"):
                    lanes.keep(subject.removeprefix("log.lane."))
                await self._registry.enter_settings(lambda key: f"p-{key}" in lanes)
                await self._settle(lanes)
                await self._kept.give(lambda data: self._pass_on(_fact(data), lanes))
                consumed = Consumed(self._broker)
                async for delivery in self._broker.consume("evt.>", "brain"):
                    await self._take(delivery.stored.data, lanes)
                    await acknowledge(delivery.ack)
                    await consumed.forget(delivery.stored)
        finally:
            unwatch()
            lanes_end = (lane.journal.release() for lane in self.lanes())
            await asyncio.gather(self._registry.journal.release(), *lanes_end)

    def _show_again(self, _: bytes) -> None:
        for lane in self.lanes():
            lane.show_again()

    def lanes(self) -> list[Lane]:
        """Those that are open now."""
        return self._lanes.open_now() if self._lanes is not None else []

    def _shared(self) -> list[LaneState]:
        return self._lanes.shared() if self._lanes is not None else []

    def _state(self, conversation: str) -> LaneState | None:
        return self._lanes.state(conversation) if self._lanes is not None else None

    # --- intake ------------------------------------------------------------------------------------------------------

    async def _take(self, data: bytes, lanes: Lanes) -> None:
        try:
            fact = _fact(data)
        except Undecodable as error:
            await self._kept.keep(UNREAD, data)
            self._operator(f"A stored fact cannot be read, and is kept for a version that can: {error}")
            return
        try:
            await self._pass_on(fact, lanes)
        except Parked as parked:
            await self._kept.keep(parked.conversation, data)

    async def _pass_on(self, fact: Fact | ChangePeople | PlaceMoved, lanes: Lanes) -> None:
        match fact:
            case ChangePeople():
                await self._registry.carry_out(fact)
                await self._settle(lanes)
            case PlaceMoved():
                await self._registry.move(fact)
            case MessageReceived() | ControlPressed():
                await self._hear(fact, lanes)
            case MessageDeleted() | MessageReacted():
                await self._note(fact, lanes)
            case SendClosed() | TimerFired():
                await self._deliver(fact, self._contacts.home(fact.conversation), Manner(), lanes)
            case _:
                for conversation, heard in await self._audience(fact, lanes):
                    await self._deliver(heard, conversation, Manner(), lanes)

    async def _explain(self, message: MessageReceived, conversation: str) -> None:
        """Once a day, where it was written: nobody there can be answered."""
        if not message.addressed or message.robot or message.edited:
            return
        ref = Ref(f"{conversation}/parked", self._now().toordinal(), 0)
        said = Send(ref=ref, conversation=conversation, route=message.route, text=PARKED)
        await publish(self._broker, f"cmd.out.{message.route.account}", said, str(ref))

    async def _audience(self, fact: ActionFact, lanes: Lanes) -> list[tuple[str, ActionFact]]:
        home = self._contacts.home(fact.conversation)
        action = (await lanes.get(home)).journal.state.actions.get(fact.action)
        if home.startswith("p-") or action is None:
            return [(home, fact)]
        private = self._around.private(action.by.address)
        adopted = (await lanes.get(private)).journal.state.actions.get(fact.action) if private in lanes else None
        return audience.told(fact, home, private, adopted)

    async def _hear(self, fact: MessageReceived | ControlPressed, lanes: Lanes) -> None:
        if isinstance(fact, MessageReceived):
            await self._registry.hear(fact)
            await self._settle(lanes)
        contact = self._contacts.of(fact)
        fact = replace(fact, author=replace(fact.author, name=self._contacts.name_of(contact)))
        conversation = conversation_of(fact, contact, self._contacts.book)
        how = manner(
            fact,
            contact.role,
            self._contacts.unknown(fact.route.medium),
            ambient=self._is_ambient(fact.route),
            known_place=conversation in lanes,
            about_code=self._registry.is_about(fact),
        )
        if how is None or how.keep or (how.control and not fact.author.address.vouched):
            self._tell_of_stranger(contact, fact)
        if how is None:
            return
        try:
            await self._deliver(fact, conversation, how, lanes)
        except Parked:
            if isinstance(fact, MessageReceived) and not how.keep:
                await self._explain(fact, conversation)
            raise

    def _is_ambient(self, route: Route) -> bool:
        """Under the name that it has, or had when it was set."""
        names = {route.place, self._contacts.book.place(route.account, route.place)}
        return any(f"{route.medium}:{name}" in self._ambient for name in names)

    async def _note(self, fact: MessageDeleted | MessageReacted, lanes: Lanes) -> None:
        """What was done to a message: known where that was said, and it opens no conversation."""
        conversation = conversation_of(fact, self._contacts.of(fact), self._contacts.book)
        if conversation in lanes:
            await self._deliver(fact, conversation, Manner(), lanes)

    def _tell_of_stranger(self, contact: Contact, fact: MediumFact) -> None:
        """Once for each."""
        if contact.role == "stranger" and contact.key not in self._told:
            self._told.add(contact.key)
            if not fact.author.address.vouched:
                self._operator(
                    f"{fact.author.address} wrote, but the receiving server does not vouch for that address, so it is "
                    f"nobody's and nobody answers: if it was a contact of yours, see docs/{fact.route.medium}.md."
                )
                return
            mends = "add the address to a [[contacts]] entry, link it (`frontdesk people link NAME ADDRESS`)"
            if isinstance(fact, MessageReceived) and fact.outsider:
                mends += "; a guest, or of another workspace, or Slack does not tell."
            elif fact.private:
                mends += ", or set access.unknown."
            else:
                mends += ', or set access.unknown = "reply", which alone answers strangers where others read, too.'
            who = f"{fact.author.address} ({fact.author.name})"
            self._operator(f"{who} wrote and is not a contact, so nobody answers: {mends}")

    async def _deliver(self, fact: Fact, conversation: str, how: Manner, lanes: Lanes) -> None:
        """Unless a conversation that has joined this one took it already."""
        for old in self._contacts.book.formerly(conversation.removeprefix("p-")):
            if f"p-{old}" in lanes and (await lanes.get(f"p-{old}")).journal.state.knows(fact):
                return
        await lanes.ask(conversation, lambda lane: lane.take(fact, how))

    # --- people who turn out to be one, or two -----------------------------------------------------------------------

    async def _settle(self, lanes: Lanes) -> None:
        """Each step can be done again: after a crash all of them are."""
        book = self._contacts.book
        if self._settled == book.changes:
            return
        self._settled = book.changes
        for old, new in list(book.merged.items()):
            if f"p-{old}" in lanes:
                with suppress(Parked):
                    await self._join(f"p-{old}", f"p-{new}", lanes)
        for conversation in lanes.names():
            if conversation.startswith("p-"):
                with suppress(Parked):
                    await self._part(conversation, lanes)

    async def _join(self, old: str, new: str, lanes: Lanes) -> None:
        if old not in (await lanes.get(new)).journal.state.joined:
            joined = await lanes.ask(old, lambda lane: lane.leave(new))
            await lanes.ask(new, lambda lane: lane.join(joined))
        for fact in (await lanes.get(old)).journal.state.left:
            await lanes.ask(self._contacts.home(new), lambda lane, fact=fact: lane.take(fact, Manner()))  # type: ignore[misc]

    async def _part(self, conversation: str, lanes: Lanes) -> None:
        state = (await lanes.get(conversation)).journal.state
        if state.moved:
            return
        for address in list(state.reached):
            if f"p-{self._contacts.key_of(address)}" != conversation:
                await lanes.ask(conversation, lambda lane, one=address: lane.part(one))  # type: ignore[misc]
        for fact in state.left:
            if isinstance(fact, MessageReceived):
                await self._hear(fact, lanes)

    # --- lanes -------------------------------------------------------------------------------------------------------

    async def _open(self, conversation: str) -> Lane:
        state = LaneState(conversation, self._zone)
        journal = Journal(self._broker, f"log.lane.{conversation}", state, LaneEntry, self._guard, self._worker)
        await journal.open()
        known = self._contacts.with_key(conversation.removeprefix("p-"))
        who = known or _someone(conversation, self._contacts.timezone)
        means = Means(
            frame=prompt.Frame(self._assistant, who, conversation.startswith("s-"), self._by_schema),
            model=self._model,
            shows=Shows(self._tell),
            pace=self._pace,
            now=self._now,
            operator=self._operator,
            rights=self._contacts.rights(conversation),
            notes=self._notes,
            recall=self._recall,
            pairing=self._pairing,
            around=self._around,
            purse=self._purse,
        )
        return Lane(journal, means)


def _fact(data: bytes) -> Fact | ChangePeople | PlaceMoved:
    """Raises Undecodable."""
    found: Fact | ChangePeople | PlaceMoved = decode(data, Fact | ChangePeople | PlaceMoved)
    return found


def _someone(conversation: str, timezone: str) -> Contact:
    """A shared place, a stranger, or a contact who has left the settings, who goes on with a stranger's rights."""
    return Contact(key=conversation, name="somebody you don't know", role="stranger", timezone=timezone)
