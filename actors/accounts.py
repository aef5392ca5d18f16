"""The view of what actions did and what they cost: an action's journal as rows."""

from datetime import datetime
from typing import Any

from actors.entries import ActionEntry, Briefed, Closed, Failed, Generated, Responded, Spent, Stopped
from actors.frozen import ActionFrozen
from gateway.broker.protocol import Stored
from gateway.events import Start
from gateway.journal import unstamped
from gateway.llm.model import Usage
from gateway.record import decode
from gateway.snapshots import Gathering, Snapshot
from gateway.views import Rows


class ActionRows:
    pattern = "log.act."

    def __init__(self) -> None:
        self._gathered: dict[str, Gathering] = {}

    def note(self, rows: Rows, stored: Stored) -> None:
        _, _, entry = unstamped(stored, ActionEntry | Snapshot)
        key = stored.subject.removeprefix(self.pattern)
        source = {"journal": stored.subject, "sequence": stored.sequence}
        match entry:
            case Briefed(start=start):
                rows.put("actions", {**_started(start), **source})
            case Responded(text=text, ended=ended):
                rows.change("actions", key, phase="succeeded" if ended else "awaiting_input", result=text)
            case Closed(text=text):
                rows.change("actions", key, phase="succeeded", result=text)
            case Failed(text=text):
                rows.change("actions", key, phase="failed", result=text)
            case Stopped(report=text):
                rows.change("actions", key, phase="stopped", result=text)
            case (
                Generated(model=model, usage=Usage() as usage, at=at) | Spent(model=model, usage=usage, at=at, child="")
            ):
                rows.put("costs", {**_cost(stored, key, model, usage, at), **source})
            case Snapshot():
                whole = self._gathered.setdefault(stored.subject, Gathering()).take(stored.sequence, entry)
                if whole is not None:
                    _remember(rows, whole, source)
            case _:
                pass


def _started(start: Start) -> dict[str, Any]:
    return {
        "id": start.action,
        "conversation": start.conversation,
        "name": start.name,
        "query": start.query,
        "who": str(start.by.address),
        "phase": "running",
    }


def _cost(stored: Stored, key: str, model: str, usage: Usage, at: datetime | None) -> dict[str, Any]:
    return {
        "id": f"{stored.subject}/{stored.sequence}",
        "action": key,
        "at": at.isoformat() if at else "",
        "model": model,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "usd": usage.usd,
    }


def _remember(rows: Rows, frozen: bytes, source: dict[str, Any]) -> None:
    kept: ActionFrozen = decode(frozen, ActionFrozen)
    if kept.start is not None:
        rows.add("actions", {**_started(kept.start), "phase": kept.phase, "result": kept.result, **source})
