"""What an actor's model is told once, at the top of its transcript."""

from collections.abc import Iterable

from actors.readers import available, within
from actors.sandbox.stubs import STUBS, Stub, inside
from actors.workshop import Primitive

INSTRUCTIONS = """\
You do one piece of work for a person, with Python. Write code and run it with execute_code; look at what it gives; \
go on until the work is done. Then respond with the result, complete and exact, in plain text: it goes to the front \
desk, which tells the person. You may get corrections at any time as messages; they count from then on. While your \
code runs you may get a message too: then let it run on (continue_code), interrupt it (interrupt_code), or start anew.
Use stateful=true when you will need the variables again: follow-up work comes to you in this same session. Ask \
(request_clarification) only if a wrong guess would cost something. State nothing that you have not computed or read.

What code can call, besides Python's own libraries:

"""


STATUS = Stub(
    signature="status(text: str) -> None",
    doc="Say in a few words what the code is at, for the status line. Nobody is disturbed.",
)


SEND = Stub(
    signature="files.send(path: str, name: str | None = None) -> str",
    doc="Hand a file of the current folder to the front desk, which sends it to the person. Say in your response what "
    "it is. `name`: under which they get it.",
)


READER = """\
You answer one question for the worker that asked it, with Python. Write code and run it with execute_code; you can only
read, with the calls below. Then respond with the answer, complete and exact, in plain text; if it is not there to be
found, say so. State nothing that you have not read.

What code can call, besides Python's own libraries:

"""


def instructions(primitives: Iterable[Primitive], only: str = "") -> str:
    """The text for the model; `stubs` gives the same as signatures, for the sandbox to check calls against."""
    return (READER if only else INSTRUCTIONS) + inside(stubs(primitives, only))


def stubs(primitives: Iterable[Primitive], only: str = "") -> list[Stub]:
    """What the loop answers itself, then what the host provides."""
    provided = list(primitives)
    given = [Stub(signature=one.signature, doc=one.doc) for one in within(only, provided)]
    if only:
        return given
    own = [stub for stub in STUBS if stub.method in ("request_clarification", "act", "notify")]
    return [*own, STATUS, SEND, *given, *(reader.stub for reader in available(provided))]


def granted(secrets: Iterable[tuple[str, str]]) -> str:
    """Names of secrets, each with the host that it is for; "" if there are none."""
    lines = "".join(f"- {name}: https://{host}/…\n" for name, host in secrets)
    return (
        f"\n\nRequests to these addresses are signed for you on the way; send no key of your own:\n{lines}"
        if lines
        else ""
    )
