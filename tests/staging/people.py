"""People on mediums. What somebody says returns at once; `sees` waits for what appears in the same place after it."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from mediums.local import wire
from mediums.local.client import Disconnected, LocalClient
from tests.patience import PATIENCE_SECONDS
from tests.servers.telegram import Person
from tests.staging.waiting import until

CARD = re.compile(r"\*{0,2}[^\n]+?\*{0,2} · (working|paused|waits|done|failed|stopped)\b")


class Screen:
    """What the owner's terminal or page shows."""

    def __init__(self, client: LocalClient, medium: wire.Where) -> None:
        self.client, self.medium = client, medium
        self.posts: list[wire.Post] = []
        self.decided: dict[str, wire.Decided] = {}
        self.actions: tuple[Any, ...] = ()
        self.looked: dict[str, wire.Looked | wire.Refused] = {}
        self.typed: list[bool] = []
        self.connections = 0
        self._changed = asyncio.Event()

    async def watch(self) -> None:
        async for event in self.client:
            match event:
                case wire.Post():
                    self.posts.append(event)
                case wire.Decided(ids=ids):
                    self.decided.update(dict.fromkeys(ids, event))
                case wire.Actions(actions=actions):
                    self.actions = actions
                case wire.Looked(id=one) | wire.Refused(id=one):
                    self.looked[one] = event
                case wire.Typing(on=on):
                    self.typed.append(on)
                case wire.Hello():
                    self.connections += 1  # each begins with one
                case wire.Accepted() | Disconnected():
                    pass
            self._changed.set()
            self._changed = asyncio.Event()

    def shown(self) -> list[str]:
        """What the assistant said here."""
        return [post.text for post in self.posts if post.author == "assistant" and post.medium == self.medium]

    async def until(self, ready: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (found := ready()):
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s; {self.medium} shows {self.shown()}") from None
        return found

    async def look(self, what: wire.LookAt, about: str = "") -> str:
        asked = self.client.look(what, about)
        answer = await self.until(lambda: self.looked.get(asked))
        return answer.text if isinstance(answer, wire.Looked) else answer.why


class Said:
    """Something said, and what comes after it in the same place."""

    def __init__(self, shown: Callable[[], list[str]], wait: Callable[[Callable[[], Any]], Any]) -> None:
        self._shown, self._wait, self._before = shown, wait, len(shown())

    async def sees(self, text: str) -> str:
        """The first message after it that holds this text."""
        found: str = await self._wait(lambda: next((one for one in self._all() if text in one), None))
        return found

    def after(self) -> list[str]:
        """What was said; status cards apart, which come when work takes long: on a busy machine all does."""
        return [text for text in self._all() if not CARD.match(text)]

    def _all(self) -> list[str]:
        return self._shown()[self._before :]


class SaidOnScreen(Said):
    def __init__(self, screen: Screen, text: str) -> None:
        super().__init__(screen.shown, screen.until)
        self._screen, self.id = screen, screen.client.say(text)

    async def settles(self) -> wire.Decided:
        """The turn that covers it has committed."""
        decided: wire.Decided = await self._screen.until(lambda: self._screen.decided.get(self.id))
        return decided


class Someone:
    """One person. Only the owner has the local screens."""

    def __init__(self, name: str, phone: Person, screens: tuple[Screen, ...] = ()) -> None:
        self.name, self.phone = name, phone
        self.screens = {screen.medium: screen for screen in screens}

    def telegram(self, text: str | None, **fields: Any) -> Said:
        said = Said(self.on_telegram, self._on_phone)
        self.phone.says(text, **fields)
        return said

    def terminal(self, text: str) -> SaidOnScreen:
        return SaidOnScreen(self.screens["terminal"], text)

    def web(self, text: str) -> SaidOnScreen:
        return SaidOnScreen(self.screens["web"], text)

    def on_telegram(self) -> list[str]:
        return self.phone.server.seen_by(self.phone)

    def on(self, medium: wire.Where) -> list[str]:
        return self.screens[medium].shown()

    async def sees(self, text: str) -> str:
        """Wherever."""
        return await until(lambda: next((one for one in self.seen() if text in one), ""), self.seen)

    def seen(self) -> list[str]:
        return [*self.on_telegram(), *(text for screen in self.screens.values() for text in screen.shown())]

    async def _on_phone(self, ready: Callable[[], Any]) -> Any:
        await self.phone.server.until(ready, PATIENCE_SECONDS, lambda: f"on telegram: {self.on_telegram()}")
        return ready()
