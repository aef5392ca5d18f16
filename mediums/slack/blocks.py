"""What stands in a message's blocks and in no text of it: a table that somebody pasted, a robot's report. Pure.

https://docs.slack.dev/reference/block-kit/blocks
"""

from collections.abc import Callable, Iterator
from typing import Any

Payload = dict[str, Any]
Decode = Callable[[str], str]  # of Slack's markup

DEPTH = 8
_LINES = ("rich_text_section", "rich_text_quote", "rich_text_preformatted")


def tables(parts: list[Payload], decode: Decode) -> str:
    """Those that a person pasted: Slack's programs put them beside the text. Empty for none."""
    blocks = [block for part in parts for block in part.get("blocks") or []]
    return text([block for block in blocks if block.get("type") == "table"], decode)


def text(blocks: list[Payload], decode: Decode) -> str:
    """Each block on lines of its own; a row's cells apart by bars."""
    return "\n".join(line for block in blocks for line in _lines(block, decode) if line.strip())


def _lines(block: Payload, decode: Decode) -> Iterator[str]:
    if block.get("type") == "table":
        for row in block.get("rows") or []:
            yield " | ".join(" ".join(_inline(cell, decode, 0).split()) for cell in row)
    elif block.get("type") == "rich_text":
        for element in block.get("elements") or []:
            yield from _rich(element, decode)
    elif block.get("type") in ("section", "header", "context", "markdown"):
        said = [block.get("text"), *(block.get("fields") or []), *(block.get("elements") or [])]
        yield from (_plain(one, decode) for one in said if one)


def _rich(element: Payload, decode: Decode) -> Iterator[str]:
    if element.get("type") == "rich_text_list":
        yield from (f"• {_inline(one, decode, 0)}" for one in element.get("elements") or [])
    elif element.get("type") in _LINES:
        mark = "> " if element["type"] == "rich_text_quote" else ""
        yield from (mark + line for line in _inline(element, decode, 0).splitlines())


def _plain(said: Any, decode: Decode) -> str:
    if isinstance(said, str):
        return said
    return decode(said.get("text") or "") if said.get("type") == "mrkdwn" else str(said.get("text") or "")


def _inline(piece: Payload, decode: Decode, depth: int) -> str:
    """A cell, or what stands in a line: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block"""
    if piece.get("elements") and depth < DEPTH:
        return "".join(_inline(one, decode, depth + 1) for one in piece["elements"])
    match piece.get("type"):
        case "user":
            return decode(f"<@{piece.get('user_id', '')}>")
        case "channel":
            return decode(f"<#{piece.get('channel_id', '')}>")
        case "usergroup":
            return decode(f"<!subteam^{piece.get('usergroup_id', '')}>")
        case "broadcast":
            return f"@{piece.get('range', '')}"
        case "emoji":
            return f":{piece.get('name', '')}:"
        case "link" if piece.get("text") not in (None, piece.get("url")):
            return f"{piece['text']} ({piece.get('url', '')})"
        case "link":
            return str(piece.get("url", ""))
        case "date":
            return str(piece.get("fallback", ""))
        case "raw_number":
            return str(piece.get("value", piece.get("text", "")))
        case _:
            return str(piece.get("text") or "")
