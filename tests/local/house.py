"""A house for the room: the real medium on the real broker, and in place of a brain one that repeats what it hears.

`python -m tests.local.house DB PORT` runs it as a process that can be killed. It kills itself where a message says so:
"die before it is published", "… published", "… posted", each once.
"""

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from gateway.broker.sqlite import SqliteBroker
from gateway.events import MediumFact, MessageReceived
from gateway.holding import Guard
from gateway.journal import publish
from gateway.live import TurnDecided
from gateway.record import decode
from mediums.local import wire
from mediums.local.adapter import LocalMedium

TOKEN = "a-token-of-the-tests"
SUBJECT = "evt.in.local"


class Notes:
    """A console that has one thing to say about each."""

    async def trace(self, about: str) -> str:
        if about == "nothing":
            raise LookupError("there is no message like that")
        return f"**why** {about}<img src=x onerror=alert(1)>"

    async def code(self, about: str) -> str:
        return "```python\nprint(6 * 7)\n```"

    async def actions(self, about: str) -> str:
        return "- nothing"

    async def people(self, words: str) -> str:
        return "- Ana"


class House:
    def __init__(self, broker: SqliteBroker, medium: LocalMedium) -> None:
        self.broker, self.medium = broker, medium
        self.heard: list[MediumFact] = []  # each identity once, as a lane would take it

    async def publish(self, fact: MediumFact) -> None:
        await publish(self.broker, SUBJECT, fact, fact.identity)

    async def repeat(self) -> None:
        """Each message is answered with its own words; thanks are left alone."""
        seen: set[str] = set()
        async for delivery in self.broker.consume(SUBJECT, "house"):
            fact = decode(delivery.stored.data, MediumFact)
            if fact.identity not in seen:
                seen.add(fact.identity)
                self.heard.append(fact)
                if isinstance(fact, MessageReceived):
                    await self.answer(fact)
            await delivery.ack()

    async def answer(self, fact: MessageReceived) -> None:
        silence = "thanks needs no answer" if fact.text == "thanks" else ""
        await self.medium.show(TurnDecided(route=fact.route, covers=(fact.identity,), silence=silence))
        if not silence:
            await self.medium.send(fact.route, fact.text, f"house/{fact.identity}/0")

    async def published(self) -> list[MediumFact]:
        """Everything that was published, repeats included."""
        return [decode(stored.data, MediumFact) for stored in await self.broker.read(SUBJECT)]


@asynccontextmanager
async def house(path: Path, port: int = 0, kind: type[LocalMedium] = LocalMedium, answering: bool = True):
    """Open until the block ends; then everything is closed."""
    async with AsyncExitStack() as stack:
        broker = SqliteBroker(path)
        stack.push_async_callback(broker.close)
        lease = await broker.lease("local", "house", 600)
        assert lease
        medium = kind(
            broker,
            Guard(lease),
            "house",
            listen=("127.0.0.1", port),
            token=TOKEN,
            person="Ana",
            assistant="Frontdesk",
            banner=("rehearsal: rules, no model",),
            console=Notes(),
            now=lambda: datetime.now(UTC),
        )
        made = House(broker, medium)
        work = [asyncio.create_task(medium.receive(made.publish, made.broker.put_blob))]
        if answering:
            work.append(asyncio.create_task(made.repeat()))
        stack.push_async_callback(ended, work)
        opened = asyncio.create_task(medium.listening())
        await asyncio.wait({opened, *work}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()
            work[0].result()
        yield made


async def ended(work: list[asyncio.Task[None]]) -> None:
    for task in work:
        task.cancel()
    for end in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(end, Exception):
            raise end


class DyingMedium(LocalMedium):
    """Dies as `kill -9` would, once at each point (a file remembers which)."""

    def die(self, when: str, text: str) -> None:
        mark = Path(f"{sys.argv[1]}.{when}")
        if f"die {when}" in text and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    async def say(self, say: wire.Say, medium: wire.Where) -> wire.Accepted | wire.Refused:
        self.die("before it is published", say.text)
        answer = await super().say(say, medium)
        self.die("posted", say.text)
        return answer


async def main() -> None:
    async with house(Path(sys.argv[1]), int(sys.argv[2]), DyingMedium, answering=False) as made:
        whole = made.medium._publish

        async def publish_and_die(fact: MediumFact) -> None:
            await whole(fact)
            made.medium.die("published", fact.text)

        made.medium._publish = publish_and_die
        print("open", flush=True)
        await made.repeat()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
