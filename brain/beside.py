"""What a lane does beside its turns, and no turn waits for: the rolling summary, counting money, resting at caps."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from brain import summarising
from brain.entries import Steer
from brain.means import Means
from brain.purse import Purse, steers
from brain.state import LaneState
from gateway.journal import Journal
from gateway.llm.model import ModelError, OnSpent

log = logging.getLogger(__name__)


async def summaries(journal: Journal[LaneState], means: Means, spent: OnSpent) -> None:
    """One that fails is made again later, from what there is then."""
    pause = means.pace.outage_seconds
    while True:
        state = await journal.until(summarising.due)
        if means.purse.is_over(()):
            await means.purse.change()
            continue
        covers = summarising.through(state)
        try:
            generation = await means.model.generate(summarising.request(state, means.frame), spent)
        except ModelError as error:
            log.warning("%s: no summary yet. %s", state.conversation, error.for_operator)
        else:
            if await journal.write(partial(summarising.made, generation, covers, now=means.now())) is not None:
                pause = means.pace.outage_seconds
                continue
            spent(generation.model, generation.usage)
        await asyncio.sleep(pause)
        pause = min(pause * 2, means.pace.longest_outage_seconds)


async def count(journal: Journal[LaneState], purse: Purse) -> None:
    counted: dict[str, float] | None = None
    while True:
        state = await journal.until(lambda state, counted=counted: state.spending.usd != counted)  # type: ignore[misc]
        counted = dict(state.spending.usd)
        purse.note(state.conversation, state.spending)


async def rest_at_caps(
    journal: Journal[LaneState], purse: Purse, commit: Callable[[tuple[Steer, ...]], Awaitable[None]]
) -> None:
    """Work of whoever is over stands still until the next day."""
    while True:
        change = asyncio.create_task(purse.change())
        try:
            if resting := steers(journal.state, purse):
                await commit(resting)
            await change
        finally:
            change.cancel()
