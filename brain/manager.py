"""The ConversationManager: every fact to its lane, durably, before it is acknowledged. It has no tools for the work.

Here is the lanes' supervisor: a lane that fails is folded again from its journal; the others do not notice.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from brain import prompt
from brain.contacts import Contact, Contacts, conversation_of
from brain.entries import LaneEntry
from brain.hold import Pace
from brain.lane import Lane
from brain.recalling import Recall
from brain.showing import Shows, Tell
from brain.state import LaneState
from gateway import live
from gateway.broker.protocol import Broker, Deposed
from gateway.clock import Now
from gateway.events import Fact, MediumFact, MessageReceived
from gateway.holding import Guard
from gateway.journal import Journal, JournalClosed, acknowledge
from gateway.keeping import Consumed
from gateway.llm.model import Model
from gateway.notes import Notes
from gateway.record import Undecodable, decode

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0


class Manager:
    """`tell` carries live signals to an account's medium; `operator` hears what somebody must mend."""

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
    ) -> None:
        self._broker, self._guard, self._worker = broker, guard, worker
        self._assistant, self._contacts, self._model = assistant, contacts, model
        self._tell, self._operator, self._now, self._pace = tell, operator, now, pace
        self._notes, self._recall = notes, recall
        self._lanes: dict[str, asyncio.Future[Lane]] = {}

    async def run(self) -> None:
        unwatch = self._broker.watch(live.AGAIN, self._show_again)
        try:
            async with asyncio.TaskGroup() as group:
                for subject in await self._broker.subjects("log.lane.>"):
                    self._keep(subject.removeprefix("log.lane."), None, group)
                consumed = Consumed(self._broker)
                async for delivery in self._broker.consume("evt.>", "brain"):
                    await self._take(delivery.stored.data, group)
                    await acknowledge(delivery.ack)
                    await consumed.forget(delivery.stored)
        finally:
            unwatch()
            await asyncio.gather(*(lane.journal.release() for lane in self.lanes()))

    def _show_again(self, _: bytes) -> None:
        for lane in self.lanes():
            lane.show_again()

    def lanes(self) -> list[Lane]:
        """Those that are open now."""
        return [lane.result() for lane in self._lanes.values() if lane.done() and not lane.cancelled()]

    # --- intake ------------------------------------------------------------------------------------------------------

    async def _take(self, data: bytes, group: asyncio.TaskGroup) -> None:
        try:
            fact: Fact = decode(data, Fact)
        except Undecodable as error:
            self._operator(f"A stored fact cannot be read and is set aside: {error}")
            return None
        contact = None
        if isinstance(fact, MediumFact):
            contact = self._contacts.of(fact)
            if contact is None:
                if isinstance(fact, MessageReceived):
                    self._operator(
                        f"{fact.author.address} ({fact.author.name}) wrote and is not a contact, so nobody answers: "
                        "add the address to a [[contacts]] entry, or set access.unknown."
                    )
                return None
            conversation = conversation_of(fact, contact)
        else:
            conversation = fact.conversation
        if conversation not in self._lanes:
            self._keep(conversation, contact, group)
        while True:
            lane = await asyncio.shield(self._lanes[conversation])
            with suppress(JournalClosed):  # it failed and is being folded again
                return await lane.take(fact)
            await asyncio.sleep(FIRST_PAUSE_SECONDS)

    # --- the lanes' supervisor ---------------------------------------------------------------------------------------

    def _keep(self, conversation: str, contact: Contact | None, group: asyncio.TaskGroup) -> None:
        self._lanes[conversation] = asyncio.get_running_loop().create_future()
        group.create_task(self._keep_running(conversation, contact), name=f"lane {conversation}")

    async def _keep_running(self, conversation: str, contact: Contact | None) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            lane = await self._open(conversation, contact)
            self._lanes[conversation].set_result(lane)
            try:
                await lane.run()
            except* Deposed:
                raise
            except* Exception:
                log.exception("lane %s (%s) failed; it is folded again", conversation, lane.frame.contact.name)
            self._lanes[conversation] = asyncio.get_running_loop().create_future()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _open(self, conversation: str, contact: Contact | None) -> Lane:
        state = LaneState(conversation)
        journal = Journal(self._broker, f"log.lane.{conversation}", state, LaneEntry, self._guard, self._worker)
        await journal.open()
        who = contact or self._contacts.with_key(conversation.removeprefix("p-")) or _someone(conversation)
        shared = conversation.startswith("s-")
        return Lane(
            journal,
            prompt.Frame(self._assistant, who, shared),
            self._model,
            Shows(self._tell),
            self._pace,
            self._now,
            self._operator,
            self._contacts.rights(conversation),
            self._notes,
            self._recall,
        )


def _someone(conversation: str) -> Contact:
    """A conversation whose contact has left the settings: it is finished with a guest's rights."""
    return Contact(key=conversation, name="somebody no longer in the contacts", role="guest")
