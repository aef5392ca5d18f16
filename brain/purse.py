"""What was spent today, and what happens at a cap: who is over, until when, and what is said and done about it.

A day is one in the assistant's time zone. Each lane's fold knows what its conversation and its work have spent
(`Spending`); the purse adds it up. Nothing is lost at a cap: messages wait undecided, work stands still, and both go on
the next day.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from brain.entries import Decision, Speak, Steer
from brain.parts import Spending
from brain.state import UTC, LaneState
from brain.turn import Turn
from gateway.addresses import Address
from gateway.clock import Now
from gateway.events import Person
from gateway.record import Record

SPENT = (
    "The budget for today is used up, so I can't think until {until}. Your message is kept and answered then. "
    "`/status`, `/stop`, `/pause` and `/resume` work."
)
OF_ALL = "[model] max_usd_per_day"
OF_ONE = "[model] max_usd_per_person_per_day"


class Caps(Record, frozen=True, kw_only=True):
    """In US dollars a day in `zone`, for conversations and the work together. None: there is no cap."""

    all: float | None = None
    person: float | None = None
    zone: ZoneInfo = UTC


class Purse:
    """One for all lanes. `whose` gives the key of a person, the same for all of their addresses."""

    def __init__(self, caps: Caps, whose: Callable[[Address], str], now: Now, operator: Callable[[str], None]) -> None:
        self._caps, self._whose, self._now, self._operator = caps, whose, now, operator
        self._parts: dict[str, Spending] = {}  # conversation -> of its last day, by the keys of people
        self._day = ""
        self._total = 0.0
        self._by_person: dict[str, float] = {}
        self._told: set[str] = set()
        self._changed = asyncio.Event()

    @property
    def is_capped(self) -> bool:
        return self._caps.all is not None or self._caps.person is not None

    def note(self, conversation: str, spending: Spending) -> None:
        """What a conversation has spent by now, in all of its last day."""
        self._turn_day()
        self._add(self._parts.get(conversation), -1)
        part = self._parts[conversation] = Spending(day=spending.day)
        for who, usd in spending.usd.items():
            key = self._whose(Address.parse(who)) if who else ""
            part.usd[key] = part.usd.get(key, 0.0) + usd
        self._add(part, 1)
        if self._tell_operator():
            self._changed.set()
            self._changed = asyncio.Event()

    def unpriced(self, model: str) -> None:
        if self.is_capped and model not in self._told:
            self._told.add(model)
            self._operator(f"The price of {model} is not known: what it costs does not count for the caps in [model].")

    def is_over(self, people: Iterable[Person]) -> bool:
        """Of the person whose words it follows, or of all."""
        if not self.is_capped:
            return False
        self._turn_day()
        if self._caps.all is not None and self._total >= self._caps.all:
            return True
        cap = self._caps.person
        keys = {self._whose(person.address) for person in people}
        return cap is not None and any(self._by_person.get(key, 0.0) >= cap for key in keys)

    @property
    def until(self) -> datetime:
        """The next day's beginning."""
        today = self._now().astimezone(self._caps.zone)
        return (today + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)

    async def change(self) -> None:
        """Until somebody may be over, or the next day has begun."""
        seconds = self.until.timestamp() - self._now().timestamp()
        waiting = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({waiting}, timeout=seconds)
        finally:
            waiting.cancel()

    def _turn_day(self) -> None:
        if (day := self._now().astimezone(self._caps.zone).date().isoformat()) != self._day:
            self._day, self._total, self._by_person = day, 0.0, {}
            for spending in self._parts.values():
                self._add(spending, 1)

    def _add(self, spending: Spending | None, sign: int) -> None:
        if spending is None or spending.day != self._day:
            return
        for key, usd in spending.usd.items():
            self._total += sign * usd
            if key:
                self._by_person[key] = self._by_person.get(key, 0.0) + sign * usd

    def _tell_operator(self) -> bool:
        """Whether anybody is over; once a day for each."""
        over = []
        if self._caps.all is not None and self._total >= self._caps.all:
            over.append(("all", f"{self._total:.4f} of {self._caps.all:.4f} USD: raise {OF_ALL} to go on before"))
        if (cap := self._caps.person) is not None:
            spent = {key: usd for key, usd in self._by_person.items() if usd >= cap}
            over += [(key, f"{usd:.4f} of {cap:.4f} USD: raise {OF_ONE} to go on before") for key, usd in spent.items()]
        for who, what in over:
            if (said := f"{self._day} {who}") not in self._told:
                self._told.add(said)
                self._operator(f"Today's budget of {who} is used up, and rests until {self.until:%H:%M (%Z)}: {what}.")
        return bool(over)


def told(turn: Turn, until: datetime, zone: ZoneInfo) -> tuple[Decision, ...]:
    """Where they wrote, once a day; nothing where nobody waits for a reply."""
    said = turn.spoken_to()
    if not said or turn.state.capped == day_of(until) or (route := turn.state.route_of(said[-1])) is None:
        return ()
    return (Speak(route=route, text=SPENT.format(until=until.astimezone(zone).strftime("%H:%M (%Z)"))),)


def day_of(until: datetime) -> str:
    """The one that ends then, where that is midnight."""
    return (until - timedelta(days=1)).date().isoformat()


def steers(state: LaneState, purse: Purse) -> tuple[Steer, ...]:
    """Work of whoever is over stands still; what stood still for that alone goes on. Each where it was asked for."""
    found = []
    for action in state.in_flight():
        if action.elsewhere:
            continue
        if purse.is_over([action.by]):
            if action.phase == "running":
                found.append(Steer(verb="pause", action=action.key, by=action.by))
        elif action.phase == "paused" and action.key in state.resting:
            found.append(Steer(verb="resume", action=action.key, by=action.by))
    return tuple(found)
