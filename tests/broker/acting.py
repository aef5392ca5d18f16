"""Actions without sandboxes, whose worker responds with the last words that it was told."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from actors.sandbox.words import Attached
from actors.sharing import Sharing
from actors.supervisor import ActionHost
from actors.workshop import Limits, Workshop
from gateway.addresses import Address
from gateway.broker.protocol import Broker
from gateway.events import ActionAnswered, ActionEnded, ActionFact, ActionResponded, CommandRefused, Person
from gateway.holding import Guard
from gateway.llm.model import Generation, OnSpent, Request, Usage
from gateway.record import decode

ANA = Person(address=Address(medium="web", user="ana"), name="Ana")


class NoBox:
    def __init__(self, key: str, emit: Any) -> None:
        pass

    def is_here(self, moves: int) -> bool:
        return True

    def settle(self, moves: int) -> None:
        return

    async def attach(self) -> Attached:
        return Attached(alive=False, stateful=False, cells=())

    async def kill(self) -> None:
        return

    suspend = resume = close = kill


class Quick:
    name = "quick"

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        await asyncio.sleep(0.01)
        said = [str(message["content"]) for message in request.messages if message["role"] == "user"]
        return Generation(text=f"heard {said[-1]}", calls=(), finish="stop", usage=Usage(), model="quick")


async def run_actions(
    broker: Broker, guard: Guard, worker: str, sharing: Sharing, operator: Callable[[str], None]
) -> None:
    work = Workshop(
        model=Quick(),
        box=NoBox,  # type: ignore[arg-type]
        primitives={},
        limits=Limits(),
        now=lambda: datetime.now(UTC),
        operator=operator,
        waiting=lambda key, after: host.waiting(key, after),  # noqa: PLW0108 - the host is made below
        check=guard.check,
    )
    host = ActionHost(broker, guard, worker, work, sharing)
    await host.run()


async def told(broker: Broker, key: str) -> dict[str, int]:
    """What its conversation hears of it, each once, as a lane takes it."""
    stored = [decode(one.data, ActionFact) for one in await broker.read(f"evt.act.{key}")]
    found: Counter[str] = Counter()
    for fact in {fact.ref: fact for fact in stored}.values():
        match fact:
            case ActionAnswered():
                found[f"answered {fact.command.batch}"] += 1
            case ActionResponded():
                found["responded"] += 1
            case ActionEnded():
                found["ended"] += 1
            case CommandRefused():
                found[f"refused {fact.verb}: {fact.why}"] += 1
    return dict(found)
