"""The one dialect: CommonMark as chat models write it, without what would lose or hide a person's text.

Left out on purpose: raw HTML (shown as it is written), setext headings (`---` under a line is meant as a rule), and
reference definitions (they would vanish). Added: tables, strikethrough, and bare web addresses, which are taken whole
so that an underscore in one never becomes emphasis. Links lead to http, https or mailto only; any other stays text.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from mediums.markup.marks import Inline

_SAFE = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_ADDRESS = re.compile(r"://[^\s<>\"`|]+")
_SCHEME = re.compile(r"(?<![A-Za-z0-9])https?$", re.IGNORECASE)


class _Dialect(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return _SAFE.match(url.strip()) is not None


def _bare_address(state: StateInline, silent: bool) -> bool:
    """Runs at a colon, with the scheme already in `pending`: the parser skips over letters in one step."""
    found = _ADDRESS.match(state.src, state.pos, state.posMax)
    if found is None or state.linkLevel > 0:
        return False
    scheme = _SCHEME.search(state.pending[-len(" https") :])
    tail = _without_trailing_punctuation(found.group())
    if scheme is None or len(tail) <= len("://"):
        return False
    if not silent:
        address = scheme.group() + tail
        state.pending = state.pending[: -len(scheme.group())]
        state.push("link_open", "a", 1).attrs = {"href": state.md.normalizeLink(address)}
        state.push("text", "", 0).content = address
        state.push("link_close", "a", -1)
    state.pos += len(tail)
    return True


def _without_trailing_punctuation(address: str) -> str:
    """A closing bracket belongs to the address only if it was opened there."""
    while address[-1] in ".,;:!?'*_~" or any(
        address[-1] == closing and address.count(closing) > address.count(opening) for opening, closing in ("()", "[]")
    ):
        address = address[:-1]
    return address


def dialect() -> MarkdownIt:
    parser = _Dialect("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
    parser.enable(["table", "strikethrough"]).disable(["lheading", "reference", "html_block", "html_inline"])
    parser.inline = Inline(parser.inline)
    parser.inline.ruler.before("linkify", "bare_address", _bare_address)
    return parser


_whole = dialect()
_blocks = dialect()
_blocks.core.ruler.disable("inline")


def tree(markdown: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(_whole.parse(markdown))


def blocks(markdown: str) -> list[Token]:
    """Block tokens with their line ranges; what is inside a line is not looked at."""
    return _blocks.parse(markdown)
