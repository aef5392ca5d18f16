"""`primitives.notes`: what a worker keeps for later work of the same person, who can read and erase it."""

from collections.abc import Callable
from typing import Any

from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.notes import Notes, NotKept


def keeping(notes: Notes, in_private: Callable[[Caller], bool]) -> tuple[Primitive, Primitive, Primitive]:
    """`in_private`: what comes of the caller's work is heard by its person alone; elsewhere notes are not read out."""

    async def add(caller: Caller, arguments: dict[str, Any]) -> None:
        try:
            await notes.add(caller.by, str(arguments.get("text") or ""), caller.name)
        except NotKept as why:
            raise PrimitiveError(str(why)) from why

    async def listed(caller: Caller, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        if not in_private(caller):
            raise PrimitiveError("notes are a person's own, and others hear what comes of this work")
        return [{"number": note.number, "text": note.text} for note in await notes.of(caller.by)]

    async def remove(caller: Caller, arguments: dict[str, Any]) -> None:
        number = arguments.get("number")
        if not isinstance(number, int):
            raise PrimitiveError("number is missing")
        try:
            await notes.erase(caller.by, number)
        except NotKept as why:
            raise PrimitiveError(str(why)) from why

    return (
        Primitive(
            signature="notes.add(text: str) -> None",
            doc="Keep a line for this person's later tasks, of what these would have to find out again: the shape "
            "of an interface, where a file is. No secrets. They see it.",
            run=add,
            effect=True,
        ),
        Primitive(
            signature="notes.list() -> list[dict]",
            doc='What was kept so far: [{"number": ..., "text": ...}].',
            run=listed,
            effect=False,
        ),
        Primitive(
            signature="notes.remove(number: int) -> None",
            doc="Erase one that is wrong, or that the person wants gone.",
            run=remove,
            effect=True,
        ),
    )
