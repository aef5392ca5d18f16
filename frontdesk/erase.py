"""The erasure of what one person said, for good: from the journals, the views, the room, the blobs and the workspaces.

This is the one exception to append-only, and it is made only while nobody holds anything: no fold may remember what is
gone. Everything is worked out and read back as what it must be before the first byte is changed. It can be cut off and
done again: what is erased already is found again by its identity.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from brain.kept import SUBJECT as KEPT
from frontdesk.quotes import quotes_of
from frontdesk.rewriting import Changed, kind_of, rewrite
from frontdesk.store import workspaces
from frontdesk.tombstones import NAME, TOMBSTONE, Erased, authors, said_in
from frontdesk.upkeep import rebuild_with, views_file
from gateway import views
from gateway.addresses import Address
from gateway.broker.protocol import Broker, Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import shrink
from gateway.events import ActionCommand, Fact, OutboxCommand, PlaceMoved
from gateway.folding import snapshot_part, unstamped
from gateway.notes import NoteAdded, NoteErased, notes_subject
from gateway.people import ChangePeople
from gateway.record import Record, Undecodable, decode, encode
from gateway.seen import erased
from gateway.snapshots import Gathering, Snapshot, cut

WORDS: dict[str, Any] = {
    notes_subject(""): NoteAdded | NoteErased,
    "evt.": Fact | ChangePeople,
    KEPT: Fact | ChangePeople | PlaceMoved,
    "cmd.out.": OutboxCommand,
    "cmd.act.": ActionCommand,
}


class Report(Record, frozen=True, kw_only=True):
    messages: int
    entries: int
    workspaces: int
    blobs: int = 0


async def erase(store: Path, address: Address, person: str = "") -> Report:
    """Of a file that no gateway has. Raises StoreUnusable (one has it), ViewsFailed, Undecodable (nothing changed)."""
    broker = SqliteBroker(store)
    try:
        report = await erase_from(broker, store, address, person)
    finally:
        await broker.close()
    await asyncio.to_thread(shrink, store)
    return report


async def erase_from(broker: Broker, store: Path, address: Address, person: str = "") -> Report:
    """While nobody holds anything. `person` is the key of who has that address: their notes go, from whichever address
    they came. The views and workspaces are those beside `store`. Raises ViewsFailed, Undecodable (nothing was changed).
    """
    journals = {
        name: await broker.read(name)
        for pattern in ("log.>", "evt.>", "cmd.>")
        for name in await broker.subjects(pattern)
    }
    known = _known(store, address, journals)
    known.notes = notes_subject(person) if person else ""
    changes = [change for name, entries in journals.items() if (change := _changed(known, name, entries)).new]
    for change in changes:
        for data in change.new.values():
            _check(change.subject, data)
    await rewrite(broker, changes)
    if views.path_of(store).exists():
        await asyncio.to_thread(_erase_rows, views.path_of(store), known)
    await rebuild_with(broker, views_file(store))
    await asyncio.to_thread(shrink, views.path_of(store))
    return Report(
        messages=len(known.identities),
        entries=sum(len(change.new) for change in changes),
        workspaces=await _erase_workspaces(store, known),
        blobs=await _erase_blobs(broker, known),
    )


# --- what is theirs --------------------------------------------------------------------------------------------------


def _known(store: Path, address: Address, journals: dict[str, list[Stored]]) -> Erased:
    known = Erased(user=(address.medium, address.user))
    trees = {name: [tree for _, tree in _trees(entries)] for name, entries in journals.items()}
    rows, known.identities = _rows(views.path_of(store), address)
    for name, found in trees.items():
        conversation = name.removeprefix("log.lane.")
        if conversation == name:
            continue
        said = authors(found) | {who for where, who in rows if where == conversation}
        if known.user in said:
            known.places.add(conversation)
            if conversation.startswith("p-") and len(said) == 1:
                known.conversations.add(conversation)
    before = -1
    while known.size > before:  # what hangs on what was just found
        before = known.size
        for name, found in trees.items():
            known.collect(found, name.removeprefix("log.lane.") if name.startswith("log.lane.") else "")
    heard = sorted({*said_in([*trees.values()]), *_said_rows(views.path_of(store))})
    known.quotes = quotes_of((who == known.user, text) for _, who, text in heard)
    return known


def _said_rows(path: Path) -> set[tuple[str, tuple[str, str], str]]:
    """What people said, as the views still have it: when, who, the text."""
    if not path.exists():
        return set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        rows = db.execute("select at, who, text from messages where who != '' and text != ?", (TOMBSTONE,)).fetchall()
    return {(at, (who.partition(":")[0], who.partition(":")[2]), text) for at, who, text in rows}


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
            tree = _decoded(stored)
            yield [stored], tree[2] if _is_stamped(stored.subject) else tree
            continue
        parts = [stored] if part.part == 0 else [*parts, stored]
        if (whole := gathering.take(stored.sequence, part)) is not None:
            yield parts, msgspec.json.decode(whole)


def _decoded(stored: Stored) -> Any:
    try:
        return msgspec.json.decode(stored.data)
    except msgspec.DecodeError as error:
        where = f"{stored.subject}, entry {stored.sequence}, is damaged ({error})"
        raise Undecodable(f"{where}, so nothing was erased: restore a backup, and erase then.") from error


# --- the journals ----------------------------------------------------------------------------------------------------


def _changed(known: Erased, subject: str, entries: list[Stored]) -> Changed:
    conversation = subject.removeprefix("log.lane.") if subject.startswith("log.lane.") else ""
    whole = known.is_whole(subject)
    trees = [*_trees(entries)]
    told = subject.startswith("log.act.") and known.is_told_in([tree for _, tree in trees])
    kept, changed = set[int](), dict[int, bytes]()
    for stored, tree in trees:
        kept |= {one.sequence for one in stored}
        new = known.blank(tree) if whole else known.written(tree, conversation, told=told)
        if new != tree:
            if snapshot_part(stored[0]) is not None and (found := kind_of(subject)):
                with _ours(subject):
                    decode(encode(new), found[1].frozen)
            changed |= zip((one.sequence for one in stored), _packed(stored, new), strict=True)
    for torn in (one for one in entries if one.sequence not in kept):  # parts of a snapshot that never was one
        epoch, nonce, _ = msgspec.json.decode(torn.data)
        changed[torn.sequence] = encode((epoch, nonce, Snapshot(part=10**6, parts=10**6, data=b"")))
    return Changed(subject=subject, entries=entries, new=changed)


def _is_stamped(subject: str) -> bool:
    """Others that begin with `log.` (notes, `gateway.fed`) have no holder, and no epoch."""
    return kind_of(subject) is not None


def _packed(stored: list[Stored], tree: Any) -> list[bytes]:
    if not _is_stamped(stored[0].subject):
        return [encode(tree)]
    heads = [msgspec.json.decode(one.data)[:2] for one in stored]
    if snapshot_part(stored[0]) is None:
        return [encode([*heads[0], tree])]
    return [encode([*head, part]) for head, part in zip(heads, cut(encode(tree), len(stored)), strict=True)]


def _check(subject: str, data: bytes) -> None:
    """Raises Undecodable."""
    with _ours(subject):
        if (found := kind_of(subject)) is not None:
            unstamped(Stored(subject=subject, sequence=0, data=data), found[1].entries)
        for prefix, words in WORDS.items():
            if subject.startswith(prefix):
                decode(data, words)


@contextmanager
def _ours(subject: str) -> Iterator[None]:
    """What was readable must be so afterwards, or nothing is erased."""
    try:
        yield
    except Undecodable as error:
        why = "without these words it could not be read any more, so nothing was erased"
        raise Undecodable(f"{subject}: {why}. That is a fault of Frontdesk's: please report it.") from error


# --- beside the journals ---------------------------------------------------------------------------------------------


def _erase_rows(path: Path, known: Erased) -> None:
    """Also those whose entries a snapshot has replaced; all others are made anew afterwards."""
    who = ":".join(known.user)
    with closing(sqlite3.connect(path)) as db, db:
        for number, row_id, author, conversation, covers, text in db.execute(
            "select number, id, who, conversation, covers, text from messages"
        ).fetchall():
            theirs = author == who or conversation in known.conversations
            answers = known.identities & {*covers.split("\n")}
            if not (theirs or answers or row_id in known.identities):
                if (unquoted := known.quotes.without(text)) != text:
                    db.execute("update messages set text = ? where number = ?", (unquoted, number))
                continue
            db.execute(
                "update messages set id = ?, text = ?, name = ?, covers = ? where number = ?",
                (erased(row_id) if author else row_id, TOMBSTONE, NAME if author else "", "", number),
            )
        db.execute(
            "update actions set name = ?, query = ?, result = ? where who = ?", (NAME, TOMBSTONE, TOMBSTONE, who)
        )
        for number, *texts in db.execute("select number, query, result from actions").fetchall():
            if (without := [known.quotes.without(text) for text in texts]) != texts:
                db.execute("update actions set query = ?, result = ? where number = ?", (*without, number))
        db.execute("insert into messages_fts(messages_fts) values ('rebuild')")


def _workspaces(store: Path, known: Erased) -> list[Path]:
    folder = workspaces(store)
    return [one for one in folder.iterdir() if known.has_action(one.name)] if folder.is_dir() else []


async def _erase_workspaces(store: Path, known: Erased) -> int:
    """Files and processes of the actions that they asked for."""
    theirs = await asyncio.to_thread(_workspaces, store, known)
    for one in theirs:
        await Sandbox(one, lambda _: None, Bare()).kill()
        await asyncio.to_thread(shutil.rmtree, one)
    return len(theirs)


async def _erase_blobs(broker: Broker, known: Erased) -> int:
    """What nothing that stays names any more."""
    unnamed = {*await broker.blobs()} - known.blobs
    for digest in unnamed:
        await broker.forget_blob(digest)
    return len(unnamed)
