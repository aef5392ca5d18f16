"""The words by which people link their addresses. Pure."""

import re

LINK = re.compile(r"^\s*/link(?:@\w+)?\s*$", re.IGNORECASE)
UNLINK = re.compile(r"^\s*/unlink(?:@\w+)?(?:\s+(\S+))?\s*$", re.IGNORECASE)


def is_about_linking(text: str) -> bool:
    return LINK.match(text) is not None or UNLINK.match(text) is not None
