"""What each role may cause, in private and in a shared place: one table, and who it is asked about. Pure.

Decided where an effect leaves, from the address that a medium vouches for. ARCHITECTURE.md shows the table; a test has
a case for each of its cells.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from brain.working import ActionView
from gateway.actions import Verb, verbs
from gateway.addresses import Address
from gateway.events import Person

Role = Literal["owner", "member", "guest", "stranger"]
Place = Literal["private", "shared"]
Effect = Literal["talk", "recall", "remind", "see", "start", "steer", "ask", "answer", "stop", "redirect", "link"]

ROLES: tuple[Role, ...] = ("owner", "member", "guest", "stranger")
PLACES: tuple[Place, ...] = ("private", "shared")

ABOUT: dict[Effect, str] = {
    "talk": "be answered",
    "recall": "have it look up what was said there",
    "remind": "be reminded at a time",
    "see": "hear what is in flight there",
    "start": "start work",
    "steer": "steer, stop and answer work of their own",
    "ask": "ask how others' work stands",
    "answer": "answer a question of others' work",
    "stop": "stop others' work",
    "redirect": "correct, pause or resume others' work",
    "link": "get and use a pairing code",
}

_ANYONE = frozenset(ROLES)
_KNOWN = frozenset[Role]({"owner", "member", "guest"})
_TRUSTED = frozenset[Role]({"owner", "member"})
_OWNER = frozenset[Role]({"owner"})
_NOBODY = frozenset[Role]()

MAY: dict[Effect, dict[Place, frozenset[Role]]] = {
    "talk": {"private": _ANYONE, "shared": _ANYONE},
    "recall": {"private": _KNOWN, "shared": _KNOWN},
    "remind": {"private": _KNOWN, "shared": _KNOWN},
    "see": {"private": _TRUSTED, "shared": _TRUSTED},
    "start": {"private": _TRUSTED, "shared": _TRUSTED},
    "steer": {"private": _TRUSTED, "shared": _TRUSTED},
    "ask": {"private": _NOBODY, "shared": _TRUSTED},
    "answer": {"private": _NOBODY, "shared": _TRUSTED},
    "stop": {"private": _NOBODY, "shared": _OWNER},
    "redirect": {"private": _NOBODY, "shared": _NOBODY},
    "link": {"private": _ANYONE, "shared": _NOBODY},
}

_OTHERS: dict[Verb, Effect] = {
    "ask": "ask",
    "answer": "answer",
    "stop": "stop",
    "interject": "redirect",
    "pause": "redirect",
    "resume": "redirect",
}


class Rights:
    """Of the people in one place. `same` says whether two addresses are one person's."""

    def __init__(
        self, place: Place, role_of: Callable[[Address], Role], same: Callable[[Address, Address], bool]
    ) -> None:
        self._place, self._role_of, self.same = place, role_of, same

    def may(self, by: Address, effect: Effect) -> bool:
        return self._role_of(by) in MAY[effect][self._place]

    def may_tell(self, by: Address, verb: Verb, action: ActionView) -> bool:
        """Their own work, whichever of their addresses asked for it, or as far as others' may be touched."""
        own = self.same(by, action.by.address)
        return self.may(by, "steer" if own else _OTHERS[verb])

    def anyone_may(self, people: Iterable[Person], effect: Effect) -> bool:
        return any(self.may(person.address, effect) for person in people)

    def verbs(self, people: Iterable[Person], action: ActionView) -> tuple[Verb, ...]:
        """What any of them may tell this action, of what it may be told now."""
        people = list(people)
        legal = verbs(action.phase, bool(action.questions))
        return tuple(v for v in legal if any(self.may_tell(person.address, v, action) for person in people))


def table() -> str:
    """As ARCHITECTURE.md shows it."""
    rows = ["| may they … | in private | in a shared place |", "|---|---|---|"]
    for effect, about in ABOUT.items():
        cells = [", ".join(role for role in ROLES if role in MAY[effect][place]) or "–" for place in PLACES]
        rows.append(f"| {about} | {' | '.join(cells)} |")
    return "\n".join(rows)
