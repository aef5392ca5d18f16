"""`frontdesk doctor`: tries each part for real, and says of each what is well or what mends it. Changes nothing."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import click

from actors.sandbox.folder import Folder
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation import cgroups
from actors.sandbox.words import CellDone, Happening
from frontdesk import packages, store
from frontdesk.isolation import choose
from frontdesk.legible import unreadable
from frontdesk.models import REHEARSAL, Models
from frontdesk.talk import look_up
from gateway.broker.protocol import Broker, BrokerUnusable, Unconfirmed
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import StoreUnusable
from gateway.llm.model import Model, ModelError, Request
from gateway.record import Record
from gateway.settings import EmailSettings, Settings
from mediums.visible import printable

IMPORTS = """
import importlib
def fails(name):
    try: importlib.import_module(name)
    except ImportError: return True
[name for name in {!r} if fails(name)]
"""
MODEL_SECONDS, SANDBOX_SECONDS, CONNECT_SECONDS = 60.0, 60.0, 10.0


class Finding(Record, frozen=True, kw_only=True):
    part: str
    well: bool
    text: str


async def check(settings: Settings, roles: Collection[str] = store.ROLES) -> int:
    """Prints a line for each part that these roles need; the exit code is 0 when all is well."""
    bad = 0
    async for finding in _findings(settings, roles):
        bad += not finding.well
        click.echo(printable(f"{'ok  ' if finding.well else 'MEND'}  {finding.part}: {finding.text}"))
    return 1 if bad else 0


async def _findings(settings: Settings, roles: Collection[str]) -> AsyncIterator[Finding]:
    yield await _store(settings)
    if {"brain", "actors"} & {*roles}:
        async for finding in _models(settings):
            yield finding
    if "actors" in roles:
        yield await _sandbox(settings)
    if "mediums" in roles:
        async for finding in _mediums(settings):
            yield finding


async def _mediums(settings: Settings) -> AsyncIterator[Finding]:
    if settings.mediums.web is not None:
        yield await _web(settings)
    if settings.mediums.telegram is not None:
        yield await _telegram(settings)
    if settings.mediums.slack is not None:
        yield await _slack(settings)
    if settings.mediums.email is not None:
        async for finding in _email(settings.mediums.email):
            yield finding


async def _store(settings: Settings) -> Finding:
    if store.is_shared(settings):
        return await _shared(settings)
    try:
        broker = SqliteBroker(settings.store.path)
    except StoreUnusable as error:
        running = "is in use by process" in str(error)
        looked = "with it stopped, each journal is tried"
        text = f"a gateway is running on {settings.store.path}; {looked}" if running else str(error)
        return Finding(part="store", well=running, text=text)
    return await _journals(broker, Finding(part="store", well=True, text=f"{settings.store.path} can be written"))


async def _shared(settings: Settings) -> Finding:
    try:
        store.check(settings, store.ROLES)
        broker = await store.open_broker(settings)
    except BrokerUnusable as error:
        return Finding(part="broker", well=False, text=str(error))
    text = f"{settings.broker.url} answers, and its streams are set up right"
    return await _journals(broker, Finding(part="broker", well=True, text=text))


async def _journals(broker: Broker, well: Finding) -> Finding:
    """Closes the broker."""
    try:
        parked = await unreadable(broker)
    except Unconfirmed as error:
        return Finding(part=well.part, well=False, text=f"the journals could not be read: {error}")
    finally:
        await broker.close()
    if not parked:
        return well
    text = (
        f"left alone, because they cannot be read: {'; '.join(parked)}. Start the version that wrote them, or restore "
    )
    return Finding(part=well.part, well=False, text=f"{text}a backup.")


async def _models(settings: Settings) -> AsyncIterator[Finding]:
    if settings.model.name is None or settings.actor_model.name is None:
        yield Finding(part="model", well=False, text='none is set: write [model] name = "openai/…" in config.toml')
        return
    notices: list[str] = []
    models = Models(settings, notices.append)
    models.start()
    try:
        yield await _answers("model", models.brain)
        if settings.actor_model != settings.model:
            yield await _answers("model.actor", models.actors)
    finally:
        await models.close()
    for text in notices:
        yield Finding(part="model", well=False, text=text)


async def _answers(part: str, model: Model) -> Finding:
    if model.name.startswith(REHEARSAL):
        return Finding(part=part, well=True, text="the rehearsal model (rules, not a language model)")
    request = Request(messages=[{"role": "user", "content": "Answer with the one word: yes"}], max_tokens=200)
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            generation = await model.generate(request)
    except ModelError as error:
        return Finding(part=part, well=False, text=error.for_operator)
    except TimeoutError:
        return Finding(part=part, well=False, text=f"{model.name} gave no answer in {MODEL_SECONDS:.0f} s")
    return Finding(part=part, well=True, text=f"{generation.model or model.name} answers")


async def _sandbox(settings: Settings) -> Finding:
    choice = await choose(settings.sandbox)
    environment = packages.curated(settings, choice)
    if choice.refused:
        return Finding(part="sandbox", well=False, text=f"code of actors does not run: {choice.missing}")
    done: asyncio.Future[Happening] = asyncio.get_running_loop().create_future()
    with tempfile.TemporaryDirectory(prefix="frontdesk-doctor-") as folder:
        box = Sandbox(Path(folder), done.set_result, packages.furnished(settings, choice))
        try:
            await box.execute("cell1", IMPORTS.format(environment.modules()), stateful=False)
            async with asyncio.timeout(SANDBOX_SECONDS):
                happening = await done
        except TimeoutError:
            return Finding(part="sandbox", well=False, text="Python did not run in time: see [sandbox] python")
        finally:
            launched = choice.isolation.launch(Folder(Path(folder)))
            together = cgroups.hold(launched.cgroups)
            await box.kill()
            await box.close()
    if not isinstance(happening, CellDone) or happening.status != "ok":
        return Finding(part="sandbox", well=False, text=f"Python does not run: {happening}")
    if happening.value != "[]":
        text = f"it cannot import {happening.value}: run `frontdesk packages --again`"
        return Finding(part="sandbox", well=False, text=text)
    how = "isolated" if choice.missing is None else f"without isolation (allow_unisolated): {choice.missing}"
    bounds = (
        "" if together or not launched.namespaced else f"; memory is bounded for each program alone: {cgroups.mend()}"
    )
    there = packages.described(environment.path) or "nothing, until you run `frontdesk packages`"
    return Finding(part="sandbox", well=True, text=f"Python runs, {how}; beside its own it can import {there}{bounds}")


async def _web(settings: Settings) -> Finding:
    web = settings.mediums.web
    assert web is not None
    family = socket.AF_INET6 if ":" in web.listen.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((web.listen.host, web.listen.port))
        except OSError as error:
            _, ours = await look_up(settings, "people", "")
            if ours:
                return Finding(part="web", well=True, text=f"the gateway that runs is at {web.listen}")
            text = f"{web.listen} cannot be used ({error.strerror}): end what has it, or change mediums.web.listen"
            return Finding(part="web", well=False, text=text)
    return Finding(part="web", well=True, text=f"{web.listen} is free")


async def _telegram(settings: Settings) -> Finding:
    from telegram import Bot
    from telegram.error import InvalidToken, TelegramError

    telegram = settings.mediums.telegram
    assert telegram is not None
    base = str(telegram.api_base)
    bot = Bot(telegram.token.reveal(), base_url=f"{base}/bot", base_file_url=f"{base}/file/bot")
    try:
        me = await bot.get_me(connect_timeout=CONNECT_SECONDS, read_timeout=CONNECT_SECONDS)
    except InvalidToken:
        return Finding(part="telegram", well=False, text="Telegram refused the token: set mediums.telegram.token")
    except TelegramError as error:
        text = str(error).replace(telegram.token.reveal(), "***")
        return Finding(part="telegram", well=False, text=f"{base} cannot be reached: {text}")
    finally:
        await bot.shutdown()
    return Finding(part="telegram", well=True, text=f"this is @{me.username}")


async def _slack(settings: Settings) -> Finding:
    from mediums.slack.checkup import look

    slack = settings.mediums.slack
    assert slack is not None
    app_token = slack.app_token.reveal() if slack.app_token and slack.signing_secret is None else None
    found = await look(slack.bot_token.reveal(), app_token, str(slack.api_base))
    return Finding(part="slack", well=found.well, text=found.text)


async def _email(email: EmailSettings) -> AsyncIterator[Finding]:
    from frontdesk.accounts import mail_account
    from mediums.email.trial import try_imap, try_smtp

    account = mail_account(email, "")
    imap, smtp = await try_imap(account, CONNECT_SECONDS), await try_smtp(account, CONNECT_SECONDS)
    yield Finding(part="email receiving", well=imap.well, text=imap.text)
    yield Finding(part="email sending", well=smtp.well, text=smtp.text)
