"""python -m bench.local: `frontdesk eval` with a small real model, and whole conversations with a real task.

In a conversation nothing is scripted but what the person writes: the model starts the work, writes the Python, which
runs in a sandbox, is corrected in the middle, and answers.
"""

import argparse
import asyncio
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import small_model
from bench.local_tasks import TASKS, Task
from gateway.live import ActionShown
from mediums.local import wire
from mediums.local.client import LocalClient

CONFIG = """\
[model]
name = "openai/small"
api_base = "{base}"
api_key = "none"
temperature = 0
tool_calls = "schema"

[store]
path = "frontdesk.db"

[mediums.web]
listen = "127.0.0.1:{port}"
token = "{token}"

[sandbox]
allow_unisolated = true
"""
WORK_SECONDS, MIDDLE_SECONDS = 240.0, 300.0
STARTING = "starting"  # what work does until its model has said something


class Conversation:
    """What the person sees of it."""

    def __init__(self, client: LocalClient) -> None:
        self.client = client
        self.said: list[str] = []
        self.works = asyncio.Event()
        self.news = asyncio.Event()

    async def watch(self) -> None:
        async for event in self.client:
            if isinstance(event, wire.Post) and event.author == "assistant":
                self.said.append(event.text)
                print(f"    {event.text[:200]!r}", file=sys.stderr, flush=True)
            if isinstance(event, wire.Actions) and any(map(_is_at_work, event.actions)):
                self.works.set()
            self.news.set()

    async def answered(self, task: Task) -> bool:
        while not any(task.is_answered(text) for text in self.said):
            self.news.clear()
            await self.news.wait()
        return True


def _is_at_work(action: ActionShown) -> bool:
    return action.phase != "running" or action.doing not in ("", STARTING)


async def conversation(base: str, task: Task) -> bool:
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port, token = probe.getsockname()[1], secrets.token_urlsafe(16)
        probe.close()
        config = Path(folder) / "config.toml"
        config.write_text(CONFIG.format(base=base, port=port, token=token))
        command = [sys.executable, "-m", "frontdesk", "run", "--config", str(config)]
        with (Path(folder) / "log").open("wb") as log:
            gateway = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        try:
            async with LocalClient(f"http://127.0.0.1:{port}", token) as client:
                return await _talk(Conversation(client), task)
        finally:
            if gateway.returncode is None:
                gateway.send_signal(signal.SIGTERM)
                await gateway.wait()
            else:
                print((Path(folder) / "log").read_text()[-2000:], file=sys.stderr)


async def _talk(talk: Conversation, task: Task) -> bool:
    """The correction is said as soon as the work shows what it does, which is its first code."""
    watching = asyncio.create_task(talk.watch())
    try:
        async with asyncio.timeout(MIDDLE_SECONDS):
            talk.client.say(task.asked, [await _handed_over(talk, *task.file)] if task.file else [])
            await talk.works.wait()
        talk.client.say(task.corrected)
        async with asyncio.timeout(WORK_SECONDS):
            return await talk.answered(task)
    except TimeoutError:
        return False
    finally:
        watching.cancel()


async def _handed_over(talk: Conversation, name: str, text: str) -> wire.Upload:
    while not talk.client.connected:
        await talk.news.wait()
        talk.news.clear()
    return await talk.client.upload(name, "text/plain", text.encode())


async def evaluated(base: str, options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(CONFIG.format(base=base, port=0, token="none"))
        command = [sys.executable, "-m", "frontdesk", "eval", "--config", str(config), *options]
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait():
            raise SystemExit("The eval got no answer to some scenarios.")


async def run(tasks: Sequence[Task], scenarios: bool, options: list[str]) -> None:
    async with small_model.served() as base:
        if scenarios:
            await evaluated(base, options)
        well = 0
        for task in tasks:
            began = time.monotonic()
            good = await conversation(base, task)
            well += good
            print(f"{task.name}: {'right' if good else 'WRONG'}, {time.monotonic() - began:.0f} s", flush=True)
        if tasks:
            print(f"{well} of {len(tasks)} conversations came to the right answer")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.local", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=1, help=f"of the {len(TASKS)} tasks")
    parser.add_argument("--task", choices=[task.name for task in TASKS], help="this one alone")
    parser.add_argument("--no-scenarios", action="store_true")
    known, options = parser.parse_known_args()
    tasks = [task for task in TASKS if known.task in (None, task.name)][: known.conversations]
    asyncio.run(run(tasks, not known.no_scenarios, options))


if __name__ == "__main__":
    main()
