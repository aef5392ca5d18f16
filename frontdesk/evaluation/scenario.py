"""A scenario's form, and the files of them. Nothing is decided here."""

import codecs
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from gateway.record import Record

Half = Literal["tuning", "held-out"]
OURS = "scenarios.json"
STATES = ("running", "paused", "awaiting_input", "hibernated")
STEERING = ("interject", "ask", "pause", "resume", "stop", "answer")


class CannotRead(Exception):
    """Which file, which scenario, and what is wrong with it."""


class Work(Record, frozen=True, kw_only=True):
    """One action in flight. `last` is what it last told, or the question that it waits with; `name` is its id where
    there is none. A `state` that is none of STATES is taken as running."""

    id: str
    name: str = ""
    about: str = ""
    state: str = "running"
    last: str = ""


class Line(Record, frozen=True, kw_only=True):
    text: str
    author: str = "Ana"


class Scenario(Record, frozen=True, kw_only=True):
    """One moment and the decisions that are right in it. `axis` groups the table; where a file has none, it is what is
    right: say, wait, act, interject, ask, pause, resume, stop or answer."""

    id: str
    message: str
    right: tuple[str, ...]
    author: str = "Ana"
    in_flight: tuple[Work, ...] = ()
    place: Literal["private", "shared"] = "private"
    addressed: bool = True
    thread: bool = False
    history: tuple[Line, ...] = ()
    axis: str = ""

    @property
    def group(self) -> str:
        return self.axis or self.right[0].partition(":")[0]

    @property
    def half(self) -> Half:
        """Fixed by the id alone: prompts are tuned on one half, and measured on the other."""
        return "held-out" if hashlib.sha256(self.id.encode()).digest()[0] % 2 else "tuning"


def load(path: Path | None = None) -> tuple[Scenario, ...]:
    """Of a file (one JSON array, an object with `scenarios`, or one object a line), or our own. Raises CannotRead."""
    name = str(path) if path else f"frontdesk/evaluation/{OURS}"
    try:
        data = path.read_bytes() if path else resources.files(__package__).joinpath(OURS).read_bytes()
    except OSError as error:
        raise CannotRead(f"{name}: {error.strerror}") from error
    found = [_scenario(name, number, value) for number, value in enumerate(_values(name, data), 1)]
    if not found:
        raise CannotRead(f"{name} holds no scenario")
    twice = {one.id for one in found if sum(other.id == one.id for other in found) > 1}
    if twice:
        raise CannotRead(f"{name}: these ids stand for more than one scenario: {', '.join(sorted(twice))}")
    return tuple(found)


def _values(name: str, data: bytes) -> list[Any]:
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as whole:
        value = []
        for number, line in enumerate(data.splitlines(), 1):
            try:
                value += [msgspec.json.decode(line)] if line.strip() else []
            except msgspec.DecodeError as error:
                why = f"as one: {whole}; as one object a line, line {number}: {error}"
                raise CannotRead(f"{name} holds no JSON ({why})") from error
    if isinstance(value, dict):
        value = value.get("scenarios", [value])
    if not isinstance(value, list):
        raise CannotRead(f"{name} must hold an array of scenarios, or one object a line")
    return value


def _given(value: Any) -> Any:
    """Without what is null, as if it were left out; ids as text."""
    if isinstance(value, dict):
        given = {key: _given(one) for key, one in value.items() if one is not None}
        return {key: str(one) if key == "id" else one for key, one in given.items()}
    return [_given(one) for one in value] if isinstance(value, list) else value


def _scenario(name: str, number: int, value: Any) -> Scenario:
    value = _given(value)
    if isinstance(value, dict) and isinstance(value.get("right"), str):
        value["right"] = [value["right"]]
    try:
        found: Scenario = msgspec.convert(value, Scenario)
    except msgspec.ValidationError as error:
        which = value.get("id", number) if isinstance(value, dict) else number
        raise CannotRead(f"{name}, scenario {which}: {error}") from error
    if not found.right:
        raise CannotRead(f"{name}, scenario {found.id}: nothing is right in it")
    for right in found.right:
        kind, colon, which = right.partition(":")
        if kind not in ("say", "wait", "act", *STEERING) or bool(colon and which) != (kind in STEERING):
            raise CannotRead(f"{name}, scenario {found.id}: “{right}” is no decision")
    return found


def doubts(scenario: Scenario) -> list[str]:
    """What cannot be as it is written; it is run all the same."""
    ids = {work.id for work in scenario.in_flight}
    named = [right.partition(":")[2] for right in scenario.right if ":" in right]
    return [
        *(f"{which} is not in flight: that cannot be decided" for which in named if which not in ids),
        *(
            f"{work.id} is {work.state}, which is taken as running"
            for work in scenario.in_flight
            if work.state not in STATES
        ),
    ]
