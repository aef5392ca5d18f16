"""The view of all that was said: a lane's journal as rows, and the search of it.

What a conversation may find is decided here, in code: a search for a conversation never leaves it.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any

from brain.emission import emissions
from brain.entries import Decided, LaneEntry, Spent, Summarised, Taken
from brain.frozen import LaneFrozen
from gateway import looking, views
from gateway.addresses import Address
from gateway.broker.protocol import Stored
from gateway.events import MessageReceived, Send, SendClosed
from gateway.journal import unstamped
from gateway.llm.model import Usage
from gateway.record import Record, decode
from gateway.snapshots import Gathering, Snapshot
from gateway.views import Rows

FOUND = 20


class Found(Record, frozen=True, kw_only=True):
    """One message. `id` is its identity, or the ref of a send; `who` an address, empty for the assistant. UTC."""

    id: str
    conversation: str
    who: str
    name: str
    medium: str
    place: str
    at: datetime
    text: str
    outcome: str


def recalled(
    store: Path, words: str, conversation: str, limit: int = FOUND, without: Collection[Address] = ()
) -> list[Found]:
    """What a conversation may see: its own messages alone, with all of the words, or else with most of them; `without`
    what these addresses said, and what was said to them. Blocks: call it in a thread. Raises ViewsFailed."""
    path, others = views.path_of(store), {str(one) for one in without}
    ids = {one for who in others for one in looking.ids_of(path, conversation, who)}
    for loosely in (False, True):
        rows = looking.search(path, words, conversation=conversation, limit=limit, loosely=loosely)
        if found := [row for row in rows if row["who"] not in others and not ids & {*row["covers"].split("\n")}]:
            return _messages(found)
    return []


class Recalls:
    """`recalled` for the conversations of one gateway, beside the event loop."""

    def __init__(self, store: Path) -> None:
        self._store = store

    async def __call__(
        self, conversation: str, words: str, limit: int, without: Collection[Address] = ()
    ) -> list[Found]:
        """See `brain.recalling.Recall`."""
        return await asyncio.to_thread(recalled, self._store, words, conversation, limit, without)


def searched(store: Path, words: str, limit: int = FOUND) -> list[Found]:
    """Everything: for the operator alone. Raises ViewsFailed."""
    return _found(store, words, None, limit)


def before(store: Path, conversation: str, sequence: int) -> list[Found]:
    """All of a conversation that was said before that entry. Blocks: call it in a thread. Raises ViewsFailed."""
    return _messages(looking.messages(views.path_of(store), conversation, sequence))


def _found(store: Path, words: str, conversation: str | None, limit: int) -> list[Found]:
    return _messages(looking.search(views.path_of(store), words, conversation=conversation, limit=limit))


def _messages(rows: list[dict[str, Any]]) -> list[Found]:
    return [
        Found(
            id=row["id"],
            conversation=row["conversation"],
            who=row["who"],
            name=row["name"],
            medium=row["medium"],
            place=row["place"],
            at=datetime.fromisoformat(row["at"]),
            text=row["text"],
            outcome=row["outcome"],
        )
        for row in rows
    ]


class LaneRows:
    """Every message that was taken and every one that was decided on, and what the turns cost."""

    pattern = "log.lane."

    def __init__(self) -> None:
        self._gathered: dict[str, Gathering] = {}

    def note(self, rows: Rows, stored: Stored) -> None:
        _, _, entry = unstamped(stored, LaneEntry | Snapshot)
        conversation = stored.subject.removeprefix(self.pattern)
        source = {"conversation": conversation, "journal": stored.subject, "sequence": stored.sequence}
        match entry:
            case Taken(event=MessageReceived() as received):
                rows.put("messages", {**_received(received), **source})
            case Taken(event=SendClosed(send=ref, outcome=outcome)):
                rows.change("messages", str(ref), outcome=outcome)
            case Decided():
                for row in _said(conversation, entry):
                    rows.put("messages", {**row, **source})
                if entry.usage is not None:
                    rows.put("costs", _cost(stored, entry.model, entry.usage, entry.at, entry.charged) | source)
            case Summarised(model=model, usage=Usage() as usage, at=at):
                rows.put("costs", _cost(stored, model, usage, at) | source)
            case Spent(usage=usage, model=model, at=spent_at, charged=charged):
                rows.put("costs", _cost(stored, model, usage, spent_at, charged) | source)
            case Snapshot():
                whole = self._gathered.setdefault(stored.subject, Gathering()).take(stored.sequence, entry)
                for row in _remembered(conversation, whole) if whole is not None else ():
                    rows.add("messages", {**row, **source})
            case _:
                pass


def _received(received: MessageReceived) -> dict[str, Any]:
    route = received.route
    return {
        "id": received.identity,
        "who": str(received.author.address),
        "name": received.author.name,
        "medium": route.medium,
        "account": route.account,
        "place": route.place,
        "thread": route.thread or "",
        "reply_to": route.reply_to or "",
        "at": received.at.isoformat(),
        "text": received.text,
        "outcome": "received",
    }


def _said(conversation: str, decided: Decided) -> list[dict[str, Any]]:
    sends = [item.body for item in emissions(conversation, decided, 0) if isinstance(item.body, Send)]
    return [
        {
            "id": str(send.ref),
            "medium": send.route.medium,
            "account": send.route.account,
            "place": send.route.place,
            "thread": send.route.thread or "",
            "reply_to": send.route.reply_to or "",
            "covers": "\n".join(decided.covers),
            "at": decided.at.isoformat(),
            "text": send.text,
            "outcome": "on its way",
        }
        for send in sends
    ]


def _cost(stored: Stored, model: str, usage: Usage, at: datetime | None, who: Address | None = None) -> dict[str, Any]:
    return {
        "id": f"{stored.subject}/{stored.sequence}",
        "at": at.isoformat() if at else "",
        "who": str(who or ""),
        "model": model,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "usd": usage.usd,
    }


def _remembered(conversation: str, frozen: bytes) -> list[dict[str, Any]]:
    """What a snapshot still knows of what was said: the exchanges that were kept."""
    kept: LaneFrozen = decode(frozen, LaneFrozen)
    ended = {str(ref): send.outcome for ref, send in kept.sends if send.outcome is not None}
    heard = [item for exchange in kept.exchanges for item in exchange.heard] + kept.undecided + kept.overheard
    rows = [_received(item.fact) for item in heard if isinstance(item.fact, MessageReceived)]
    said = [row for exchange in kept.exchanges for row in _said(conversation, exchange.decided)]
    return rows + [row | {"outcome": ended.get(row["id"], "")} for row in said]
