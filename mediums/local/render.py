"""The model's Markdown as HTML for the page. Owns how often and where that is worked out; not what is safe.

A long text takes tens of milliseconds, so it is rendered in a thread; the newest results are kept.
"""

import asyncio

from mediums import markup

KEPT, LONG_CHARACTERS = 256, 2_000


class Renderer:
    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def html(self, markdown: str) -> str:
        """Safe to insert in a page as it is."""
        found = self._kept.get(markdown)
        if found is None:
            long = len(markdown) > LONG_CHARACTERS
            found = await asyncio.to_thread(to_html, markdown) if long else to_html(markdown)
            self._kept[markdown] = found
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return found


def to_html(markdown: str) -> str:
    """The page's policy forbids style attributes; only table cells have one, and text cannot hold a bare quote."""
    return markup.web_html(markdown).replace(' style="text-align:', ' class="')
