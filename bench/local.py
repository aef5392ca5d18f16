"""python -m bench.local: `frontdesk eval` with a small real model, and whole conversations with a real task.

In a conversation nothing is scripted but what the person writes: the model starts the work, writes the Python, which
runs in a sandbox, is corrected in the middle, and answers.
"""

import argparse
import asyncio
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from bench import small_model
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
START_SECONDS, WORK_SECONDS, MIDDLE_SECONDS = 30.0, 420.0, 300.0


class Conversation:
    """What the person sees of it."""

    def __init__(self, client: LocalClient) -> None:
        self.client = client
        self.said: list[str] = []
        self.phases: list[str] = []
        self.works = asyncio.Event()
        self.news = asyncio.Event()

    async def watch(self) -> None:
        async for event in self.client:
            if isinstance(event, wire.Post) and event.author == "assistant":
                self.said.append(event.text)
                print(f"    {event.text[:200]!r}", file=sys.stderr, flush=True)
            if isinstance(event, wire.Actions) and event.actions:
                self.works.set()
                self.phases.append(event.actions[0].phase)
            self.news.set()

    async def answered(self, wanted: str) -> bool:
        """Whether the number is in something that was said, however it is written."""
        while not any(wanted in re.sub(r"[\s,._]", "", text) for text in self.said):
            self.news.clear()
            await self.news.wait()
        return True


async def conversation(base: str, upto: int) -> bool:
    """The sum of squares up to a number, corrected to the even ones alone while it is being computed."""
    wanted = str(sum(n * n for n in range(2, upto + 1, 2)))
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
                return await _talk(Conversation(client), upto, wanted)
        finally:
            if gateway.returncode is None:
                gateway.send_signal(signal.SIGTERM)
                await gateway.wait()
            else:
                print((Path(folder) / "log").read_text()[-2000:], file=sys.stderr)


async def _talk(talk: Conversation, upto: int, wanted: str) -> bool:
    watching = asyncio.create_task(talk.watch())
    try:
        talk.client.say(f"Please compute the sum of the squares of the numbers from 1 to {upto} with Python.")
        async with asyncio.timeout(MIDDLE_SECONDS):
            await talk.works.wait()
        talk.client.say("Sorry, only the even numbers.")
        async with asyncio.timeout(WORK_SECONDS):
            return await talk.answered(wanted)
    except TimeoutError:
        return False
    finally:
        watching.cancel()


async def evaluated(base: str, options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(CONFIG.format(base=base, port=0, token="none"))
        command = [sys.executable, "-m", "frontdesk", "eval", "--config", str(config), *options]
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait():
            raise SystemExit("The eval got no answer to some scenarios.")


async def run(conversations: int, scenarios: bool, options: list[str]) -> None:
    async with small_model.served() as base:
        if scenarios:
            await evaluated(base, options)
        well = 0
        for number in range(conversations):
            began = time.monotonic()
            good = await conversation(base, 100 + 20 * number)
            well += good
            print(
                f"conversation {number + 1}: {'right' if good else 'WRONG'}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
        if conversations:
            print(f"{well} of {conversations} conversations came to the right answer")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.local", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=1)
    parser.add_argument("--no-scenarios", action="store_true")
    known, options = parser.parse_known_args()
    asyncio.run(run(known.conversations, not known.no_scenarios, options))


if __name__ == "__main__":
    main()
