"""What an action is to do by the clock: looked up in its fold whenever its loop rests, so a restart forgets none."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from actors import commands, idle
from actors.entries import Reminded

if TYPE_CHECKING:
    from actors.actor import Actor

Due = tuple[datetime, Callable[[], Coroutine[Any, Any, None]]]


def _due(actor: "Actor") -> list[Due]:
    found: list[Due] = []
    state, limits = actor.state, actor.work.limits
    if state.transcript.ended:
        return found
    for job in state.transcript.jobs.values():
        if job.expires_at is not None and not job.child:
            found.append((job.expires_at, partial(commands.expire, actor, job)))
        if job.remind_at is not None and actor.parent is None and job.job not in state.reminded:
            found.append((job.remind_at, partial(actor.append, Reminded(job=job.job))))
    if state.idle_since is not None and state.phase in ("awaiting_input", "hibernated"):
        found.append((state.idle_since + limits.close_after, partial(idle.close, actor)))
        if idle.is_idle(actor):
            found.append((state.idle_since + limits.hibernate_after, partial(idle.hibernate, actor)))
    return found


def seconds_left(actor: "Actor") -> float | None:
    """Until the next is due; None when nothing is."""
    at = min((at for at, _ in _due(actor)), default=None)
    return None if at is None else max(0.0, (at - actor.work.now()).total_seconds())


async def see_to(actor: "Actor") -> None:
    """All that is due by now, the oldest first."""
    while (due := min(_due(actor), key=lambda one: one[0], default=None)) and due[0] <= actor.work.now():
        before = _mark(actor)
        await due[1]()
        if before == _mark(actor):
            return  # something came first


def _mark(actor: "Actor") -> tuple[Any, ...]:
    state = actor.state
    return tuple(state.transcript.jobs), state.phase, len(state.reminded)
