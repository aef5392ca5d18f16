"""Several real processes of the product on one real nats-server, and what a person at the page sees of them.

A machine is a folder: processes that share it can attach each other's sandboxes, others cannot.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from gateway.broker.nats import JetStreamBroker
from gateway.record import decode
from mediums.local import wire
from mediums.local.client import LocalClient
from tests.patience import PATIENCE_SECONDS
from tests.servers.nats import NatsServer
from tests.servers.openai import Call, Received, Reply, ScriptedOpenAI, call
from tests.servers.openai_rules import text_of

TOKEN = "a-token-of-the-tests"
CONFIG = """\
[model]
name = "openai/scripted"
api_base = "{desk}"
api_key = "none-of-ours"

[model.actor]
api_base = "{worker}"

[store]
path = "frontdesk.db"

[broker]
url = "{nats}"

[mediums.web]
listen = "127.0.0.1:{port}"
token = "{token}"

[sandbox]
allow_unisolated = true
"""
_SAID = re.compile(r"^\[m\d+ · [^\]]*\] (.*)", re.MULTILINE)
_RESPONDED = re.compile(r"^\[a\d+ \w+ (?:responded|answered .*?|failed|stopped) · [^\]]*\] ?(.*)", re.MULTILINE)


class Process:
    """One process of the product, with its roles."""

    def __init__(self, folder: Path, roles: str, name: str) -> None:
        self.roles, self._log = roles, folder / f"{name}.log"
        command = [sys.executable, "-m", "frontdesk", "run", "--config", str(folder / "config.toml"), "--roles", roles]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.pid = self._process.pid

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    async def stop(self) -> None:
        """As a service manager does."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """As a crash; what it had started is not killed with it."""
        await self._end(signal.SIGKILL)

    async def _end(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
            self.thaw()
            await asyncio.to_thread(self._process.wait, PATIENCE_SECONDS)


class Town:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Process] = []
        self.posts: list[wire.Post] = []
        self.decided: dict[str, wire.Decided] = {}
        self.actions: tuple[Any, ...] = ()
        self.looked: dict[str, wire.Looked | wire.Refused] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Town":
        self.nats = self._stack.enter_context(NatsServer())
        self.desk = await self._stack.enter_async_context(ScriptedOpenAI())
        self.worker = await self._stack.enter_async_context(ScriptedOpenAI())
        self.desk.script(desk)
        self.broker = await JetStreamBroker.connect(self.nats.url)
        self._stack.push_async_callback(self.broker.close)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.client = await self._stack.enter_async_context(LocalClient(f"http://127.0.0.1:{self.port}", TOKEN))
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes:
            await process.kill()
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._stack.aclose()
        for folder in self.folder.glob("*/*.actions/*"):
            kill_sandbox(folder)

    def start(self, roles: str, machine: str = "here") -> Process:
        folder = self.folder / machine
        folder.mkdir(exist_ok=True)
        text = CONFIG.format(
            desk=self.desk.base_url, worker=self.worker.base_url, nats=self.nats.url, port=self.port, token=TOKEN
        )
        (folder / "config.toml").write_text(text)
        process = Process(folder, roles, f"{roles}{len(self.processes)}")
        self.processes.append(process)
        return process

    # --- what a person sees ------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
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
                case _:
                    pass

    def answers(self) -> list[str]:
        return [post.text for post in self.posts if post.author == "assistant"]

    async def look(self, what: wire.LookAt, about: str = "") -> str:
        asked = self.client.look(what, about)
        await self.until(lambda: asked in self.looked)
        found = self.looked[asked]
        return found.text if isinstance(found, wire.Looked) else found.why

    async def sees(self, words: str) -> None:
        await self.until(lambda: any(words in text for text in self.answers()))

    async def until(self, ready: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := ready()):
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {p.roles} {p.pid}\n{p.log()[-3000:]}" for p in self.processes)
                raise AssertionError(f"not in time; the answers are {self.answers()}\n{logs}")
            await asyncio.sleep(0.01)
        return found

    # --- who holds what ----------------------------------------------------------------------------------------------

    async def holds(self, process: Process, subject: str) -> float:
        """Waits until the process owns that journal; when it was seen, on the monotonic clock."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while await self.holder(subject) != process.pid:
            if time.monotonic() > deadline:
                raise AssertionError(f"{subject} is held by {await self.holder(subject)}\n{process.log()[-3000:]}")
            await asyncio.sleep(0.02)
        return time.monotonic()

    async def holder(self, subject: str) -> int:
        """The process that owned it last."""
        entries = [decode(one.data, tuple[int, str, dict[str, Any]])[2] for one in await self.broker.read(subject)]
        owned = [entry["worker"] for entry in entries if entry["type"] == "Owned"]
        return int(owned[-1].rpartition("-")[2]) if owned else 0


def desk(request: Received) -> Reply:
    """Gives the work to the worker, tells what comes of it, and answers everything else with its own words."""
    events = text_of(request.messages[-2])
    calls: list[Call] = []
    told = [f"Result: {text}" for text in _RESPONDED.findall(events)]
    for text in _SAID.findall(events):
        steering = next((name for name in request.tool_names if name.startswith("interject_")), None)
        if text.startswith("Count"):
            calls.append(call("act", name="counting", query=text))
            told.append("On it")
        elif text.startswith("Tell") and steering:
            calls.append(call(steering, message=text))
            told.append("Passed on")
        else:
            told.append(f"Re: {text}")
    return Reply(text="; ".join(told) or "Noted", calls=calls)


def worker(code: str) -> Callable[[Received], Reply]:
    """Runs that code in the stateful session, waits for it whatever is said, and responds with what it printed."""

    def decide(request: Received) -> Reply:
        said = [text_of(message) for message in request.messages if message["role"] in ("tool", "user")]
        states = [found for text in said for found in re.findall(r"\b(cell\d+) (ended|still runs|is lost)", text)]
        if not states:
            return Reply(calls=[call("execute_code", code=code, stateful=True)])
        cell, state = states[-1]
        if state == "still runs":
            return Reply(calls=[call("continue_code", cell=cell, seconds=30)])
        return Reply(text=" / ".join(" ".join(text.split()) for text in said[1:]))

    return decide


def kill_sandbox(folder: Path) -> None:
    from actors.sandbox import processes
    from actors.sandbox.folder import Folder

    if (birth := Folder(folder).zygote()) is not None:
        processes.kill(birth.pid, birth.started)
