"""A page as the text that a reader sees of it. Pure; nothing is ever fetched from an address in it."""

import re
from typing import Any

from mediums.email.unseen import WHITE, Colour, without_unseen

GOES_ON = "[the mail goes on; only its beginning is shown]"

_ELEMENT = re.compile(r"</?(?!style|script|head|title|template)\w+\b[^<>]{0,2000}>", re.IGNORECASE)


def from_html(html: str) -> str:
    """As a reader sees it, without what is hidden; quotes behind `> `."""
    # 0.15 s of importing, which a start without mail does not pay.
    from lxml import html as lxml_html  # type: ignore[import-untyped]

    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True)
    # Who writes white on what a dark screen shows as black sends a mail in which nobody sees a word: it is read then.
    text = _read(html, parser, WHITE) or _read(html, parser, None)
    if not any(one.type_name == "ERR_RESOURCE_LIMIT" for one in parser.error_log):
        return text
    flat = _ELEMENT.sub("<br>", html)  # the parser goes no deeper than 256 elements
    return f"{text}\n{GOES_ON}" if text or flat == html else from_html(flat)


def _read(html: str, parser: Any, ground: Colour) -> str:
    from lxml import etree
    from lxml import html as lxml_html

    try:
        tree = lxml_html.fromstring(html.encode("utf-8"), parser=parser)
    except (etree.LxmlError, ValueError):
        return ""
    without_unseen(tree, ground)
    for quote in tree.xpath("//blockquote[not(ancestor::blockquote)]"):
        marked = lxml_html.Element("pre")
        marked.text = "\n".join(f"> {line.strip()}" for line in _rendered(quote).strip().splitlines())
        marked.tail = quote.tail
        if quote.getparent() is not None:
            quote.getparent().replace(quote, marked)
    text = "\n".join(line.rstrip() for line in _rendered(tree).replace("\xa0", " ").splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _rendered(tree: Any) -> str:
    from inscriptis import get_text  # type: ignore[import-untyped]
    from inscriptis.css_profiles import CSS_PROFILES  # type: ignore[import-untyped]
    from inscriptis.model.config import ParserConfig  # type: ignore[import-untyped]
    from lxml import etree

    config = ParserConfig(css=CSS_PROFILES["strict"], display_links=True)
    return str(get_text(etree.tostring(tree, encoding="unicode", with_tail=False), config))
