"""What a line is that begins with a slash: a look at something, or a word of the person like any other. Pure."""

from mediums.local import wire

HELP = "/trace [m12] why it was answered so · /code [a3] the Python that ran · /actions what is in flight · /quit"
_LOOKS: dict[str, wire.LookAt] = {"/trace": "trace", "/code": "code", "/actions": "actions"}


def look_of(line: str) -> tuple[wire.LookAt, str] | None:
    """What to look at, and about which reference (empty: the newest). None for what is to be said."""
    word, _, about = line.strip().partition(" ")
    what = _LOOKS.get(word)
    return (what, about.strip()) if what else None
