"""What the operator does with the store: search, rebuild the views, back it up. Each for itself, none in a gateway."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from actors.accounts import ActionRows
from brain import history
from brain.history import Found, LaneRows
from gateway import views
from gateway.broker import sqlite_file
from gateway.broker.blobs import blobs_of
from gateway.broker.protocol import Broker, Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.views import ViewsFile


def views_file(store: Path) -> ViewsFile:
    """As the gateway keeps it."""
    return ViewsFile(views.path_of(store), [LaneRows(), ActionRows()])


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


async def rebuild(store: Path) -> int:
    """The views anew; the number of entries read. Raises StoreUnusable (a gateway is running), ViewsFailed."""
    broker = SqliteBroker(store)
    try:
        return await rebuild_with(broker, views_file(store))
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


def backup(store: Path, target: Path) -> list[Path]:
    """Of both files and the blobs, also while a gateway runs; what was written. Raises StoreUnusable, OSError.

    The blobs come last: one that an entry speaks of was there before it.
    """
    blobs, copied = blobs_of(store), blobs_of(target)
    if copied.exists():
        raise sqlite_file.StoreUnusable(f"{copied} is there already: a backup goes into a new file.")
    sqlite_file.copy(store, target)
    written = [target]
    if blobs.is_dir():
        shutil.copytree(blobs, copied, ignore=shutil.ignore_patterns("tmp*"))
        written.append(copied)
    if views.path_of(store).exists():
        sqlite_file.copy(views.path_of(store), views.path_of(target))
        written.append(views.path_of(target))
    return written
