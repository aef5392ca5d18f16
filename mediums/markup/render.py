"""Markdown to Telegram HTML and to plain text: one layout, two styles. Pure.

The layout is a chat's: a line of the model is a line of the message, a gap is one empty line, lists have bullets or
their own numbers, a table is aligned text. A style only says how each run of text is marked.
"""

import html
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode

from mediums.markup.parse import tree

INDENT = "  "
BULLET = "• "
RULE = "———"


class PlainStyle:
    """Nothing but the text. A link shows its address after its words."""

    def text(self, text: str) -> str:
        return text

    def strong(self, inner: str) -> str:
        return inner

    def emphasis(self, inner: str) -> str:
        return inner

    def struck(self, inner: str) -> str:
        return inner

    def code(self, text: str) -> str:
        return text

    def preformatted(self, text: str, language: str) -> str:
        return text

    def link(self, inner: str, address: str) -> str:
        return inner if inner == address.removeprefix("mailto:") or not address else f"{inner} ({address})".lstrip()

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}" for line in inner.split("\n"))


class TelegramStyle(PlainStyle):
    """The tags that Telegram knows: https://core.telegram.org/bots/api#html-style

    Code takes no marks inside it and quotes do not nest; of two nested quotes the outer one is kept.
    """

    def text(self, text: str) -> str:
        return html.escape(text, quote=False)

    def strong(self, inner: str) -> str:
        return f"<b>{inner}</b>" if inner else ""

    def emphasis(self, inner: str) -> str:
        return f"<i>{inner}</i>" if inner else ""

    def struck(self, inner: str) -> str:
        return f"<s>{inner}</s>" if inner else ""

    def code(self, text: str) -> str:
        return f"<code>{self.text(text)}</code>"

    def preformatted(self, text: str, language: str) -> str:
        inner = self.text(text)
        if language:
            inner = f'<code class="language-{html.escape(language)}">{inner}</code>'
        return f"<pre>{inner}</pre>"

    def link(self, inner: str, address: str) -> str:
        if not inner or inner == self.text(address):
            return self.text(address)  # Telegram makes bare addresses into links by itself
        return f'<a href="{html.escape(address)}">{inner}</a>'

    def quote(self, inner: str) -> str:
        return f"<blockquote>{inner.replace('<blockquote>', '').replace('</blockquote>', '')}</blockquote>"


PLAIN = PlainStyle()
TELEGRAM = TelegramStyle()


def plain(markdown: str) -> str:
    """The text without its marks; nothing else is lost."""
    return render(markdown, PLAIN)


def telegram_html(markdown: str) -> str:
    """For `parse_mode=HTML`. Every tag is closed; empty when nothing would show."""
    return render(markdown, TELEGRAM)


def render(markdown: str, style: PlainStyle) -> str:
    return _Layout(markdown, style).whole()


class _Layout:
    def __init__(self, markdown: str, style: PlainStyle) -> None:
        self._lines = markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._style = style
        self._root = tree(markdown)

    def whole(self) -> str:
        return self._blocks(self._root.children, "").strip("\n")

    def _blocks(self, nodes: Sequence[SyntaxTreeNode], pad: str) -> str:
        written = ""
        for node in nodes:
            block = self._block(node, pad)
            if block and written:
                written += "\n\n" if self._stands_apart(node) else "\n"
            written += block
        return written

    def _stands_apart(self, node: SyntaxTreeNode) -> bool:
        return node.map is not None and node.map[0] > 0 and not self._lines[node.map[0] - 1].strip(" \t>")

    def _block(self, node: SyntaxTreeNode, pad: str) -> str:
        match node.type:
            case "heading":
                return pad + self._style.strong(self._line(node))
            case "bullet_list" | "ordered_list":
                return self._list(node, pad)
            case "blockquote":
                return self._style.quote(self._blocks(node.children, ""))
            case "fence" | "code_block":
                language = node.info.split()[0] if node.info.strip() else ""
                code = node.content.removesuffix("\n")
                return self._style.preformatted(code, language) if code.strip() else ""
            case "table":
                return self._style.preformatted(_table(node), "")
            case "hr":
                return pad + RULE
            case _:
                return pad + self._line(node).replace("\n", "\n" + pad)

    def _list(self, node: SyntaxTreeNode, pad: str) -> str:
        written = ""
        for item in node.children:
            marker = f"{item.info}{item.markup} " if node.type == "ordered_list" else BULLET
            body = self._blocks(item.children, pad + INDENT)
            inline = body.startswith(pad + INDENT) or not body
            if written:
                written += "\n\n" if self._stands_apart(item) else "\n"
            written += pad + marker + (body.removeprefix(pad + INDENT) if inline else f"\n{body}")
        return written

    def _line(self, node: SyntaxTreeNode) -> str:
        return _inline(node.children, self._style)


def _inline(nodes: Sequence[SyntaxTreeNode], style: PlainStyle) -> str:
    return "".join(_run(node, style) for node in nodes)


def _run(node: SyntaxTreeNode, style: PlainStyle) -> str:
    match node.type:
        case "text":
            return style.text(node.content)
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return style.code(node.content)
        case "strong":
            return style.strong(_inline(node.children, style))
        case "em":
            return style.emphasis(_inline(node.children, style))
        case "s":
            return style.struck(_inline(node.children, style))
        case "link":
            return style.link(_inline(node.children, style), str(node.attrs["href"]))
        case "image":
            return style.link(style.text(node.content), str(node.attrs["src"]))
        case _:
            return _inline(node.children, style)


def _table(node: SyntaxTreeNode) -> str:
    """Columns aligned by characters: right for a fixed-width font, near enough for wide scripts."""
    rows = [[_inline(cell.children, PLAIN) for cell in row.children] for part in node.children for row in part.children]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])
