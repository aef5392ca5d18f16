"""How the Bot API reads `parse_mode=HTML`, with its words for what it cannot read. Pure.

https://core.telegram.org/bots/api#html-style
"""

import html
import re

_TAG = re.compile(r"<(/?)([^\s>]*)([^>]*)>|<")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);")
KNOWN = frozenset(
    "b strong i em u ins s strike del span tg-spoiler a tg-emoji code pre blockquote".split()  # noqa: SIM905
)


class BadEntities(Exception):
    """The description without its "can't parse entities: "."""


def parsed(text: str) -> str:
    """What is read once the tags are taken out. Raises BadEntities."""
    open_tags: list[tuple[str, int]] = []
    shown, position = "", 0
    for tag in _TAG.finditer(text):
        shown += _unescaped(text[position : tag.start()])
        position = tag.end()
        offset = len(text[: tag.start()].encode())
        name = (tag.group(2) or "").lower()
        if tag.group(1):
            _close(open_tags, name, offset)
        elif name not in KNOWN:
            raise BadEntities(f'Unsupported start tag "{name}" at byte offset {offset}')
        else:
            open_tags.append((name, offset))
    if open_tags:
        name, offset = open_tags[-1]
        raise BadEntities(f'Can\'t find end tag corresponding to start tag "{name}" at byte offset {offset}')
    return shown + _unescaped(text[position:])


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _close(open_tags: list[tuple[str, int]], name: str, offset: int) -> None:
    if not open_tags:
        raise BadEntities(f"Unexpected end tag at byte offset {offset}")
    expected = open_tags.pop()[0]
    if name and name != expected:
        raise BadEntities(f'Unmatched end tag at byte offset {offset}, expected "</{expected}>", found "</{name}>"')


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found.group()), text)
