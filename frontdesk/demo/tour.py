"""The demo from the outside: a folder, a gateway process in it, a conversation in this terminal and on the page.

In the middle, once a question is open, the gateway is killed with -9 and started again: the question is still open.
"""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from actors.sandbox.host import Sandbox
from frontdesk.demo import outbox
from frontdesk.demo.find_model import Found, find
from frontdesk.models import REHEARSAL
from frontdesk.serve import local_token
from gateway.config import load
from gateway.record import Record
from mediums.local import wire
from mediums.local.client import LocalClient
from mediums.local.plain import Ledger, Message, PlainResult, lines_of, run_plain

DATA = Path(__file__).with_name("data") / "sales.csv"
START_SECONDS = 20.0
STEPS = (
    "total February by region",
    "how far are you?",
    "net, not gross",
    "great, now do March",
    "send it to Sarah",
    "Lind",
    "thanks",
)

CONFIG = """\
# Made by `frontdesk demo`.
[assistant]
name = "Frontdesk"

[model]
name = "{model}"
{extra}
[store]
path = "frontdesk.db"

[mediums.web]
listen = "{listen}"

[sandbox]
allow_unisolated = true

[[contacts]]
name = "Sarah Lind"
role = "guest"
addresses = ["email:sarah.lind@example.org"]

[[contacts]]
name = "Sarah Okafor"
role = "guest"
addresses = ["email:sarah.okafor@example.org"]
"""


class Options(Record, frozen=True, kw_only=True):
    plain: bool = False
    data: Path | None = None
    model: str | None = None
    pace_seconds: float = 1.0
    listen: str = "127.0.0.1:0"


async def run(options: Options) -> int:
    """The exit code: 0 when every message had its outcome, once."""
    folder = Path(tempfile.mkdtemp(prefix="frontdesk-demo-"))
    try:
        return await _run(options, folder)
    finally:
        await end_sandboxes(folder)
        shutil.rmtree(folder, ignore_errors=True)


async def end_sandboxes(folder: Path) -> None:
    """They outlive a gateway, so that a restart finds them again; here they end with the demo."""
    for one in (folder / "frontdesk.db.actions").glob("*"):
        await Sandbox(one, lambda _: None).kill()


async def _run(options: Options, folder: Path) -> int:
    found = await find(options.model, os.environ)
    lay_out(folder, options, found)
    settings = load(folder / "config.toml", os.environ)
    assert settings.mediums.web is not None
    url = f"http://{settings.mediums.web.listen}"
    token = local_token(settings)
    out = sys.stdout
    _print(out, _first_line(found))
    gateway = Gateway(folder, options.pace_seconds)
    await gateway.start()
    try:
        await reachable(url)
        _print(out, f"The same conversation in the browser: {url}/?token={token}")
        async with LocalClient(url, token) as client, LocalClient(url, token) as observer:
            tour = Tour(gateway, out)
            watching = asyncio.create_task(tour.watch(observer))
            try:
                if options.plain:
                    result = await run_plain(client, lines_of(sys.stdin), out)
                else:
                    result = await _converse(client, tour)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
    finally:
        await gateway.stop()
    for letter in outbox.letters(folder / outbox.NAME):
        _print(out, f"In the demo's outbox: a mail to {letter['to']}, “{letter['subject']}”.")
    _print(out, figures(result))
    return 0 if result.ok else 1


async def _converse(client: LocalClient, tour: "Tour") -> PlainResult:
    from mediums.local.terminal import run_terminal

    _print(sys.stdout, "Type anything; Enter on an empty line sends the suggestion. /code, /trace, /actions, /quit.\n")
    await run_terminal(client, suggest=tour.suggestion)
    return tour.ledger.result()


class Gateway:
    """The gateway as a process of its own, so that it can be killed as by a crash."""

    def __init__(self, folder: Path, pace_seconds: float) -> None:
        self._folder, self._pace_seconds = folder, pace_seconds
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with (self._folder / "gateway.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "frontdesk.demo.gateway",
                str(self._folder),
                str(self._pace_seconds),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def kill_and_start(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        await self.start()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def log(self) -> str:
        return (self._folder / "gateway.log").read_text("utf-8", "replace")


class Tour:
    """Watches the conversation from beside it: what to suggest next, when to kill, and what became of everything."""

    def __init__(self, gateway: Gateway, out: TextIO) -> None:
        self.ledger = Ledger()
        self._gateway, self._out = gateway, out
        self._said: list[str] = []
        self._killed = False

    def suggestion(self) -> str:
        said = {text.strip().lower() for text in self._said}
        return next((step for step in STEPS if step.lower() not in said), "")

    async def watch(self, observer: LocalClient) -> None:
        async for event in observer:
            if isinstance(event, wire.Post) and event.author == "you" and not event.pressed:
                self.ledger.messages.setdefault(event.id, Message())
            self.ledger.apply(event)
            match event:
                case wire.Post(author="you", text=text):
                    self._said.append(text)
                case wire.Actions(actions=actions) if not self._killed and any(one.questions for one in actions):
                    self._killed = True
                    _print(
                        self._out, "(demo: a question is open; the gateway is killed with -9 now, and started again)"
                    )
                    await self._gateway.kill_and_start()
                case _:
                    pass


def figures(result: PlainResult) -> str:
    return (
        f"{result.messages} messages, {result.answered} answered, {result.left_alone} left alone, "
        f"{result.lost} lost, {result.doubled} doubled"
    )


def lay_out(folder: Path, options: Options, found: Found) -> None:
    extra = f'api_base = "{found.api_base}"\n' if found.api_base else ""
    extra += f'api_key = "env:{found.key}"\n' if found.key else ""
    host, _, port = options.listen.rpartition(":")
    listen = f"{host}:{_free_port(host) if port == '0' else port}"
    (folder / "config.toml").write_text(CONFIG.format(model=found.name, extra=extra, listen=listen))
    (folder / "files").mkdir()
    shutil.copyfile(options.data or DATA, folder / "files" / "sales.csv")


def _free_port(host: str) -> int:
    """Fixed before the start, so that the page finds the gateway again after the restart."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _first_line(found: Found) -> str:
    if found.name == REHEARSAL:
        return (
            "This is the rehearsal model: rules, not a language model "
            f"({found.why}). The gateway, the workers and their Python are real."
        )
    where = f" at {found.api_base}" if found.api_base else ""
    return f"The model is {found.name}{where} ({found.why})."


async def reachable(url: str) -> None:
    from urllib.parse import urlsplit

    address = urlsplit(url)
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection(address.hostname, address.port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return


def _print(out: TextIO, text: str) -> None:
    print(text, file=out, flush=True)
