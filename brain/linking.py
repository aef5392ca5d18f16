"""The words by which people link their addresses; with an address the slash may be left out, as Slack keeps what begins
with one. Pure."""

import re

from gateway.commands import UNLINK

LINK = re.compile(r"^\s*/link(?:@\w+)?\s*$", re.IGNORECASE)
_UNLINK = re.compile(r"^\s*/unlink(?:@\w+)?(?:\s+(\S+))?\s*$", re.IGNORECASE)


def is_about_linking(text: str) -> bool:
    return LINK.match(text) is not None or unlinked(text) is not None


def unlinked(text: str) -> str | None:
    """What is to be unlinked, empty where it is not said; None where the text is about something else."""
    found = _UNLINK.match(text) or UNLINK.match(text)
    return None if found is None else found[1] or ""
