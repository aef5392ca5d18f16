"""The words by which people link their addresses; with an address the slash may be left out, as Slack keeps what begins
with one. Pure."""

import re

LINK = re.compile(r"^\s*/link(?:@\w+)?\s*$", re.IGNORECASE)
UNLINK = re.compile(r"^\s*(?:/unlink(?:@\w+)?(?:\s+(?P<any>\S+))?|unlink\s+(?P<address>\w+:\S+))\s*$", re.IGNORECASE)


def is_about_linking(text: str) -> bool:
    return LINK.match(text) is not None or UNLINK.match(text) is not None
