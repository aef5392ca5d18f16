"""The demo from the outside: a folder, a gateway process in it, a conversation in this terminal and on the page.

In the middle, once a question is open, the gateway is killed with -9 and started again: the question is still open.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from frontdesk.demo import outbox
from frontdesk.demo.find_model import Found, find
from frontdesk.demo.stage import DemoFailed, Options, Stage
from frontdesk.models import REHEARSAL
from mediums.local import wire
from mediums.local.client import LocalClient
from mediums.local.plain import Ledger, Message, PlainResult, lines_of, run_plain

STEPS = (
    "total February by region",
    "how far are you?",
    "net, not gross",
    "great, now do March",
    "send it to Sarah",
    "Lind",
    "thanks",
)


async def run(options: Options) -> int:
    """The exit code: 0 when every message had its outcome, once. Raises DemoFailed."""
    folder = Path(tempfile.mkdtemp(prefix="frontdesk-demo-"))
    try:
        return await _run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(options: Options, folder: Path) -> int:
    found = await find(options.model, os.environ)
    out = sys.stdout
    _print(out, _first_line(found))
    stage = Stage(folder, options, found)
    try:
        await stage.start()
        _print(out, f"The same conversation in the browser: {stage.url}/?token={stage.token}")
        async with LocalClient(stage.url, stage.token) as client, LocalClient(stage.url, stage.token) as observer:
            result = await _played(client, Tour(stage, out), observer, options.plain)
    finally:
        await stage.stop()
    for letter in outbox.letters(folder / outbox.NAME):
        _print(out, f"In the demo's outbox: a mail to {letter['to']}, “{letter['subject']}”.")
    _print(out, figures(result))
    return 0 if result.ok else 1


async def _played(client: LocalClient, tour: "Tour", observer: LocalClient, plain: bool) -> PlainResult:
    try:
        async with asyncio.TaskGroup() as beside:
            watching = [beside.create_task(tour.watch(observer)), beside.create_task(tour.stage.ended_by_itself())]
            result = await (run_plain(client, lines_of(sys.stdin), sys.stdout) if plain else _converse(client, tour))
            for task in watching:
                task.cancel()
    except* DemoFailed as failed:
        raise failed.exceptions[0] from None
    return result


async def _converse(client: LocalClient, tour: "Tour") -> PlainResult:
    from mediums.local.terminal import run_terminal

    _print(sys.stdout, "Type anything; Enter on an empty line sends the suggestion. /code, /trace, /actions, /quit.\n")
    await run_terminal(client, suggest=tour.suggestion)
    return tour.ledger.result()


class Tour:
    """Watches the conversation from beside it: what to suggest next, when to kill, and what became of everything."""

    def __init__(self, stage: Stage, out: TextIO) -> None:
        self.ledger = Ledger()
        self.stage = stage
        self._out = out
        self._said: list[str] = []
        self._killed = False

    def suggestion(self) -> str:
        said = {text.strip().lower() for text in self._said}
        return next((step for step in STEPS if step.lower() not in said), "/quit")

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
                    await self.stage.kill_and_start()
                case _:
                    pass


def figures(result: PlainResult) -> str:
    return (
        f"{result.messages} messages, {result.answered} answered, {result.left_alone} left alone, "
        f"{result.lost} lost, {result.doubled} doubled"
    )


def _first_line(found: Found) -> str:
    if found.name == REHEARSAL:
        return (
            "This is the rehearsal model: rules, not a language model "
            f"({found.why}). The gateway, the workers and their Python are real."
        )
    where = f" at {found.api_base}" if found.api_base else ""
    return f"The model is {found.name}{where} ({found.why})."


def _print(out: TextIO, text: str) -> None:
    print(text, file=out, flush=True)
