"""Markdown to HTML for the local web page: what may stand there, whoever wrote the text.

Raw HTML is escaped, links open outside with no way back to the page, and images become links: a page that fetches
a picture tells its server who reads what, and a model can be talked into putting words into a picture's address.
"""

from collections.abc import Sequence
from typing import Any

from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from mediums.markup.parse import dialect

REL = "noopener noreferrer nofollow"


def _link(renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    token = tokens[index]
    token.attrSet("rel", REL)
    token.attrSet("target", "_blank")
    return str(renderer.renderToken(tokens, index, options, env))


def _image(renderer: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    token = tokens[index]
    address = str(token.attrs["src"])
    words = Token("text", "", 0, content=token.content or address)
    anchor = Token("link_open", "a", 1, attrs={"href": address, "rel": REL, "target": "_blank"})
    return str(renderer.render([anchor, words, Token("link_close", "a", -1)], options, env))


_parser = dialect()
_parser.add_render_rule("link_open", _link)
_parser.add_render_rule("image", _image)


def web_html(markdown: str) -> str:
    """A fragment of block elements: p, h1-h6, ul, ol, li, blockquote, pre, code (`class="language-…"`), table, hr,
    a, strong, em, s, br. Safe to insert as it is."""
    return str(_parser.render(markdown))
