"""A rich message as an ordinary one: its text with entities, and the files in it. Pure.

It comes as blocks within blocks, and has no `text`: https://core.telegram.org/bots/api#richmessage
"""

from collections.abc import Iterator
from typing import Any

Payload = dict[str, Any]

DEPTH = 16  # of blocks in blocks, and of marks in marks: Telegram's own bound
_MARKS = {"url": "text_link"}  # the rest are called as in an ordinary message
_MEDIA = ("photo", "animation", "video", "audio", "voice_note")


def told(rich: Payload) -> tuple[str, list[Payload]]:
    """Text and entities, as `text` and `entities` of an ordinary message are."""
    page = _Page()
    page.blocks(rich.get("blocks") or [], 0)
    return page.text, page.entities


def media(rich: Payload) -> Iterator[Payload]:
    """Each as the part of a message that would hold it."""
    for block in _all(rich.get("blocks") or [], 0):
        kind = block.get("type")
        if kind in _MEDIA and block.get(kind):
            yield {"voice" if kind == "voice_note" else kind: block[kind]}


def _all(blocks: list[Payload], depth: int) -> Iterator[Payload]:
    for block in blocks if depth <= DEPTH else []:
        yield block
        yield from _all(block.get("blocks") or [], depth + 1)
        for item in block.get("items") or []:
            yield from _all(item.get("blocks") or [], depth + 1)


class _Page:
    def __init__(self) -> None:
        self.text, self._break = "", ""
        self.entities: list[Payload] = []

    def blocks(self, blocks: list[Payload], depth: int) -> None:
        for block in blocks if depth <= DEPTH else []:
            self._block(block, depth)

    def _block(self, block: Payload, depth: int) -> None:
        kind = block.get("type")
        start = self._line()
        self._rich(block.get("summary") or block.get("text"), depth)
        self._rich(block.get("expression"), depth)
        self.blocks(block.get("blocks") or [], depth + 1)
        for item in block.get("items") or []:
            self._item(item, depth + 1)
        for row in block.get("cells") or []:
            self._row(row, depth)
        self._rich(_caption(block), depth)
        if kind in ("blockquote", "expandable_blockquote", "pullquote"):
            self._mark({"type": "blockquote"}, start)
        elif kind == "pre":
            self._mark({"type": "pre", "language": block.get("language", "")}, start)

    def _item(self, item: Payload, depth: int) -> None:
        self._line()
        box = ("[x] " if item.get("is_checked") else "[ ] ") if item.get("has_checkbox") else ""
        self._write(f"{item.get('label') or '•'} {box}")
        page = _Page()
        page.blocks(item.get("blocks") or [], depth)
        self._add(page)

    def _row(self, row: list[Payload], depth: int) -> None:
        self._line()
        for number, cell in enumerate(row):
            self._write(" | " if number else "")
            self._rich(cell.get("text"), depth)

    def _rich(self, rich: Any, depth: int) -> None:
        """https://core.telegram.org/bots/api#richtext: a string, several, or one with a mark."""
        if isinstance(rich, str):
            self._write(rich)
        elif isinstance(rich, list) and depth <= DEPTH:
            for one in rich:
                self._rich(one, depth)
        elif isinstance(rich, dict) and depth <= DEPTH:
            start = _length(self.text + self._break)
            self._rich(rich.get("text") or rich.get("alternative_text") or rich.get("expression"), depth + 1)
            kind = rich.get("type", "")
            about = {key: rich[key] for key in ("url", "user") if key in rich}
            self._mark({"type": _MARKS.get(kind, kind), **about}, start)

    def _add(self, page: "_Page") -> None:
        start = _length(self.text + self._break)
        self._write(page.text)
        self.entities += [{**one, "offset": one["offset"] + start} for one in page.entities]

    def _mark(self, entity: Payload, start: int) -> None:
        if entity["type"] and _length(self.text) > start:
            self.entities.append({**entity, "offset": start, "length": _length(self.text) - start})

    def _line(self) -> int:
        """A new one, once something stands in it; where it begins."""
        self._break = "\n" if self.text and not self.text.endswith("\n") else ""
        return _length(self.text + self._break)

    def _write(self, text: str) -> None:
        if text:
            self.text += self._break + text
            self._break = ""


def _caption(block: Payload) -> Any:
    caption = block.get("caption")
    return caption.get("text") if isinstance(caption, dict) and "type" not in caption else caption


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
