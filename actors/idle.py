"""A session that waits for its next word: it costs nothing after a while, wakes at that word, and is closed in the end.

Hibernating: what can be kept of its variables is saved, `cmd` is looked at again, then `Hibernated` is written, and
only then do its processes end. Files stay where they are.
"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from actors.entries import Closed, Hibernated, Woken
from actors.sandbox.words import Kept, Restored
from actors.sandbox.zygote import SandboxFailed
from gateway.llm.history import within
from gateway.record import that_fit

if TYPE_CHECKING:
    from actors.actor import Actor


NAMES_TOLD = 60
NAMES_BYTES = 100_000  # of what is kept, and as many of what is lost, in one entry; those beyond are so all the same
MACHINE = "the machine that you worked on, which is not there any more"
MOVED = f"it was kept on {MACHINE}"


def is_idle(actor: "Actor") -> bool:
    """It may hibernate: nothing is open, and nobody has spoken."""
    return actor.state.phase == "awaiting_input" and not (actor.transcript.jobs or actor.state.asks or actor.has_mail)


async def hibernate(actor: "Actor") -> None:
    """Unless something comes first."""
    actor.going_to_sleep = False
    if not is_idle(actor):
        return
    kept = Kept()
    if actor.state.used_session:
        saving = asyncio.create_task(actor.box.save())
        if not await actor.unless_something_comes(saving):
            return
        kept = saving.result()
    if await actor.drain_commands() or not is_idle(actor):
        return
    saved, lost = tuple(that_fit(kept.saved, NAMES_BYTES)), tuple(that_fit(kept.lost, NAMES_BYTES))
    await actor.append(Hibernated(saved=saved, lost=lost))
    await actor.box.kill()


async def wake(actor: "Actor") -> None:
    """Before the next generation: takes its variables again, and says in the transcript what is there and what not."""
    asleep, moved = actor.state.asleep, actor.moved
    assert asleep is not None
    restored, failure = Restored(), "what was kept of it is gone"
    if moved:
        failure = MOVED
    elif asleep.saved:
        try:
            restored = await actor.box.restore()
        except (SandboxFailed, OSError) as error:
            failure = f"the session could not be started: {error}"
    text = _told(asleep, restored, failure, moved=moved)
    await actor.append(Woken(text=text, session=bool(restored.names), moved=moved))
    if moved:
        actor.settle()


def _told(asleep: Hibernated, restored: Restored, failure: str, *, moved: bool) -> str:
    """`failure`: why what was saved and is not among the restored is not there."""
    files = f"All of your files are lost with {MACHINE}" if moved else "Files are as you left them"
    if not asleep.saved and not asleep.lost:
        return f"(You had been put to sleep. {files}; there were no variables.)"
    lost = {one.name: failure for one in asleep.saved if one.name not in restored.names}
    lost |= {one.name: one.why for one in (*asleep.lost, *restored.lost)}
    lines = [f"(You had been put to sleep; your processes were ended. {files}."]
    if restored.names:
        lines.append(f"Variables that are there again: {_some(list(restored.names))}.")
    if lost:
        lines.append(f"Lost: {_some([f'{name} ({why})' for name, why in lost.items()])}.")
    lines.append("What ran in threads or programs beside is gone.)")
    return within("\n".join(lines), NAMES_BYTES)


def _some(items: list[str]) -> str:
    more = len(items) - NAMES_TOLD
    return ", ".join(items[:NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")


async def close(actor: "Actor") -> None:
    """Its time to live is over."""
    age = _age(actor.work.limits.close_after)
    last = f" Its last response was: {actor.state.result}" if actor.state.result else ""
    await actor.append(Closed(text=f"Closed, because nobody has come back to it for {age}; its files are kept.{last}"))


def _age(span: timedelta) -> str:
    for seconds, word in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if span.total_seconds() >= 2 * seconds:
            return f"{span.total_seconds() / seconds:.0f} {word}"
    return f"{span.total_seconds():.0f} seconds"
