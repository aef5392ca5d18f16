"""The kinds of messages that a model tells apart which answers by schema, each with its tool, and the examples that it
is shown: the part of its prompt that never changes, small enough to be read by a small model.
"""

import json

from brain.tools import Kind
from gateway.llm.model import Message
from gateway.record import Record

NOT_SAID = "not said"
TELL, SILENT = "tell", "silent"
NEW_WORK = "new work"


class KindOfMessage(Record, frozen=True, kw_only=True):
    word: str
    tool: Kind
    line: str
    about_work: bool = False
    speaks: bool = False
    in_threads: bool = False


KINDS = (
    KindOfMessage(word="nothing", tool="wait", line="nothing is wanted: thanks, ok, praise, a laugh, a goodbye"),
    KindOfMessage(word="others", tool="wait", line="people speak with each other, not with you", in_threads=True),
    KindOfMessage(word="chat", tool="send_message", line="a greeting, or a question about you", speaks=True),
    KindOfMessage(word=NEW_WORK, tool="act", line="a task that no work in flight is about"),
    KindOfMessage(
        word="change",
        tool="interject",
        line="corrects or adds to work in flight, or gives finished work its next step",
        about_work=True,
    ),
    KindOfMessage(
        word="question", tool="send_message", line="asks about work, how far it is or what it found", speaks=True
    ),
    KindOfMessage(word="ask", tool="ask", line="the same, but only the worker itself can tell", about_work=True),
    KindOfMessage(word="answer", tool="answer", line="answers what work asks", about_work=True),
    KindOfMessage(
        word="pause", tool="pause", line="work is to stand still for now: hold, wait, freeze it", about_work=True
    ),
    KindOfMessage(word="resume", tool="resume", line="paused work is to go on", about_work=True),
    KindOfMessage(
        word="stop", tool="stop", line="work is to end: cancel, drop it, it is not needed any more", about_work=True
    ),
    KindOfMessage(word="unclear", tool="send_message", line="nobody can tell what is wanted", speaks=True),
)

INSTRUCTIONS = """\
You are {assistant}, the front desk: you hold the conversation, workers do the work. You see the work in flight and \
the newest message. Say what kind of message it is, and which work it is about, as JSON.

{kinds}

The work is "not said" if it could be one as well as another: then ask which. "text" is what you say: short, in the \
language of the message, and nothing that is not written here."""

_NONE = "No work in flight.\n"
_LOGO = """\
Work in flight:
- logo (running): Design a logo for the bakery
- prices (running): Collect the prices of our competitors; last: 4 of 9 shops
"""
_CAKE = """\
Work in flight:
- prices_north (finished): Collect prices in the north; last: Nine shops: 2.10 to 3.40.
- prices_south (running): Collect prices in the south
- poster (paused): Draw a poster for the fair
- cake (asks: Chocolate or lemon?): Order a cake for Friday
"""

EXAMPLES: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (  # a state, then message, kind, work, text
    (
        _NONE,
        (
            ("Eva: hi, how are you?", "chat", "", "Hi Eva, all well!"),
            ("Eva: how many days is that in hours?", "new work", "", ""),
            ("Eva: cancel that", "unclear", "", "Nothing is running. What do you mean?"),
        ),
    ),
    (
        _LOGO,
        (
            ("Eva: the logo should be round", "change", "logo", ""),
            ("Eva: thanks", "nothing", "", ""),
            ("Eva: also list their opening hours", "change", "prices", ""),
            ("Eva: leave the prices for the moment", "pause", "prices", ""),
            ("Eva: how many shops are left?", "question", "", "Five of nine."),
            ("Eva: we don't need the logo any more", "stop", "logo", ""),
            ("Eva: make it bigger", "change", NOT_SAID, "What should be bigger?"),
            ("Eva: another thing: print the menu for me", "new work", "", ""),
            ("Eva: cancel it", "stop", NOT_SAID, "The logo or the prices?"),
            ("Eva: put the logo on ice for now", "pause", "logo", ""),
            ("Eva: sort the pictures by size", "new work", "", ""),
            ("Eva: what are you doing?", "question", "", "The logo and the prices."),
            ("Eva: see you later", "nothing", "", ""),
        ),
    ),
    (
        _CAKE,
        (
            ("Eva: lemon", "answer", "cake", ""),
            ("Eva: good, now the same for the east", "change", "prices_north", ""),
            ("Eva, in your thread: Max, are you coming to the party?", "others", "", ""),
            ("Eva: the poster can go on now", "resume", "poster", ""),
            ("Eva: only shops with parking in the south", "change", "prices_south", ""),
            ("Eva: something else: what is 6 times 8?", "new work", "", ""),
            ("Eva: what was the highest price in the north?", "question", "", "3.40."),
            ("Eva: the cake is off, the party is cancelled", "stop", "cake", ""),
            ("Eva, in your thread: I think Max has the keys", "others", "", ""),
            ("Eva: without the discounts, please", "change", NOT_SAID, "For the north or the south?"),
            ("Eva: toll, und jetzt der Westen", "change", "prices_north", ""),
            ("Eva: while I choose, look up a recipe for me", "new work", "", ""),
            ("Eva, in your thread: @Max could you send me the file?", "others", "", ""),
            ("Eva: hold that", "pause", NOT_SAID, "What should wait?"),
            ("Eva: make a map of that", "change", "prices_north", ""),
            ("Eva: 😄", "nothing", "", ""),
        ),
    ),
)


def system(assistant: str) -> str:
    kinds = "\n".join(f"{kind.word}: {kind.line}" for kind in KINDS)
    return INSTRUCTIONS.format(assistant=assistant, kinds=kinds)


def examples() -> list[Message]:
    """As if they had been answered."""
    shown: list[Message] = []
    for state, moments in EXAMPLES:
        before = f"{state}\n"
        for message, kind, work, text in moments:
            answer = {"kind": kind, **({"work": work} if work else {}), **({"text": text} if text else {})}
            shown.append({"role": "user", "content": before + message})
            shown.append({"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)})
            before = ""
    return shown
