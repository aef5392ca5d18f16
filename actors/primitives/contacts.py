"""`primitives.contacts`: who is who, for code. Reads only what the composition root hands in."""

from collections.abc import Callable, Sequence
from typing import Any

from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.record import Record


class Card(Record, frozen=True, kw_only=True):
    name: str
    addresses: tuple[str, ...]


def find(cards: Callable[[Caller], Sequence[Card]]) -> Primitive:
    """`cards` gives what the caller may see."""

    async def run(caller: Caller, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        name = arguments.get("name")
        if not isinstance(name, str) or not name.strip():
            raise PrimitiveError("name is missing")
        words = name.casefold().split()
        found = [card for card in cards(caller) if all(word in card.name.casefold() for word in words)]
        return [{"name": card.name, "addresses": list(card.addresses)} for card in found]

    return Primitive(
        signature="contacts.find(name: str) -> list[dict]",
        doc='People whose name has all these words: [{"name": ..., "addresses": ["email:..."]}].',
        run=run,
        effect=False,
    )
