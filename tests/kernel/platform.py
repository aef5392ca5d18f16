"""A chat platform outside every process: updates until they are confirmed, sends that it may refuse or leave open.

And the medium that a process has on it, with a point before and after each effect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.addresses import Address, Route
from gateway.events import MessageReceived, Person
from gateway.live import LiveSignal
from mediums.medium import Health, Keep, OutcomeUnknown, Publish, SurelyNotSent
from tests.kernel.faults import Gate

ACCOUNT, PLACE = "chat", "ana"
ANA = Person(address=Address(medium="chat", user="ana"), name="Ana")
LEFT_OPEN = "Noted"  # what begins so is shown, and its answer is lost


class Gone(Exception):
    """The connection to the platform broke."""


@dataclass(frozen=True)
class Shown:
    text: str
    key: str


class Platform:
    """`refusals`: so many sends it answers with 429 at first. `repeatable`: one key is shown once."""

    def __init__(self, repeatable: bool, refusals: int = 1) -> None:
        self.repeatable, self.may_come_back = repeatable, False
        self.pushed: list[MessageReceived] = []
        self.confirmed = 0
        self.shown: list[Shown] = []
        self.early: list[str] = []
        self.durable: Callable[[str], Awaitable[bool]] = _always
        self._refusals = refusals
        self._left_open: set[str] = set()
        self._more, self._showed = asyncio.Event(), asyncio.Event()

    def push(self, text: str) -> None:
        n = len(self.pushed) + 1
        route = Route(medium="chat", account=ACCOUNT, place=PLACE)
        identity = f"{ACCOUNT}/message/{n}/0"
        self.pushed.append(MessageReceived(identity=identity, route=route, author=ANA, text=text, at=datetime.now(UTC)))
        self._more.set()

    async def updates(self) -> list[tuple[int, MessageReceived]]:
        while self.confirmed >= len(self.pushed):
            self._more.clear()
            await self._more.wait()
        return [(n, message) for n, message in enumerate(self.pushed, 1) if n > self.confirmed]

    def confirm(self, update: int) -> None:
        self.confirmed = max(self.confirmed, update)

    async def send(self, text: str, key: str) -> None:
        if self._refusals:
            self._refusals -= 1
            raise SurelyNotSent("429", retry_after_seconds=0.01)
        if self.repeatable and any(one.key == key for one in self.shown):
            return
        if not await self.durable(key):
            self.early.append(text)
        self.shown.append(Shown(text, key))
        self._showed.set()
        if text.startswith(LEFT_OPEN) and key not in self._left_open:
            self._left_open.add(key)
            raise OutcomeUnknown("no answer came")

    async def until_shown(self, words: str, seconds: float) -> None:
        """Or until that time has passed: a message may be lost for good, with its end recorded as unknown."""
        try:
            async with asyncio.timeout(seconds):
                while not any(words in one.text for one in self.shown):
                    self._showed.clear()
                    await self._showed.wait()
        except TimeoutError:
            return


async def _always(key: str) -> bool:
    return True


class ScriptedMedium:
    """`mediums.medium.Medium` on that platform."""

    name, account = "chat", ACCOUNT

    def __init__(self, platform: Platform, gate: Gate) -> None:
        self._platform, self._gate = platform, gate
        self.repeatable, self.may_come_back = platform.repeatable, False

    async def receive(self, publish: Publish, keep: Keep) -> None:
        while True:
            try:
                found = await self._platform.updates()
                await self._gate.point("updates", "after", lost=Gone)
                for update, message in found:
                    await publish(message)
                    await self._confirm(update)
            except Gone:
                await asyncio.sleep(0.005)

    async def _confirm(self, update: int) -> None:
        async def effect() -> None:
            self._platform.confirm(update)

        await self._gate.run("confirm", effect, Gone)

    def split(self, text: str) -> tuple[str, ...]:
        """Each paragraph is a message of its own."""
        return tuple(part for part in text.split("\n\n") if part.strip())

    async def send(self, route: Route, text: str, key: str) -> None:
        await self._gate.run("send", lambda: self._platform.send(text, key), OutcomeUnknown)

    async def show(self, signal: LiveSignal) -> None:
        return

    def health(self) -> Health:
        return Health(well=True)
