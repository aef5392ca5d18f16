"""A town for the brain alone: the real broker and the real manager; mediums are what is said and what is sent.

    async with town(path, desk) as here:
        await here.says(ANA_TELEGRAM, "Hello.")
        assert await here.told("42") == ["Good morning"]

The desk is a function from a request to a generation. Actions are not run: their facts are told by the test.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from brain.contacts import Contact, Contacts, Unknown
from brain.entries import LaneEntry
from brain.hold import Pace
from brain.manager import Manager
from brain.people import PeopleState
from brain.state import LaneState
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.events import ActionCommand, MessageReceived, OutboxCommand, Person, Send
from gateway.journal import fold_stored, publish
from gateway.llm.model import Generation, RawCall, Request
from gateway.record import decode
from tests.patience import PATIENCE_SECONDS
from tests.staging.waiting import until
from tests.store.conftest import GUARD, running

Desk = Callable[[Request], Generation]
OWNER, MEMBER, OTHER, GUEST, STRANGER = (Address(medium="telegram", user=user) for user in ("1", "2", "3", "4", "9"))
OWNER_MAIL = Address(medium="email", user="ana@example.org")
CONTACTS = [
    Contact(key="ana", name="Ana", role="owner", addresses=(OWNER, OWNER_MAIL)),
    Contact(key="ben", name="Ben", role="member", addresses=(MEMBER,)),
    Contact(key="cleo", name="Cleo", role="member", addresses=(OTHER,)),
    Contact(key="gus", name="Gus", role="guest", addresses=(GUEST,)),
]

QUICK = Pace(quiet_seconds=0.01, progress_seconds=0.0)
_NUMBERS = itertools.count(1)  # also of a town that was there before on the same file


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def passes(self, **how: float) -> None:
        self.at += timedelta(**how)


class Scripted:
    name = "scripted"

    def __init__(self, desk: Desk) -> None:
        self.desk, self.requests = desk, list[Request]()

    async def generate(self, request: Request, on_spent: Any = None) -> Generation:
        await asyncio.sleep(0)
        if "Mark (guest)" in shown(request):
            return calls("wait", reason="a mark")
        self.requests.append(request)
        return self.desk(request)


def call(name: str, /, **arguments: Any) -> RawCall:
    return RawCall(name=name, arguments=json.dumps(arguments))


def calls(name: str, /, **arguments: Any) -> Generation:
    return Generation(calls=(call(name, **arguments),))


def says(text: str) -> Generation:
    return Generation(text=text)


def shown(request: Request) -> str:
    """All that the model was shown."""
    return "\n".join(str(message.get("content")) for message in request.messages)


def tools(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


def private(address: Address) -> Route:
    return Route(medium=address.medium, account=f"{address.medium}-0", place=address.user)


def room(name: str, thread: str | None = None) -> Route:
    return Route(medium="slack", account="slack-0", place=name, thread=thread)


class Town:
    def __init__(self, broker: SqliteBroker, model: Scripted, clock: Clock) -> None:
        self.broker, self.model, self.clock = broker, model, clock
        self.notices: list[str] = []
        self.manager: Manager

    async def says(self, who: Address, text: str, at: Route | None = None, **more: Any) -> MessageReceived:
        number = str(next(_NUMBERS))
        self.clock.passes(milliseconds=10)
        message = MessageReceived(
            identity=more.pop("identity", f"message/{number}"),
            route=at or private(who),
            author=Person(address=who, name=more.pop("name", f"{who.medium} {who.user}")),
            text=text,
            at=self.clock(),
            private=at is None,
            **more,
        )
        await self.tells(message)
        return message

    async def tells(self, fact: Any, msg_id: str = "") -> None:
        await publish(self.broker, "evt.medium.test", fact, msg_id or f"{fact}"[:200])

    async def settled(self) -> None:
        """Everything that was told has been taken, and nothing is left to decide."""
        mark = await self.says(Address(medium="telegram", user="mark"), ".", identity=f"mark/{next(_NUMBERS)}")

        def done() -> bool:
            states = [lane.journal.state for lane in self.manager.lanes()]
            taken = any(state.knows(mark) for state in states)
            return taken and not any(state.undecided or state.outgoing for state in states)

        await until(done, lambda: [lane.journal.state.undecided for lane in self.manager.lanes()])

    async def sends(self) -> list[Send]:
        found: list[Send] = []
        for subject in await self.broker.subjects("cmd.out.>"):
            words = [decode(stored.data, OutboxCommand) for stored in await self.broker.read(subject)]
            found += [word for word in words if isinstance(word, Send) and word.route.place != "mark"]
        return found

    async def told(self, place: str) -> list[str]:
        return [send.text for send in await self.sends() if send.route.place == place]

    async def until_told(self, place: str, text: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in await self.told(place):
                await asyncio.sleep(0.01)

    async def commands(self) -> list[ActionCommand]:
        subjects = await self.broker.subjects("cmd.act.>")
        return [decode(one.data, ActionCommand) for subject in subjects for one in await self.broker.read(subject)]

    async def lane(self, conversation: str) -> LaneState:
        return await fold_stored(self.broker, f"log.lane.{conversation}", LaneState(conversation), LaneEntry)


MARK = Contact(key="mark", name="Mark", role="guest", addresses=(Address(medium="telegram", user="mark"),))


@contextlib.asynccontextmanager
async def town(
    path: Path,
    desk: Desk,
    *,
    unknown: Unknown = "ignore",
    contacts: list[Contact] | None = None,
    clock: Clock | None = None,
    pace: Pace = QUICK,
    timezone: str = "UTC",
    **more: Any,
) -> AsyncIterator[Town]:
    broker, clock = SqliteBroker(path), clock or Clock()
    here = Town(broker, Scripted(desk), clock)
    here.manager = Manager(
        broker,
        GUARD,
        "town",
        assistant="Frontdesk",
        contacts=Contacts([*(contacts or CONTACTS), MARK], lambda medium: unknown, timezone, PeopleState()),
        model=here.model,
        tell=lambda account, signal: None,
        operator=here.notices.append,
        now=clock,
        pace=pace,
        **more,
    )
    try:
        async with running(here.manager.run()):
            yield here
    finally:
        await broker.close()
