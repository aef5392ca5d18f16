"""The local medium: one private room of the owner, shown by the page ("web") and the terminal ("terminal") alike.

Owns the order of things: a message is published before it is posted, posted before it is accepted. HTTP is server.py,
a connection socket.py, the journal room.py; what may be lost (typing, the panel) is in the hub and never stored.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol, assert_never

from gateway.addresses import Route
from gateway.broker.protocol import Broker
from gateway.cards import Card
from gateway.clock import Now, utc_now
from gateway.events import MediumFact
from gateway.files import Attachment, Keep, attachment
from gateway.holding import Guard
from gateway.live import ActionsShown, LiveSignal, TurnDecided, Typing
from gateway.record import whole_text
from mediums import markup
from mediums.local import wire
from mediums.local.hub import Hub
from mediums.local.room import Posted, Room, Settled
from mediums.local.server import CannotListen, Server
from mediums.local.socket import DeskClosed
from mediums.medium import Carried, Health, OutcomeUnknown, Publish, Rejected, SurelyNotSent

OPEN_SECONDS, TAKE_SECONDS, SEND_SECONDS = 10.0, 10.0, 30.0
SETTLING = 200  # decisions heard and not yet written; beyond that their marks are lost


class Console(Protocol):
    """Answers looks, in Markdown. `about` may be empty: the newest. Raises LookupError with words for the person."""

    async def trace(self, about: str) -> str: ...
    async def code(self, about: str) -> str: ...
    async def actions(self, about: str) -> str: ...
    async def people(self, words: str) -> str: ...


class LocalMedium:
    """Made for one holding; `listen` is host and port, `token` what a client must show."""

    name = "local"
    account = wire.ACCOUNT
    repeatable = True
    may_come_back = False
    files_with_text = True

    def __init__(
        self,
        broker: Broker,
        guard: Guard,
        worker: str,
        *,
        listen: tuple[str, int],
        token: str,
        person: str,
        assistant: str,
        banner: Sequence[str] = (),
        console: Console | None = None,
        now: Now = utc_now,
    ) -> None:
        self._hub = Hub(assistant, person, banner)
        self._broker = broker
        self._new_room = partial(Room, broker, guard, worker)
        self._listen, self._token, self._console, self._now = listen, token, console, now
        self._open = asyncio.Event()
        self._listening = asyncio.Event()
        self._health = Health(well=False, text="the local room is not open yet")
        self._settling: asyncio.Queue[Settled] = asyncio.Queue(SETTLING)
        self._taking: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The page's address without the token; its port is the real one once it listens."""
        host, port = self._listen
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def listening(self) -> str:
        """Waits until the page can be opened, and gives its address with the token, for a person to click."""
        await self._listening.wait()
        return f"{self.url}/?token={self._token}"

    # --- the medium --------------------------------------------------------------------------------------------------

    async def receive(self, publish: Publish, keep: Keep) -> None:
        """Serves until cancelled. Raises CannotListen, Deposed (in a group), and what `publish` raises."""
        self._publish, self._keep = publish, keep
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hub.reopen()
        self._room = self._new_room(self._hub.room)
        await self._room.open()
        self._open.set()
        work = [self._failed, *map(asyncio.ensure_future, (self._room.run(), self._settle()))]
        try:
            await self._serve(work)
        finally:
            self._open.clear()
            for task in (*work, *self._taking):
                task.cancel()
            await asyncio.gather(*work, *self._taking, return_exceptions=True)
            await self._room.release()

    async def _serve(self, work: Sequence[asyncio.Future[None]]) -> None:
        """Until any of the work ends, and then as it ended."""
        self._server = server = Server(*self._listen, self._token, self._hub, self)
        try:
            await server.start()
        except CannotListen as error:
            self._health = Health(well=False, text=str(error))
            raise
        self._listen = (server.host, server.port)
        self._health = Health(well=True)
        self._listening.set()
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._health = Health(well=False, text="the local room is closed")
            self._listening.clear()
            await server.stop()
        done.pop().result()

    def split(self, text: str) -> tuple[str, ...]:
        return markup.split(text, lambda part: len(part) <= wire.MAX_TEXT)

    async def send(self, route: Route, text: str, key: str) -> None:
        """Done when it is durable in the room, whether or not anyone looks. Raises SurelyNotSent, OutcomeUnknown."""
        await self.send_files(route, text, (), key)

    async def react(self, route: Route, emoji: str, key: str) -> None:
        raise Rejected("the room shows no emojis on messages")

    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None:
        """As `send`; the room names the files, whose bytes are in the store."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._open.wait()
        except TimeoutError:
            raise SurelyNotSent("the local room is not open") from None
        named = tuple(one.file for one in files)
        posted = self._hub.answered(key, route, whole_text(text), self._now(), named)
        await self._all_taken()
        writing = asyncio.create_task(self._room.post(posted))
        await asyncio.wait({writing}, timeout=SEND_SECONDS)  # a room that stops meanwhile answers nobody
        if not writing.done() or writing.cancelled():
            writing.cancel()
            raise OutcomeUnknown("the local room closed while it was written")
        writing.result()
        self._hub.stop_typing()

    async def show_card(self, route: Route, card: Card, message: str | None) -> str:
        raise Rejected("the page and the terminal have a panel")

    async def show(self, signal: LiveSignal) -> None:
        match signal:
            case Typing():
                self._hub.show_typing(signal)
            case ActionsShown():
                self._hub.show_actions(signal)
            case TurnDecided(covers=covers, silence=silence, passed_on=passed_on):
                ids = wire.said_ids(covers)
                if ids and not self._settling.full():
                    self._settling.put_nowait(Settled(ids=ids, silence=silence, passed_on=passed_on))
            case _:
                assert_never(signal)

    def health(self) -> Health:
        return self._health

    async def _settle(self) -> None:
        while True:
            settled = await self._settling.get()
            await self._all_taken()
            await self._room.settle(settled)

    # --- the desk: what clients say ----------------------------------------------------------------------------------

    async def say(self, say: wire.Say, medium: wire.Where) -> wire.Accepted | wire.Refused:
        if not (say.text.strip() or say.files):
            return wire.Refused(id=say.id, why="there is nothing in it")
        for one in say.files:
            try:
                await self._broker.get_blob(one.digest)
            except LookupError:
                return wire.Refused(id=say.id, why=f"the file {one.name} is not here: attach it again")
        received = wire.message(say, medium, self._hub.person, self._now())
        said = self._hub.said(say.id, medium, received.text, received.at, files=received.files)
        return await self._accept(received, said)

    async def take_file(self, name: str, kind: str, data: bytes) -> wire.Upload:
        return wire.uploaded(attachment(name, kind, len(data), await self._keep(data)))

    async def file(self, digest: str) -> tuple[Attachment, bytes] | None:
        found = self._hub.room.file(digest)
        if found is None:
            return None
        try:
            return found, await self._broker.get_blob(digest)
        except LookupError:
            return None

    async def press(self, press: wire.Press, medium: wire.Where) -> wire.Accepted | wire.Refused:
        pressed = wire.control(press, medium, self._hub.person, self._now())
        about = f"{press.verb} {self._hub.name_of(press.action)}"
        return await self._accept(pressed, self._hub.said(press.id, medium, pressed.text, pressed.at, about))

    async def _accept(self, fact: MediumFact, posted: Posted) -> wire.Accepted:
        """A fact that cannot be published ends the holding: its client will say it again to the next one."""
        if not self._room.state.position(posted.id):
            taking = asyncio.create_task(self._take(fact, posted))
            self._taking.add(taking)
            taking.add_done_callback(self._taking.discard)
            await asyncio.wait({taking})  # goes on if the client goes
            error = None if taking.cancelled() else taking.exception()
            if error and not self._failed.done():
                self._failed.set_exception(error)
            if error or taking.cancelled():
                raise DeskClosed
        return wire.Accepted(id=posted.id, position=self._room.state.position(posted.id))

    async def _take(self, fact: MediumFact, posted: Posted) -> None:
        await self._publish(fact)
        await self._room.post(posted)

    async def _all_taken(self) -> None:
        """Whatever answers a message is posted after it, however fast it was decided."""
        if self._taking:
            await asyncio.wait(set(self._taking), timeout=TAKE_SECONDS)

    async def look(self, look: wire.Look) -> wire.Looked | wire.Refused:
        if self._console is None:
            return wire.Refused(id=look.id, why="there is nothing to look at here")
        try:
            return await self._hub.looked(look, await self._answer(self._console, look))
        except LookupError as error:
            return wire.Refused(id=look.id, why=str(error.args[0] if error.args else error))

    async def _answer(self, console: Console, look: wire.Look) -> str:
        match look.what:
            case "trace":
                return await console.trace(look.about)
            case "code":
                return await console.code(look.about)
            case "actions":
                return await console.actions(look.about)
            case "people":
                return await console.people(look.about)
