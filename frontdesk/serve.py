"""One gateway process from its settings to its end: the log, the token, the models, the signals that stop it."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from actors.workshop import Primitive
from frontdesk import store
from frontdesk.app import App, Parts
from frontdesk.isolation import Choice, choose
from frontdesk.models import REHEARSAL, Models
from frontdesk.store import ROLES
from gateway import logs
from gateway.broker.protocol import BrokerUnusable
from gateway.broker.sqlite_file import unwritable
from gateway.hiding import hide_memory
from gateway.holding import CannotServe
from gateway.settings import Settings, all_secrets


class CannotStart(Exception):
    """What is missing or in the way, with the mend; nothing runs."""


def local_token(settings: Settings) -> str:
    """Of the settings, or made once and kept beside the store, for its owner's eyes only. Raises CannotStart."""
    if settings.mediums.web is not None and settings.mediums.web.token is not None:
        return settings.mediums.web.token.reveal()
    path = Path(f"{settings.store.path}.token")
    with contextlib.suppress(FileNotFoundError):
        if there := path.read_text().strip():
            return there
    token, whole = secrets.token_urlsafe(24), Path(f"{path}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)
        whole.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            whole.unlink()
        raise CannotStart(unwritable(path, error)) from error
    return token


async def serve(
    settings: Settings,
    *,
    primitives: Callable[[Settings], Sequence[Primitive]] = lambda settings: (),
    pace_seconds: float = 1.0,
    roles: Collection[str] = ROLES,
    verbose: bool = False,
) -> None:
    """Until SIGTERM or SIGINT, then ends cleanly. Raises CannotStart."""
    try:
        store.check(settings, roles)
    except BrokerUnusable as error:
        raise CannotStart(str(error)) from error
    if settings.model.name is None or settings.actor_model.name is None:
        raise CannotStart('no model is set: write [model] name = "openai/…" (or "rehearsal") in config.toml.')
    hide_memory()
    token = local_token(settings) if "mediums" in roles else ""
    scrub = logs.Scrubber([*all_secrets(settings), *([token] if token else [])])
    logs.setup(scrub, verbose=verbose)
    models = Models(settings, logs.operator, pace_seconds=pace_seconds, roles=roles)
    choice = await choose(settings.sandbox)
    app = App(
        settings,
        Parts(
            brain_model=models.brain,
            actor_model=models.actors,
            operator=logs.operator,
            primitives=primitives(settings),
            banner=signs(settings, choice),
            token=token,
            started=models.start,
            opened=_say_opened,
        ),
        roles,
    )
    for line in banner(settings, choice):
        print(line, file=sys.stderr)  # noqa: T201 - before anything else, for whoever starts it
    try:
        await _until_stopped(app)
    finally:
        await models.close()


async def _until_stopped(app: App) -> None:
    running = asyncio.create_task(app.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return
    except (BrokerUnusable, CannotServe) as error:
        raise CannotStart(str(error)) from error


def banner(settings: Settings, choice: Choice) -> list[str]:
    return [f"{settings.assistant.name}: {model_line(settings)}", *choice.careful]


def signs(settings: Settings, choice: Choice) -> list[str]:
    """The same in a few words, for the head of the page."""
    rules = ["rehearsal model: rules, not a language model"] if settings.model.name == REHEARSAL else []
    return rules + choice.signs


def model_line(settings: Settings) -> str:
    if settings.model.name == REHEARSAL:
        return "the rehearsal model answers: rules, not a language model."
    where = f" at {settings.model.api_base}" if settings.model.api_base else ""
    return f"{settings.model.name}{where} answers."


def _say_opened(url: str) -> None:
    print(f"Open {url}", file=sys.stderr, flush=True)  # noqa: T201 - the one place that shows the token, to its owner
