"""The `ask` loops of primitives: `primitives.contacts.ask("who …?")` is a worker of its own that only reads.

It has one family of primitives, and of that what changes nothing; its response is the answer.
"""

from collections.abc import Iterable

from actors.sandbox.stubs import Stub
from actors.workshop import Primitive
from gateway.record import Record


class Reader(Record, frozen=True, kw_only=True):
    family: str
    about: str

    @property
    def method(self) -> str:
        return f"{self.family}.ask"

    @property
    def stub(self) -> Stub:
        doc = f"Let a worker of its own find the answer {self.about}. A handle, as of `act`."
        return Stub(signature=f"{self.method}(question: str) -> str", doc=doc)


READERS = {
    reader.method: reader
    for reader in (
        Reader(family="contacts", about="in the address book"),
        Reader(family="transcripts", about="in what was said in the conversations"),
        Reader(family="tasks", about="in the person's tasks, in flight and ended"),
    )
}


def available(primitives: Iterable[Primitive]) -> list[Reader]:
    """Those whose family has something to read."""
    families = {one.method.partition(".")[0] for one in primitives if not one.effect}
    return [reader for reader in READERS.values() if reader.family in families]


def within(only: str, primitives: Iterable[Primitive]) -> list[Primitive]:
    """What a worker bound to that family may call; all of them for ""."""
    return [one for one in primitives if not only or (not one.effect and one.method.partition(".")[0] == only)]
