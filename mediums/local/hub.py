"""What every socket follows: the room, and the live things beside it, of which only the newest counts.

A socket is never sent anything by others; it is woken, looks at what is newer than what it has, and takes that. So a
slow one falls behind without a queue that grows, and a new one is only one that has seen nothing yet.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from gateway.addresses import Route
from gateway.files import Attachment
from gateway.live import ActionsShown
from gateway.live import Typing as TypingSignal
from mediums.local import wire
from mediums.local.render import Renderer
from mediums.local.room import Item, Posted, RoomState


class Hub:
    """The names of both sides, and lines that are shown above everything."""

    def __init__(self, assistant: str, person: str, banner: Sequence[str]) -> None:
        self.assistant, self.person, self.banner = assistant, person, tuple(banner)
        self.actions: wire.Actions | None = None
        self.typing = wire.Typing(on=False)
        self.changed = asyncio.Event()
        self._renderer = Renderer()
        self.reopen()

    def reopen(self) -> None:
        """Nothing is known of what was said, until the room's journal is folded."""
        self.room = RoomState(self.wake)
        self.closing = False

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def hello(self) -> wire.Hello:
        return wire.Hello(assistant=self.assistant, person=self.person, banner=self.banner, newest=self.room.newest)

    def show_typing(self, signal: TypingSignal) -> None:
        self.typing = wire.Typing(on=signal.on, medium=signal.route.medium)
        self.wake()

    def show_actions(self, signal: ActionsShown) -> None:
        self.actions = wire.Actions(actions=signal.actions)
        self.wake()

    def stop_typing(self) -> None:
        """A message of the assistant says more than that it was typing."""
        if self.typing.on:
            self.typing = wire.Typing(on=False, medium=self.typing.medium)
            self.wake()

    def name_of(self, action: str) -> str:
        """As the panel shows it; its reference where the panel does not."""
        shown = self.actions.actions if self.actions else ()
        return next((one.name for one in shown if one.action == action), action)

    def said(
        self,
        post_id: str,
        medium: wire.Where,
        text: str,
        at: datetime,
        pressed: str = "",
        files: tuple[Attachment, ...] = (),
    ) -> Posted:
        name = self.person
        return Posted(
            id=post_id, author="you", name=name, medium=medium, text=text, at=at, pressed=pressed, files=files
        )

    def answered(
        self, post_id: str, route: Route, text: str, at: datetime, files: tuple[Attachment, ...] = ()
    ) -> Posted:
        return Posted(
            id=post_id,
            author="assistant",
            name=self.assistant,
            medium=route.medium,
            text=text,
            at=at,
            reply_to=route.reply_to or "",
            files=files,
        )

    async def frame(self, item: Item, medium: wire.Where) -> wire.Post | wire.Decided:
        """As this kind of client shows it: only the page is given HTML, and only of the assistant's words."""
        entry = item.entry
        if not isinstance(entry, Posted):
            return wire.Decided(position=item.position, ids=entry.ids, silence=entry.silence, passed_on=entry.passed_on)
        wants_html = medium == "web" and entry.author == "assistant"
        return wire.Post(
            position=item.position,
            id=entry.id,
            author=entry.author,
            name=entry.name,
            medium=entry.medium,
            text=entry.text,
            html=await self._renderer.html(entry.text) if wants_html else "",
            at=entry.at,
            reply_to=entry.reply_to,
            pressed=entry.pressed,
            files=tuple(wire.uploaded(file) for file in entry.files),
        )

    async def looked(self, look: wire.Look, text: str) -> wire.Looked:
        return wire.Looked(id=look.id, text=text, html=await self._renderer.html(text))
