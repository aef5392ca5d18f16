"""The stage on which scenarios play: the real product, people on real wires, and models that follow a script.

    async def test_a_correction_reaches_the_task(stage):
        stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
        held = stage.worker.on("Book Rome").responds("Booked Rome").held()
        await stage.ana.telegram("Book Rome").sees("On it")
        ...

Ana is the owner (Telegram, terminal, page), Ben a member and Gus a guest (Telegram), Sam is a stranger.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from actors.journal import ActionState
from actors.workshop import Primitive
from brain.hold import Pace
from brain.state import LaneState
from brain.working import ActionView
from frontdesk.app import App
from gateway.llm.client import HelperProcess
from mediums.local.client import LocalClient
from tests.servers.openai import ScriptedOpenAI
from tests.servers.telegram import BotApi
from tests.staging import models
from tests.staging.houses import Apart, Here, House, end_sandboxes
from tests.staging.journals import Journals, of_file, of_server
from tests.staging.people import Screen, Someone
from tests.staging.waiting import until

TOKEN = "a-token-of-the-tests"
KEY = "sk-of-the-tests-0123456789"
QUICK = Pace(quiet_seconds=0.1, progress_seconds=0.05)

CONFIG = """\
[model]
name = "openai/scripted"
api_base = "{desk}"
api_key = "{key}"
{model}

[model.actor]
name = "openai/scripted"
api_base = "{worker}"
fallbacks = []

[store]
path = "frontdesk.db"

[broker]
url = "{broker}"

[mediums.telegram]
token = "{telegram_token}"
api_base = "{telegram}"

[mediums.web]
listen = "127.0.0.1:{port}"
token = "{token}"

[sandbox]
allow_unisolated = true

[[contacts]]
name = "Ana"
role = "owner"
addresses = ["telegram:{ana}"{also}]

[[contacts]]
name = "Ben"
addresses = ["telegram:{ben}"]

[[contacts]]
name = "Gus"
role = "guest"
addresses = ["telegram:{gus}"]

{more}
"""


class Stage:
    def __init__(self, folder: Path, desk: ScriptedOpenAI, worker: ScriptedOpenAI, telegram: BotApi) -> None:
        self.folder, self.telegram = folder, telegram
        self.desk, self.worker = models.desk(desk), models.worker(worker)
        self.journals = Journals(of_file(folder / "frontdesk.db"))
        self.notices: list[str] = []
        self.house: House
        ana, ben, gus, sam = (telegram.person(name) for name in ("Ana", "Ben", "Gus", "Sam"))
        self._port = _free_port()
        url = f"http://127.0.0.1:{self._port}"
        self.terminal = Screen(LocalClient(url, TOKEN, "terminal"), "terminal")
        self.page = Screen(LocalClient(url, TOKEN, "web"), "web")
        self.ana = Someone("Ana", ana, (self.terminal, self.page))
        self.ben, self.gus, self.sam = Someone("Ben", ben), Someone("Gus", gus), Someone("Sam", sam)

    @property
    def app(self) -> App:
        assert isinstance(self.house, Here)
        assert self.house.app is not None
        return self.house.app

    # --- the gateway's life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """The owner's screens connect again by themselves."""
        await self.house.start()

    async def stop(self) -> None:
        await self.house.stop()

    async def kill(self) -> None:
        await self.house.kill()

    call = staticmethod(models.call)

    def output(self, name: str, cell: str) -> str:
        """What code has printed so far."""
        actor = self.app.actions.actor(self.view(name).key) if self.app.actions else None
        return actor.box.peek(cell) if actor else ""

    # --- what is on the disk -----------------------------------------------------------------------------------------

    def lane(self, conversation: str = "p-ana") -> LaneState:
        return self.journals.lane(conversation)

    def view(self, name: str, conversation: str = "p-ana") -> ActionView:
        """The newest action of this name, as its conversation sees it."""
        return next(a for a in reversed(self.lane(conversation).actions.values()) if a.name == name)

    def action(self, name: str, conversation: str = "p-ana") -> ActionState:
        return self.journals.action(self.view(name, conversation).key)

    def workspace(self, name: str) -> Path:
        """Where the action's code runs: seen from here and from inside, whatever isolates it."""
        found = list(self.folder.glob(f"*.actions/{self.view(name).key}/workspace"))
        if not found:
            raise LookupError(f"{name} has no workspace yet")
        return found[0]

    def children(self, name: str) -> list[ActionState]:
        prefix = f"log.act.{self.view(name).key}--"
        return [self.journals.action(s.removeprefix("log.act.")) for s in self.journals.subjects(f"{prefix}%")]

    async def until(self, ready: Callable[[], Any]) -> Any:
        """Looks again and again, also while an action is not there yet."""

        def found() -> Any:
            with contextlib.suppress(StopIteration, LookupError):
                return ready()
            return None

        return await until(found, self._story)

    async def phase(self, name: str, phase: str) -> None:
        await self.until(lambda: self.view(name).phase == phase and self.action(name).phase == phase)

    def _story(self) -> str:
        lane = self.lane()
        decided = [exchange.decided.decisions for exchange in lane.exchanges[-4:]]
        actions = [(a.name, a.phase, a.last[:80]) for a in lane.actions.values()]
        return f"decided {decided}; actions {actions}; seen {self.ana.seen()[-4:]}; notices {self.notices[-3:]}"

    def check(self) -> None:
        """At the end: nobody was asked what no rule is for, and no request broke a provider's rules."""
        for who, table in (("desk", self.desk), ("worker", self.worker)):
            assert not table.unexpected, f"the {who} was asked what no rule is for: {table.unexpected}"
            assert not table.server.complaints, f"the {who}'s provider complained: {table.server.complaints}"


@contextlib.asynccontextmanager
async def open_stage(
    folder: Path,
    helper: HelperProcess | None,
    *,
    model: str = "",
    more: str = "",
    also: tuple[str, ...] = (),
    pace: Pace = QUICK,
    primitives: tuple[Primitive, ...] = (),
    broker: str = "sqlite",
    start: bool = True,
) -> AsyncIterator[Stage]:
    """With `helper` the gateway runs in this process, else in one of its own. `model` and `more` are added to the
    settings: to [model], and at the end; `also` are more addresses of Ana's."""
    async with ScriptedOpenAI(api_key=KEY) as desk, ScriptedOpenAI(api_key=KEY) as worker, BotApi() as telegram:
        stage = Stage(folder, desk, worker, telegram)
        config = folder / "config.toml"
        config.write_text(
            CONFIG.format(
                desk=desk.base_url,
                worker=worker.base_url,
                key=KEY,
                telegram=telegram.base_url,
                telegram_token=telegram.token,
                port=stage._port,
                token=TOKEN,
                ana=stage.ana.phone.id,
                ben=stage.ben.phone.id,
                gus=stage.gus.phone.id,
                broker=broker,
                model=model,
                more=more,
                also="".join(f', "{address}"' for address in also),
            )
        )
        stage.house = Here(config, helper, stage.notices.append, pace, primitives) if helper else Apart(config)
        try:
            async with contextlib.AsyncExitStack() as stack:
                if broker != "sqlite":
                    stage.journals = Journals(await stack.enter_async_context(of_server(broker)))
                for screen in (stage.terminal, stage.page):
                    await stack.enter_async_context(screen.client)
                watching = [asyncio.create_task(screen.watch()) for screen in (stage.terminal, stage.page)]
                try:
                    if start:
                        await stage.start()
                    yield stage
                finally:
                    for task in watching:
                        task.cancel()
                    await asyncio.wait(watching)
        finally:  # after the clients: they would try to connect again while it stops
            await stage.stop()
            await end_sandboxes(folder)
        stage.check()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
