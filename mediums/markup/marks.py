"""Where a run of `*` or `~` may open or close a mark: as CommonMark says, but for two things that models write.

`**标签：**正文`: scripts without spaces between words have signs right inside a mark and letters right outside.
`2*3*4`: between letters or figures a star multiplies, as an underscore there is part of a name.
"""

import unicodedata

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline.state_inline import Scanned, StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803 - the library's names
        found = super().scanDelims(start, canSplitWord)
        end = start + found.length
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        if self.src[start] == "*" and _multiplies(before, after, found.length):
            return Scanned(False, False, found.length)
        if self.src[start] == "_" or not (_is_wide(before) or _is_wide(after)):
            return found
        opens = not after.isspace() and (_is_wide(before) or _is_wide_sign(after))
        closes = not before.isspace() and (_is_wide(after) or _is_wide_sign(before))
        return Scanned(found.can_open or opens, found.can_close or closes, found.length)


class Inline(ParserInline):
    def __init__(self, like: ParserInline) -> None:
        self.__dict__.update(like.__dict__)

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _multiplies(before: str, after: str, length: int) -> bool:
    between = all(one.isascii() and one.isalnum() for one in (before, after))
    return between and (length == 1 or before.isdigit() or after.isdigit())


def _is_wide(character: str) -> bool:
    """Of a script that is written without spaces: https://www.unicode.org/reports/tr11/"""
    return unicodedata.east_asian_width(character) in ("W", "F") and character < "\U0001f000"


def _is_wide_sign(character: str) -> bool:
    return _is_wide(character) and unicodedata.category(character)[0] in "PS"
