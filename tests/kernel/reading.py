"""Everything durable of a run, read afresh and folded by the product's own folds."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain.entries import LaneEntry
from brain.people import PeopleEntry
from brain.state import LaneState
from gateway.broker.protocol import Broker, Unconfirmed
from gateway.events import ActionCommand, Fact, OutboxCommand
from gateway.journal import unstamped
from gateway.outbox import Entry as OutboxEntry
from gateway.outbox import OutboxState
from gateway.record import decode

T = TypeVar("T")

CONVERSATION, ACCOUNT = "p-ana", "chat"


async def patiently(read: Callable[[], Awaitable[T]]) -> T:
    """Again, where the server of a busy machine did not answer in time: whoever looks on is no part of the story."""
    while True:
        with suppress(Unconfirmed):
            return await read()


@dataclass
class Reading:
    lane: list[Any] = field(default_factory=list)
    out: list[Any] = field(default_factory=list)
    acts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    facts: list[Any] = field(default_factory=list)
    sends: list[Any] = field(default_factory=list)
    commands: list[Any] = field(default_factory=list)
    places: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # of the entries in `acts`
    epochs: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    nonces: list[str] = field(default_factory=list)

    @classmethod
    async def of(cls, broker: Broker) -> "Reading":
        return await patiently(lambda: cls._of(broker))

    @classmethod
    async def _of(cls, broker: Broker) -> "Reading":
        reading = cls()
        for stored in await broker.read("log.>"):
            family, _, key = stored.subject.removeprefix("log.").partition(".")
            kinds: dict[str, Any] = {"lane": LaneEntry, "out": OutboxEntry, "act": ActionEntry, "people": PeopleEntry}
            epoch, nonce, entry = unstamped(stored, kinds[family])
            reading.epochs[stored.subject].append(epoch)
            reading.nonces.append(nonce)
            if family == "people":
                continue
            if family == "act":
                reading.places[key].append(stored.sequence)
            into = {"lane": reading.lane, "out": reading.out}.get(family)
            (reading.acts[key] if into is None else into).append(entry)
        reading.facts = [decode(stored.data, Fact) for stored in await broker.read("evt.>")]
        reading.sends = [decode(stored.data, OutboxCommand) for stored in await broker.read("cmd.out.>")]
        reading.commands = [decode(stored.data, ActionCommand) for stored in await broker.read("cmd.act.>")]
        return reading

    def lane_state(self) -> LaneState:
        return folded(LaneState(CONVERSATION), self.lane)

    def out_state(self) -> OutboxState:
        return folded(OutboxState(ACCOUNT), self.out)

    def act_states(self) -> dict[str, ActionState]:
        return {key: folded(ActionState(key), entries) for key, entries in self.acts.items()}

    def unsettled(self) -> str:
        lane, out, acts = self.lane_state(), self.out_state(), self.act_states()
        busy = {
            "undecided": [heard.fact for heard in lane.undecided],
            "outgoing": [*lane.outgoing, *out.outgoing, *(one for act in acts.values() for one in act.outgoing)],
            "open sends": list(out.open),
            "unheard facts": [fact for fact in self.facts if not lane.knows(fact)],
            "unheard sends": [send for send in self.sends if not out.knows(send.ref)],
            "unheard commands": [c for c in self.commands if c.action not in acts or not acts[c.action].knows(c.ref)],
            "asks": [act.asks for act in acts.values() if act.asks],
            "working": [key for key, act in acts.items() if works(act)],
        }
        return ", ".join(f"{name}: {value}" for name, value in busy.items() if value)

    def unsettled_actions(self) -> bool:
        """Whether an action still runs, or has something to say, or was told something that is not in its log."""
        acts = self.act_states()
        open_ones = [key for key, act in acts.items() if not act.transcript.ended or act.outgoing or act.asks]
        return bool(open_ones or [c for c in self.commands if c.action not in acts or not acts[c.action].knows(c.ref)])


def works(act: ActionState) -> bool:
    return act.phase in ("running", "paused")


def folded(state: Any, entries: Iterable[Any]) -> Any:
    for entry in entries:
        state.apply(entry)
    return state
