"""The erasure of what one person said, for good: from the journals, the views, the room and the workspaces.

This is the one exception to append-only, and it is made only while no gateway runs: no fold may remember what is gone.
Everything is worked out and read back as what it must be before the first byte is changed. It can be cut off and done
again: what is erased already is found again by its identity.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from actors.entries import ActionEntry
from actors.frozen import ActionFrozen
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from brain.entries import LaneEntry
from brain.parts import LaneFrozen
from frontdesk.tombstones import NAME, TOMBSTONE, Erased, authors, digests
from frontdesk.upkeep import rebuild_with, views_file
from gateway import views
from gateway.addresses import Address
from gateway.broker.blobs import BlobFolder, blobs_of
from gateway.broker.protocol import Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import shrink
from gateway.events import ActionCommand, Fact, OutboxCommand
from gateway.journal import unstamped
from gateway.keeping import snapshot_part
from gateway.notes import NoteAdded, NoteErased, notes_subject
from gateway.outbox_state import Entry as OutboxEntry
from gateway.outbox_state import OutboxFrozen
from gateway.people import ChangePeople
from gateway.record import Record, decode, encode
from gateway.seen import erased
from gateway.snapshots import Gathering, Snapshot, cut
from mediums.local.room import Entry as RoomEntry
from mediums.local.room import RoomFrozen

ENTRIES: dict[str, Any] = {
    "log.lane.": LaneEntry | Snapshot,
    "log.act.": ActionEntry | Snapshot,
    "log.out.": OutboxEntry | Snapshot,
    "log.room.": RoomEntry | Snapshot,
}
FROZEN: dict[str, Any] = {
    "log.lane.": LaneFrozen,
    "log.act.": ActionFrozen,
    "log.out.": OutboxFrozen,
    "log.room.": RoomFrozen,
}
WORDS: dict[str, Any] = {
    notes_subject(""): NoteAdded | NoteErased,
    "evt.": Fact | ChangePeople,
    "cmd.out.": OutboxCommand,
    "cmd.act.": ActionCommand,
}


class Report(Record, frozen=True, kw_only=True):
    messages: int
    entries: int
    workspaces: int


async def erase(store: Path, address: Address, person: str = "") -> Report:
    """`person` is the key of who has that address: their notes go, from whichever address they came.

    Raises StoreUnusable (a gateway is running), ViewsFailed, Undecodable (nothing was changed).
    """
    broker = SqliteBroker(store)
    try:
        journals = {
            name: await broker.read(name)
            for pattern in ("log.>", "evt.>", "cmd.>")
            for name in await broker.subjects(pattern)
        }
        known = _known(store, address, journals)
        known.notes = notes_subject(person) if person else ""
        changed = [pair for name, entries in journals.items() for pair in _rewritten(known, name, entries)]
        for old, new in changed:
            _check(old.subject, new)
        for old, new in changed:
            await broker.rewrite(old.subject, old.sequence, new)
        if views.path_of(store).exists():
            await asyncio.to_thread(_erase_rows, views.path_of(store), known)
        await rebuild_with(broker, views_file(store))
        workspaces = await _erase_workspaces(store, known)
        await asyncio.to_thread(BlobFolder(blobs_of(store)).keep, await _files_named(broker))
    finally:
        await broker.close()
    for path in (store, views.path_of(store)):
        await asyncio.to_thread(shrink, path)
    return Report(messages=len(known.identities), entries=len(changed), workspaces=workspaces)


# --- what is theirs --------------------------------------------------------------------------------------------------


def _known(store: Path, address: Address, journals: dict[str, list[Stored]]) -> Erased:
    known = Erased(user=(address.medium, address.user))
    trees = {name: [tree for _, tree in _trees(entries)] for name, entries in journals.items()}
    rows, known.identities = _rows(views.path_of(store), address)
    for name, found in trees.items():
        conversation = name.removeprefix("log.lane.")
        if conversation.startswith("p-") and conversation != name:
            said = authors(found) | {who for where, who in rows if where == conversation}
            if said == {known.user}:
                known.conversations.add(conversation)
    before = -1
    while known.size > before:  # what hangs on what was just found
        before = known.size
        for name, found in trees.items():
            known.collect(found, name.removeprefix("log.lane.") if name.startswith("log.lane.") else "")
    return known


def _rows(path: Path, address: Address) -> tuple[set[tuple[str, tuple[str, str]]], set[str]]:
    """What the views still know: conversation and author of messages, and the ids of this person's."""
    if not path.exists():
        return set(), set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found = db.execute("select distinct conversation, who from messages where who != ''").fetchall()
        ids = db.execute("select id from messages where who = ?", (str(address),)).fetchall()
    split = [(conversation, who.partition(":")) for conversation, who in found]
    return {(conversation, (medium, user)) for conversation, (medium, _, user) in split}, {row_id for (row_id,) in ids}


def _trees(entries: list[Stored]) -> Iterator[tuple[list[Stored], Any]]:
    """What is stored, as JSON, with the entries that hold it: one, or all parts of a snapshot."""
    gathering, parts = Gathering(), list[Stored]()
    for stored in entries:
        if (part := snapshot_part(stored)) is None:
            gathering.interrupt()
            tree = msgspec.json.decode(stored.data)
            yield [stored], tree[2] if _is_stamped(stored.subject) else tree
            continue
        parts = [stored] if part.part == 0 else [*parts, stored]
        if (whole := gathering.take(stored.sequence, part)) is not None:
            yield parts, msgspec.json.decode(whole)


# --- the journals ----------------------------------------------------------------------------------------------------


def _rewritten(known: Erased, subject: str, entries: list[Stored]) -> Iterator[tuple[Stored, bytes]]:
    conversation = subject.removeprefix("log.lane.") if subject.startswith("log.lane.") else ""
    whole = known.is_whole(subject)
    kept = set()
    for stored, tree in _trees(entries):
        kept |= {one.sequence for one in stored}
        new = known.blank(tree) if whole else known.written(tree, conversation)
        if new != tree:
            if snapshot_part(stored[0]) is not None:
                decode(encode(new), next(kind for prefix, kind in FROZEN.items() if subject.startswith(prefix)))
            yield from zip(stored, _packed(stored, new), strict=True)
    for torn in (one for one in entries if one.sequence not in kept):  # parts of a snapshot that never was one
        epoch, nonce, _ = msgspec.json.decode(torn.data)
        yield torn, encode((epoch, nonce, Snapshot(part=10**6, parts=10**6, data=b"")))


def _is_stamped(subject: str) -> bool:
    """Notes have many writers, and no epoch."""
    return subject.startswith("log.") and not subject.startswith(notes_subject(""))


def _packed(stored: list[Stored], tree: Any) -> list[bytes]:
    if not _is_stamped(stored[0].subject):
        return [encode(tree)]
    heads = [msgspec.json.decode(one.data)[:2] for one in stored]
    if snapshot_part(stored[0]) is None:
        return [encode([*heads[0], tree])]
    return [encode([*head, part]) for head, part in zip(heads, cut(encode(tree), len(stored)), strict=True)]


def _check(subject: str, data: bytes) -> None:
    """Raises Undecodable."""
    for prefix, union in ENTRIES.items():
        if subject.startswith(prefix):
            unstamped(Stored(subject=subject, sequence=0, data=data), union)
    for prefix, words in WORDS.items():
        if subject.startswith(prefix):
            decode(data, words)


# --- beside the journals ---------------------------------------------------------------------------------------------


def _erase_rows(path: Path, known: Erased) -> None:
    """Also those whose entries a snapshot has replaced; all others are made anew afterwards."""
    who = ":".join(known.user)
    with closing(sqlite3.connect(path)) as db, db:
        for number, row_id, author, conversation, covers in db.execute(
            "select number, id, who, conversation, covers from messages"
        ).fetchall():
            theirs = author == who or conversation in known.conversations
            answers = known.identities & {*covers.split("\n")}
            if not (theirs or answers or row_id in known.identities):
                continue
            db.execute(
                "update messages set id = ?, text = ?, name = ?, covers = ? where number = ?",
                (erased(row_id) if author else row_id, TOMBSTONE, NAME if author else "", "", number),
            )
        db.execute(
            "update actions set name = ?, query = ?, result = ? where who = ?", (NAME, TOMBSTONE, TOMBSTONE, who)
        )
        db.execute("insert into messages_fts(messages_fts) values ('rebuild')")


async def _files_named(broker: SqliteBroker) -> set[str]:
    """The digests of all that is still named."""
    names = [name for pattern in ("log.>", "evt.>", "cmd.>") for name in await broker.subjects(pattern)]
    return {one for name in names for _, tree in _trees(await broker.read(name)) for one in digests(tree)}


def _workspaces(store: Path, known: Erased) -> list[Path]:
    folder = store.resolve().parent / f"{store.name}.actions"
    return [one for one in folder.iterdir() if known.has_action(one.name)] if folder.is_dir() else []


async def _erase_workspaces(store: Path, known: Erased) -> int:
    """Files and processes of the actions that they asked for."""
    theirs = await asyncio.to_thread(_workspaces, store, known)
    for one in theirs:
        await Sandbox(one, lambda _: None, Bare()).kill()
        await asyncio.to_thread(shutil.rmtree, one)
    return len(theirs)
