"""Cutting the model's Markdown into messages that each stand alone. Pure; the measure comes from the platform.

A cut is best where the writer paused: between blocks, then at a line's end, a sentence's end, a space, and between two
whole characters when nothing else is left. A part that ends inside a code block closes it and the next one opens it
again with its language; a table's next part repeats its head. Whether a cut in the middle of a line tears a mark
(bold, a link, code) is not worked out from the marks: both sides are rendered, and must show what the whole showed.

Without what was added at the cuts, the joined parts are the text, except for stretches of nothing but white space.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from mediums.markup.graphemes import cut_at_or_before
from mediums.markup.parse import blocks
from mediums.markup.render import PlainStyle, render

Fullness = Callable[[str], float]

FIRST_REACH = 4096  # characters; doubled while it still fits
FULL_ENOUGH = 0.95  # of a message: nearer to the end no longer piece is looked for
GRAIN = 16  # characters
NEARBY = 1000  # characters: how far around a line's end a mark is looked for that spans lines
TRIES = 24  # places looked at before a mark is closed and opened again instead
MARKS = ("**", "*", "`", "__", "_", "~~", "***")  # what a tear is mended with; links are moved whole or torn
_PAUSES = (re.compile(r"\n[ \t]*\n+"), re.compile(r"\n"), re.compile(r"[.!?…。！？][)\"'”]*\s"), re.compile(r"\s"))
_REACH_BACK = (0.5, 0.5, 0.6, 0.75)  # of the part: how short each kind of pause may make it
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")


class Cut(NamedTuple):
    """`closing` ends the part, `opening` begins the next one; neither is in the text."""

    at: int
    closing: str = ""
    opening: str = ""


class _Block(NamedTuple):
    """Lines that cannot be cut like prose. A cut is possible in `first` to `last`, offsets in the text."""

    start: int
    end: int
    first: int
    last: int
    closing: str
    opening: str


class _ShownStyle(PlainStyle):
    """What a reader sees, without what depends on where lines break."""

    def quote(self, inner: str) -> str:
        return inner


_SHOWN = _ShownStyle()


def split(markdown: str, fullness: Fullness) -> tuple[str, ...]:
    """Parts in order, each of which fits, none blank; nothing for a blank text.

    `fullness` says how much of one message a part takes, as Markdown: it fits up to 1. Any single character with its
    marks must fit. Text that no cut can make fit is cut between characters.
    """
    if not markdown.strip():
        return ()
    if len(markdown) <= FIRST_REACH and fullness(markdown) <= 1:
        return (markdown,)
    text = _Text(markdown, fullness)
    parts: list[str] = []
    start, opening = 0, ""
    while markdown[start:].strip():
        cut = text.next_cut(start, opening)
        if markdown[start : cut.at].strip():
            parts.append(opening + _closed(markdown[start : cut.at], cut.closing))
        start, opening = cut.at, cut.opening
    return tuple(parts)


class _Text:
    def __init__(self, text: str, fullness: Fullness) -> None:
        self._text, self._fullness = text, fullness
        self._blocks = _uncuttable(text)

    def next_cut(self, start: int, opening: str) -> Cut:
        reach = self._reach(start, opening)
        if reach == len(self._text):
            return Cut(reach)
        for at in islice(self._pauses(start, reach), TRIES):
            cut = self._clean(start, opening, at)
            if cut is not None and self._holds(start, opening, cut):
                return cut
        return self._mended(start, opening, reach)

    def _holds(self, start: int, opening: str, cut: Cut) -> bool:
        return self._full(start, opening, cut) <= 1

    def _full(self, start: int, opening: str, cut: Cut) -> float:
        return self._fullness(opening + _closed(self._text[start : cut.at], cut.closing))

    def _reach(self, start: int, opening: str) -> int:
        """About the end of the longest piece that fits, at least one character on."""
        whole = len(self._text)
        low, high, end = start + 1, whole + 1, min(start + FIRST_REACH, whole)
        while high - low > GRAIN:
            full = self._full(start, opening, self._in_block(end) or Cut(end))
            if full > 1:
                high = end
            elif end == whole or full >= FULL_ENOUGH:
                return end
            else:
                low = end
            guess = start + int((end - start) / max(full, 0.5))
            # Kept inside what is known, and away from its edges, so that the range surely narrows.
            margin = (high - low) // 8 + 1
            end = min(max(guess, low + margin), high - margin if high <= whole else whole)
        return low

    def _in_block(self, at: int) -> Cut | None:
        """The cut that closes and opens again the block at `at`, if it has one and can be cut there."""
        block = self._block_at(at)
        if block is None or not block.first < at < block.last:
            return None
        break_line = "\n" if block.closing and self._text[at - 1] != "\n" else ""
        return Cut(at, break_line + block.closing, block.opening)

    def _block_at(self, at: int) -> _Block | None:
        return next((block for block in self._blocks if block.start < at < block.end), None)

    def _pauses(self, start: int, reach: int) -> Iterator[int]:
        """Best first, later before earlier."""
        for pause, share in zip(_PAUSES, _REACH_BACK, strict=True):
            earliest = start + int((reach - start) * share)
            found = [match.end() for match in pause.finditer(self._text, earliest, reach)]
            yield from (at for at in reversed(found) if start < at and self._at_line_or_free(at))
        yield from (block.start for block in self._blocks if start < block.start <= reach < block.end)

    def _at_line_or_free(self, at: int) -> bool:
        return self._block_at(at) is None or (self._text[at - 1] == "\n" and self._in_block(at) is not None)

    def _clean(self, start: int, opening: str, at: int) -> Cut | None:
        """A cut that tears nothing, or None."""
        if self._block_at(at) is not None:
            return self._in_block(at)
        cut = Cut(at, "", self._quote_opening(at))
        return cut if self._text.startswith("\n\n", at - 2) or self._shows_the_same(start, opening, cut) else None

    def _mended(self, start: int, opening: str, reach: int) -> Cut:
        """Closes and opens again what a cut near `reach` would tear. What cannot be mended is cut all the same."""
        end = max(cut_at_or_before(self._text, reach), start + 1)
        block = self._block_at(end)
        if block is not None:
            inside = max(min(end, block.last - 1), start + 1)
            return self._in_block(inside) or Cut(inside)
        again = self._quote_opening(end)
        for mark in ("", *MARKS):
            room = max(cut_at_or_before(self._text, reach - len(mark)), start + 1)
            for at in (self._after_last_space(start, room), room):
                cut = Cut(at, mark, again + mark)
                if self._shows_the_same(start, opening, cut) and self._holds(start, opening, cut):
                    return cut
        return Cut(end, "", again)

    def _after_last_space(self, start: int, reach: int) -> int:
        at = self._text.rfind(" ", start + (reach - start) // 2, reach) + 1
        return at if at > start else reach

    def _quote_opening(self, at: int) -> str:
        """In the middle of a quoted line, the marks that make the rest of it a quote too."""
        line = self._text.rfind("\n", 0, at) + 1
        quoted = _QUOTE.match(self._text, line, at)
        return quoted.group() if quoted and line < at else ""

    def _shows_the_same(self, start: int, opening: str, cut: Cut) -> bool:
        first, last = self._surroundings(start, cut.at)
        before = (opening if first == start else "") + self._text[first : cut.at]
        after = self._text[cut.at : last]
        return _shown(before + after) == _shown(_closed(before, cut.closing)) + _shown(cut.opening + after)

    def _surroundings(self, start: int, at: int) -> tuple[int, int]:
        """What a mark that a cut here would tear could span: the paragraph, or at a line's end what is near."""
        text = self._text
        first = max(text.rfind("\n\n", start, at), start)
        last = text.find("\n\n", at)
        last = len(text) if last < 0 else last
        if text[at - 1] == "\n":
            first = max(text.rfind("\n", start, max(at - NEARBY, start)), first)
            near = text.find("\n", min(at + NEARBY, last), last)
            last = last if near < 0 else near
        return first, last


def _closed(piece: str, closing: str) -> str:
    """A closing mark stands against a word; white space goes behind it."""
    words = piece if closing.startswith("\n") else piece.rstrip(" ")
    return words + closing + piece[len(words) :]


def _shown(markdown: str) -> str:
    return "".join(render(markdown, _SHOWN).split())


def _uncuttable(text: str) -> list[_Block]:
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    offsets[-1] = len(text)
    found = []
    for token in blocks(text):
        if token.map is None or token.type not in ("fence", "table_open"):
            continue
        start, end = offsets[token.map[0]], offsets[min(token.map[1], len(offsets) - 1)]
        head = text[start:end].splitlines(keepends=True)
        if token.type == "fence":
            closed = len(head) > 1 and head[-1].strip(" \t>\n").startswith(token.markup)
            first, last = start + len(head[0]), end - len(head[-1]) if closed else end
            prefix = head[0][: head[0].index(token.markup)].replace("-", " ")
            found.append(_Block(start, end, first, last, prefix + token.markup, head[0]))
        elif len(head) > 2:
            first = start + len(head[0]) + len(head[1])
            found.append(_Block(start, end, first, end, "", head[0] + head[1]))
    return found
