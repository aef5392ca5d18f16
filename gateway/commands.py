"""What a person may write that needs no model: a slash and a word, or the word alone. Pure.

With a slash it is always a command. Without one (some platforms keep the slash for themselves, and mail has none) it is
one only as the whole message; whether it then fits what goes on is the reader's to judge.
"""

import re
from typing import NamedTuple

COMMANDS = {
    "status": "what is in flight",
    "stop": "end work, all of it or by its name",
    "pause": "let work stand still, all of it or by its name",
    "resume": "let it go on",
    "help": "what needs no model",
}

PRIVATE_COMMANDS = {
    "quiet": "hours when only urgent things come: 22:00-07:00, or off",
    "notes": "what work has kept for later",
    "link": "one conversation here and where I don't know you yet",
}

_WORDS, _MORE = "|".join(COMMANDS), "|".join(PRIVATE_COMMANDS)
_SLASHED = re.compile(rf"^\s*/({_WORDS})(?:@\w+)?(?:\s+(.*\S))?\s*$", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(rf"^\s*({_WORDS})(?:[ \t]+([^\n]{{1,60}}?))?[.!]*\s*$", re.IGNORECASE)


# The two that are words alone only with what they are about: "quiet please" is no command.
QUIET = re.compile(r"^\s*quiet\s+(off|[\d:]+\s*[-–]\s*[\d:]+)\s*$", re.IGNORECASE)
UNLINK = re.compile(r"^\s*unlink\s+(\w+:\S+)\s*$", re.IGNORECASE)


_WITH_A_SLASH = re.compile(rf"^\s*/(?:{_WORDS}|{_MORE}|unlink)(?:@\w+)?(?:\s|$)", re.IGNORECASE)


class Command(NamedTuple):
    word: str
    name: str
    plain: bool


def needs_no_model(text: str) -> bool:
    """Written as a command, whether or not it then fits; what begins with a slash is never anything else."""
    return text.startswith("/") or any(found.match(text) for found in (_PLAIN, QUIET, UNLINK))


def stands_alone(text: str) -> bool:
    """Means the same whatever message it answers. A bare "stop" may mean just what it answers."""
    return any(found.match(text) for found in (_WITH_A_SLASH, QUIET, UNLINK))


def command(text: str) -> Command | None:
    for pattern, plain in ((_SLASHED, False), (_PLAIN, True)):
        if found := pattern.match(text):
            return Command(found[1].lower(), found[2] or "", plain)
    return None
