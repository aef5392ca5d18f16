"""Markdown to Slack's mrkdwn: https://docs.slack.dev/messaging/formatting-message-text

Everything that a model wrote is escaped, so nothing in it can name a person, a channel or everybody; what stands in
angle brackets on the wire was put there by a Markdown link. Marks are first written as characters that no text may
hold (Unicode's noncharacters), and become Slack's at the end, when it is known what they stand against.

Slack has no way to write a literal `*`, `_`, `~` or back-tick: a pair of them around words is shown as formatting.
"""

import re
from urllib.parse import unquote

from mediums.markup.render import PlainStyle, render

_OPENS = dict(zip("*_~`", "\ufdd0\ufdd1\ufdd2\ufdd3", strict=True))
_CLOSES = dict(zip("*_~`", "\ufdd4\ufdd5\ufdd6\ufdd7", strict=True))
_SLACKS = str.maketrans({sign: mark for table in (_OPENS, _CLOSES) for mark, sign in table.items()})
_UNMARKED = dict.fromkeys(_SLACKS, "")
_RESERVED = re.compile("[\ufdd0-\ufdd7]")
_AGAINST_A_WORD = re.compile("(?<=\\w)(?=[\ufdd0-\ufdd3])|(?<=[\ufdd4-\ufdd7])(?=\\w)")
_SEPARATOR = "\u200b"  # marks count only beside what is no letter: this is none, and not seen
_NO_ADDRESS = str.maketrans({"<": "%3C", ">": "%3E", "|": "%7C"})


class MrkdwnStyle(PlainStyle):
    """Marks do not reach over lines and do not nest in themselves; code takes none inside it."""

    def text(self, text: str) -> str:
        return escaped(_RESERVED.sub("\ufffd", text))

    def strong(self, inner: str) -> str:
        return _marked(inner, "*")

    def emphasis(self, inner: str) -> str:
        return _marked(inner, "_")

    def struck(self, inner: str) -> str:
        return _marked(inner, "~")

    def code(self, text: str) -> str:
        """A back-tick would end it, so code with one stays unmarked."""
        inner = self.text(text)
        return inner if "`" in inner or not inner.strip() else _OPENS["`"] + inner + _CLOSES["`"]

    def preformatted(self, text: str, language: str) -> str:
        """Slack knows no languages, and would show the name of one as code."""
        inner = self.text(text).replace("```", f"``{_SEPARATOR}`")
        return f"```\n{inner}\n```"

    def link(self, inner: str, address: str) -> str:
        """Words that look like another address are not laid over one: they stand before it."""
        label = " ".join(inner.translate(_UNMARKED).split())
        target = escaped(address.translate(_NO_ADDRESS))
        if not address:
            return inner
        if not label or unquote(label) == unquote(target):
            return f"<{target}>"
        if "://" in label:
            return f"{label} (<{target}>)"
        return f"<{target}|{label}>"

    def quote(self, inner: str) -> str:
        """One level: the mark of a quote inside a quote would be shown as it is written."""
        return "\n".join(f"> {line.removeprefix('> ')}" for line in inner.split("\n"))


MRKDWN = MrkdwnStyle()


def mrkdwn(markdown: str) -> str:
    """For `text` of chat.postMessage with `mrkdwn` on. Empty when nothing would show."""
    return _AGAINST_A_WORD.sub(_SEPARATOR, render(markdown, MRKDWN)).translate(_SLACKS)


def escaped(text: str) -> str:
    """The three characters that Slack gives a meaning, and only those: others are not decoded again."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _marked(inner: str, mark: str) -> str:
    sign, end = _OPENS[mark], _CLOSES[mark]
    inner = inner.replace(sign, "").replace(end, "")
    return "\n".join(_around(line, sign, end) for line in inner.split("\n"))


def _around(line: str, sign: str, end: str) -> str:
    words = line.strip()
    if not words:
        return line
    at = line.index(words)
    return line[:at] + sign + words + end + line[at + len(words) :]
