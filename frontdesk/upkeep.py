"""What the operator does with the store: search, rebuild the views, back it up. Each for itself, none in a gateway."""

import asyncio
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from actors.accounts import ActionRows
from brain import history
from brain.history import Found, LaneRows
from frontdesk.store import is_shared, machine_of, open_broker
from gateway import views
from gateway.broker import sqlite_file
from gateway.broker.blobs import blobs_of
from gateway.broker.protocol import Broker, BrokerUnusable, Stored
from gateway.clock import utc_now
from gateway.fed import Machines
from gateway.holding import Guard, while_held
from gateway.keeping import Keeper
from gateway.settings import Settings
from gateway.views import ViewsFile

KEEPER_SECONDS = 2.0  # of its lease
# In the order in which they are copied, so that what was said before the first copy is kept: a fact acknowledged there
# is in the journals, copied later; and these are never ahead of the commands whose places they note, or of their blobs.
STREAMS = ("frontdesk-evt", "frontdesk-log", "frontdesk-cmd", "OBJ_frontdesk-blobs")


def views_file(store: Path) -> ViewsFile:
    """As the gateway keeps it."""
    return ViewsFile(views.path_of(store), [LaneRows(), ActionRows()])


def keeper_key(settings: Settings) -> str:
    """Of its lease: each file of views has one."""
    return f"keeper-{machine_of(settings.store.path)}"


def keeper(broker: Broker, settings: Settings) -> Keeper:
    store = settings.store.path
    others = Machines(broker, machine_of(store), utc_now) if is_shared(settings) else None
    return Keeper(broker, views_file(store), others=others)


def lines_of(found: Sequence[Found]) -> Iterator[str]:
    for one in found:
        who = f"{one.name} ({one.who})" if one.who else "the assistant"
        outcome = "" if one.outcome in ("received", "sent") else f", {one.outcome or 'outcome no longer known'}"
        at = one.at.strftime("%Y-%m-%d %H:%M")
        yield f"{at} UTC  {one.medium} {one.place}  {who}{outcome}  [{one.conversation}]"
        yield f"    {' '.join(one.text.split())[:300]}"


def search(store: Path, words: str, limit: int) -> list[str]:
    """Raises ViewsFailed."""
    return [*lines_of(history.searched(store, words, limit))]


async def rebuild(settings: Settings) -> int:
    """The views anew; the number of entries read. Raises BrokerUnusable (a gateway keeps them), ViewsFailed,
    Unconfirmed, Deposed."""
    broker = await open_broker(settings)
    number = 0

    async def work(_: Guard) -> None:
        nonlocal number
        number = await rebuild_with(broker, views_file(settings.store.path))

    try:
        key = keeper_key(settings)
        lease = await broker.lease(key, uuid.uuid4().hex, KEEPER_SECONDS)
        if lease is None:
            raise BrokerUnusable(f"{settings.store.path}: a gateway on this machine keeps its views: stop it first.")
        await while_held(lease, KEEPER_SECONDS, work)
        return number
    except ExceptionGroup as failed:  # the lease is renewed beside the work
        raise failed.exceptions[0] from failed
    finally:
        await broker.close()


async def rebuild_with(broker: Broker, file: ViewsFile) -> int:
    """Reads one journal after the other: none but the longest has to fit in memory."""
    loop = asyncio.get_running_loop()
    names = await broker.subjects("log.>")

    def journals() -> Iterator[Sequence[Stored]]:
        for name in names:
            entries = asyncio.run_coroutine_threadsafe(broker.read(name), loop).result()
            if entries:
                yield entries

    try:
        return await asyncio.to_thread(file.rebuild, journals())
    finally:
        await asyncio.to_thread(file.close)


def backup(settings: Settings, target: Path) -> str:
    """What was written, and what is left to do. Raises BrokerUnusable, OSError."""
    store = settings.store.path
    if is_shared(settings):
        return _backup_of_streams(settings.broker.url, target, _views(store, target))
    written = ", ".join(map(str, _backup_file(store, target)))
    return f"Written and checked: {written}. To restore, see docs/store.md."


def _backup_file(store: Path, target: Path) -> list[Path]:
    """Of both files and the blobs, also while a gateway runs; what was written. Raises StoreUnusable, OSError.

    The blobs come last: one that an entry speaks of was there before it.
    """
    copied, views_copied = blobs_of(target), views.path_of(target)
    for one in (target, copied, views_copied):
        if one.exists():
            raise sqlite_file.StoreUnusable(f"{one} is there already: a backup goes into a new file.")
    try:
        return _copied(store, target)
    except BaseException as error:  # half of one could be taken for a whole one
        for one in (target, views_copied):
            one.unlink(missing_ok=True)
        shutil.rmtree(copied, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        why = f"{error.filename or target}: {error.strerror or error}"
        raise sqlite_file.StoreUnusable(f"{why}. Name a FILE in a folder that can be written and has room.") from error


def _copied(store: Path, target: Path) -> list[Path]:
    blobs, copied = blobs_of(store), blobs_of(target)
    sqlite_file.copy(store, target)
    if not blobs.is_dir():
        return [target, *_views(store, target)]
    shutil.copytree(blobs, copied, ignore=shutil.ignore_patterns("tmp*"))
    return [target, copied, *_views(store, target)]


def _views(store: Path, target: Path) -> list[Path]:
    if not views.path_of(store).exists():
        return []
    sqlite_file.copy(views.path_of(store), views.path_of(target))
    return [views.path_of(target)]


def _backup_of_streams(url: str, target: Path, written: list[Path]) -> str:
    """What the operator does with NATS's own tool, which copies a stream as of one moment while it is in use."""
    backups = [f"  nats --server {url} stream backup {name} {target}.{name}" for name in STREAMS]
    restores = [f"  nats --server {url} stream restore {target}.{name}" for name in STREAMS]
    views_too = f"The views of this machine are copied: {written[0]}. " if written else ""
    return "\n".join(
        [
            f"{views_too}The rest is still to do: the journals and blobs are NATS's,",
            "copy them with its tool (https://github.com/nats-io/natscli), also while everything runs, in this order,",
            "with the server's token in NATS_USER where it asks for one:",
            *backups,
            "To restore: stop all processes, remove those streams (nats stream rm), then",
            *restores,
            f"put the copy of the views back at {views.path_of(Path('[store] path'))}, and start.",
        ]
    )
