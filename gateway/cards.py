"""A status card: one message about one piece of work, edited in place, with buttons. What it says, and what a press is.

The brain writes it, a medium lays it out. No platform and no policy enter here: a press is only a claim of somebody.
"""

from typing import Literal, NamedTuple, cast, get_args

from gateway.record import Record

PressVerb = Literal["ask", "pause", "resume", "stop", "answer"]

MEDIUMS = ("telegram", "slack")  # those that can edit what they have sent, and have buttons


class Button(Record, frozen=True, kw_only=True):
    text: str
    press: str

    def does(self, verb: PressVerb) -> bool:
        return self.press.startswith(f"{verb}/")


class Card(Record, frozen=True, kw_only=True):
    """`text` is Markdown. After one that has `ended` no other comes."""

    text: str
    buttons: tuple[Button, ...] = ()
    ended: bool = False


class Press(NamedTuple):
    """`action` is the short reference in its conversation (`a3`), `option` the place among a question's options."""

    verb: PressVerb
    action: str
    question: str = ""
    option: int | None = None


def press(verb: PressVerb, action: str, question: str = "", option: int | None = None) -> str:
    """Short: Telegram carries 64 bytes."""
    return f"{verb}/{action}/{'' if option is None else option}/{question}"


def pressed(data: str) -> Press:
    """Raises ValueError for what no button of ours says: a client may send anything."""
    verb, action, option, question = data.split("/", 3)
    if verb not in get_args(PressVerb) or not action or not (option == "" or option.isdecimal()):
        raise ValueError(f"no press: {data[:80]!r}")
    return Press(cast(PressVerb, verb), action, question, int(option) if option else None)
