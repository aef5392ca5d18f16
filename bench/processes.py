"""The processes that are measured, from outside: started, ready at their first poll, looked at through /proc."""

import asyncio
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.servers.openai import ScriptedOpenAI
from tests.servers.telegram import BotApi, Person

CONFIG = """\
[model]
name = "openai/scripted"
api_base = "{desk}"
api_key = "none-of-ours"

[model.actor]
api_base = "{worker}"

[store]
path = "frontdesk.db"

[mediums.telegram]
token = "{token}"
api_base = "{telegram}"

[mediums.web]
listen = "127.0.0.1:0"

[sandbox]
allow_unisolated = true
"""
CONTACT = """
[[contacts]]
name = "{name}"
role = "{role}"
addresses = ["telegram:{id}"]
"""


class Process:
    """A program under measurement. `ready_seconds` is from its start to its first poll at Telegram."""

    def __init__(self, command: list[str], telegram: BotApi, log: Path) -> None:
        self._command, self._telegram, self._log = command, telegram, log
        self.ready_seconds = 0.0
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        polls = len(self._telegram.called("getUpdates"))
        began = time.monotonic()
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        await self._telegram.until(lambda: len(self._telegram.called("getUpdates")) > polls, 30.0, self._log.read_text)
        self.ready_seconds = self._telegram.called("getUpdates")[polls].at - began

    async def stop(self) -> float:
        """Seconds that it took."""
        began = time.monotonic()
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        await self._process.wait()
        return time.monotonic() - began

    @property
    def pid(self) -> int:
        return self._process.pid

    def helpers(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(one) for one in children if b"gateway.llm.helper" in Path(f"/proc/{one}/cmdline").read_bytes()]


def gateway(
    folder: Path, telegram: BotApi, desk: ScriptedOpenAI, worker: ScriptedOpenAI, people: list[Person]
) -> Process:
    config = folder / "config.toml"
    text = CONFIG.format(desk=desk.base_url, worker=worker.base_url, token=telegram.token, telegram=telegram.base_url)
    for n, person in enumerate(people):
        text += CONTACT.format(name=person.name, id=person.id, role="member" if n else "owner")
    config.write_text(text)
    command = [sys.executable, "-m", "frontdesk", "run", "--config", str(config)]
    return Process(command, telegram, folder / "gateway.log")


def floor(folder: Path, telegram: BotApi, model: ScriptedOpenAI) -> Process:
    bot = f"{telegram.base_url}/bot{telegram.token}"
    command = [sys.executable, "-m", "bench.floor", bot, model.base_url, str(folder / "floor.db")]
    return Process(command, telegram, folder / "floor.log")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Of all their threads so far: https://docs.kernel.org/scheduler/sched-stats.html"""
    nanoseconds = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def memory_mb(pids: Iterable[int]) -> float:
    """Resident."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
