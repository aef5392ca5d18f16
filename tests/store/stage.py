"""A stage for the kernel: the real broker, outboxes, lanes and keeper; platforms and models are written by hand."""

import asyncio
import re
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from brain.contacts import Contact, Contacts
from brain.hold import Pace
from brain.manager import Manager
from gateway.addresses import Address, Route
from gateway.broker.sqlite import SqliteBroker
from gateway.clock import utc_now
from gateway.events import MessageReceived, Person
from gateway.journal import publish
from gateway.llm.model import Generation
from gateway.outbox import Outbox
from tests.store.conftest import GUARD, running


class FakePlatform:
    """Remembers what arrived. `script` gives, for a room's place, what each next attempt raises or awaits."""

    def __init__(self, account="telegram-1", repeatable=False, parts=1):
        self.account, self.repeatable, self._parts = account, repeatable, parts
        self.may_come_back = False
        self.script = defaultdict(list)
        self.tried, self.arrived = [], []  # (place, text, key, when)
        self.cards = {}

    def split(self, text):
        return tuple(f"{text} {n + 1}/{self._parts}" for n in range(self._parts)) if self._parts > 1 else (text,)

    async def send(self, route, text, key):
        loop = asyncio.get_running_loop()
        self.tried.append((route.place, text, key, loop.time()))
        step = self.script[route.place].pop(0) if self.script[route.place] else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            await step()
        self.arrived.append((route.place, text, key, loop.time()))

    async def show_card(self, route, card, message):
        """`cards` are its messages, each with all that it said."""
        await self.send(route, card.text, message or "new")
        message = message or f"m{len(self.cards) + 1}"
        self.cards.setdefault(message, []).append(card.text)
        return message

    def texts(self, place=None):
        return [text for where, text, _, _ in self.arrived if place in (None, where)]


class EchoModel:
    """Answers each turn with the texts that it heard, after a while."""

    name = "echo"

    def __init__(self, seconds=0.0):
        self.seconds, self.requests = seconds, []

    async def generate(self, request, on_spent=None):
        self.requests.append(request)
        await asyncio.sleep(self.seconds() if callable(self.seconds) else self.seconds)
        heard = re.findall(r"^\[m\d+ · [^\]]*\] (.*)$", request.messages[-2]["content"], re.MULTILINE)
        return Generation(text=f"echo {' + '.join(heard)}", finish="stop", model=self.name)


def route(place, account="telegram-1", reply_to=None):
    return Route(medium="telegram", account=account, place=place, reply_to=reply_to)


def said(place, text, number, user=None, account="telegram-1"):
    return MessageReceived(
        identity=f"{account}/message/{place}:{number}/0",
        route=route(place, account, str(number)),
        author=Person(address=Address(medium="telegram", user=user or place), name=f"Person {user or place}"),
        text=text,
        at=datetime(2026, 1, 5, 9, tzinfo=UTC),
    )


PACE = Pace()


class Stage:
    def __init__(self, broker, platforms, manager, notices):
        self.broker, self.platforms, self.manager, self.notices = broker, platforms, manager, notices

    async def hears(self, message):
        await publish(self.broker, f"evt.medium.{message.route.account}", message, message.identity)


@asynccontextmanager
async def stage(path, model, users, platforms=None, broker=None, pace=PACE, caps=None, now=utc_now):
    """Open until the block ends; the broker is closed with it, unless it was brought."""
    async with AsyncExitStack() as stack:
        if broker is None:
            broker = SqliteBroker(path)
            stack.push_async_callback(broker.close)
        platforms = platforms or [FakePlatform()]
        contacts = [
            Contact(
                key=f"c{user}", name=f"Person {user}", role="member", addresses=(Address(medium="telegram", user=user),)
            )
            for user in users
        ]
        notices = []
        manager = Manager(
            broker,
            GUARD,
            "stage",
            assistant="Frontdesk",
            contacts=Contacts(contacts),
            model=model,
            tell=lambda account, signal: None,
            operator=notices.append,
            now=now,
            pace=pace,
            caps=caps,
        )
        outboxes = [Outbox(broker, platform, GUARD, "stage").run() for platform in platforms]
        await stack.enter_async_context(running(manager.run(), *outboxes))
        yield Stage(broker, platforms, manager, notices)
