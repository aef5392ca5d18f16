"""The conversation for pipes: lines in, a transcript out, figures at the end. No terminal and no colours enter here.

A line is sent after the previous one has had its first visible outcome. An outcome is a recorded silence, or a turn
that decided on the message together with the reply; only one of these two counts alone after a grace, because a turn
may steer without a word, and because what a turn decided may be lost with a process.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TextIO

import msgspec

from gateway.record import Record
from mediums.local import wire
from mediums.local.client import Disconnected, Event, LocalClient
from mediums.local.commands import look_of
from mediums.local.status import Status
from mediums.visible import printable

GRACE_SECONDS, QUIET_SECONDS, PATIENCE_SECONDS = 3.0, 1.5, 600.0
BACK_SECONDS = 20.0  # for a gateway that is gone when all was answered


class PlainResult(Record, frozen=True, kw_only=True):
    """`messages` is what was sent; `lost` of them were not accepted, or had no outcome; `doubled` came twice."""

    messages: int
    answered: int
    left_alone: int
    lost: int
    doubled: int
    questions: int

    @property
    def ok(self) -> bool:
        """Everything has its outcome, once, and nothing waits for an answer."""
        return not (self.lost or self.doubled or self.questions)


class Message(msgspec.Struct):
    position: int = 0
    times: int = 0
    decided: bool = False
    replied: bool = False
    silence: str = ""
    passed_on: str = ""

    @property
    def has_sign(self) -> bool:
        return self.decided or self.replied

    @property
    def settled(self) -> bool:
        return bool(self.silence or self.passed_on) or (self.decided and self.replied)


class Ledger:
    """What has become of each message, told by events. Pure."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.status = Status()
        self.events = 0
        self.refused = 0

    def apply(self, event: Event) -> None:
        self.events += not isinstance(event, Disconnected)
        self.status.apply(event)
        match event:
            case wire.Post(author="you", id=said, position=position) if said in self.messages:
                self.messages[said].position = position
                self.messages[said].times += 1
            case wire.Post(author="assistant", position=position):
                for message in self.messages.values():
                    message.replied |= 0 < message.position < position
            case wire.Decided(ids=ids, silence=silence, passed_on=passed_on):
                for message in (self.messages[said] for said in ids if said in self.messages):
                    message.decided, message.silence, message.passed_on = True, silence, passed_on
            case wire.Refused(id=said) if self.messages.pop(said, None):
                self.refused += 1
            case _:
                pass

    @property
    def done(self) -> bool:
        told = all(message.has_sign for message in self.messages.values())
        return told and self.status.connected and not self.status.busy and not self.status.typing

    def result(self) -> PlainResult:
        known = self.messages.values()
        alone = sum(bool(message.silence) for message in known)
        answered = sum(message.has_sign and not message.silence for message in known)
        return PlainResult(
            messages=len(known) + self.refused,
            answered=answered,
            left_alone=alone,
            lost=len(known) - answered - alone + self.refused,
            doubled=sum(message.times > 1 for message in known),
            questions=self.status.questions,
        )


async def run_plain(
    client: LocalClient,
    lines: AsyncIterable[str],
    out: TextIO,
    *,
    grace_seconds: float = GRACE_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> PlainResult:
    """Says each line, then waits until no action works and every message was answered or left alone.

    Gives up after `patience_seconds` in which nothing was heard; what is open by then counts as lost. Raises
    AccessDenied. The client must be open; nobody else may iterate over it.
    """
    plain = _Plain(client, out, patience_seconds)
    hearing = asyncio.create_task(plain.hear())
    talking = asyncio.create_task(plain.talk(lines, grace_seconds, quiet_seconds))
    try:
        await asyncio.wait({hearing, talking}, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            hearing.result()
        return await talking
    finally:
        hearing.cancel()
        talking.cancel()
        await asyncio.gather(hearing, talking, return_exceptions=True)


async def lines_of(stream: TextIO) -> AsyncIterator[str]:
    """The lines of a pipe that are not empty, read without holding up the loop."""
    while line := await asyncio.to_thread(stream.readline):
        if line.strip():
            yield line.strip()


class _Plain:
    def __init__(self, client: LocalClient, out: TextIO, patience_seconds: float) -> None:
        self._client, self._out, self._patience_seconds = client, out, patience_seconds
        self._ledger = Ledger()
        self._looking: set[str] = set()
        self._alone = False  # it was said that there is no gateway
        self._older: int | None = None  # what was said before this run is not part of its transcript
        self._changed = asyncio.Event()

    async def hear(self) -> None:
        async for event in self._client:
            self._print(event)
            self._ledger.apply(event)
            self._changed.set()
            self._changed = asyncio.Event()

    async def talk(self, lines: AsyncIterable[str], grace_seconds: float, quiet_seconds: float) -> PlainResult:
        await self._until(lambda: self._older is not None)
        async for line in lines:
            if line == "/quit":
                break
            if not await self._turn(line, grace_seconds):
                return self._ledger.result()
        while await self._until(lambda: self._ledger.done):
            if not await self._anything(quiet_seconds) and not await self._comes_back():
                break
        return self._ledger.result()

    async def _comes_back(self) -> bool:
        """Where the gateway is gone at the end: it may be starting, and have more to say."""
        status = self._ledger.status
        return not status.connected and await self._within(BACK_SECONDS, lambda: status.connected)

    async def _turn(self, line: str, grace_seconds: float) -> bool:
        """One line and its outcome; false when none came."""
        look = look_of(line)
        self._write("you", line)
        if look:
            looking = self._client.look(*look)
            self._looking.add(looking)
            return await self._until(lambda: looking not in self._looking)
        said = self._client.say(line)
        message = self._ledger.messages[said] = Message()
        if not await self._until(lambda: message.has_sign or said not in self._ledger.messages):
            return False
        await self._within(grace_seconds, lambda: message.settled or said not in self._ledger.messages)
        return True

    async def _until(self, ready: Callable[[], bool]) -> bool:
        """False when nothing at all was heard for as long as our patience lasts."""
        while not ready():
            if not await self._anything(self._patience_seconds):
                return False
        return True

    async def _anything(self, seconds: float) -> bool:
        heard = self._ledger.events
        return await self._within(seconds, lambda: self._ledger.events > heard)

    async def _within(self, seconds: float, ready: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while not ready():
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _print(self, event: Event) -> None:
        match event:
            case wire.Hello(newest=newest) if self._older is None:
                self._older = newest
            case wire.Hello():
                self._write("·", "back again")
            case Disconnected() if self._ledger.status.connected:
                self._write("·", "the connection is gone, trying again")
            case Disconnected(why=why) if not (self._ledger.events or self._alone):
                self._alone = True
                self._write("·", f"no gateway answers ({why}): start one with `frontdesk run`; trying again")
            case wire.Post(position=position) if position <= (self._older or 0):
                pass
            case wire.Post(author="assistant", text=text, files=files):
                lines = [self._client.line_of(file) for file in files]
                self._write("assistant", "\n".join([text, *lines] if text else lines))
            case wire.Post(id=said, text=text, pressed=pressed) if said not in self._ledger.messages:
                self._write("you", f"{pressed}: {text}" if pressed else text)
            case wire.Decided(ids=ids, silence=silence) if silence and self._ledger.messages.keys() & set(ids):
                self._write("·", f"left alone: {silence}")
            case wire.Decided(ids=ids, passed_on=text) if text and self._ledger.messages.keys() & set(ids):
                self._write("·", text)
            case wire.Looked(id=looked, text=text):
                self._looking.discard(looked)
                self._write("·", text)
            case wire.Refused(id=refused, why=why):
                self._looking.discard(refused)
                self._write("·", f"refused: {why}")
            case _:
                pass

    def _write(self, who: str, text: str) -> None:
        mark = "· " if who == "·" else f"{who}> "
        self._out.write(mark + printable(text).replace("\n", "\n" + " " * len(mark)) + "\n")
        self._out.flush()
