"""Sandboxes on this machine whose action is not held here, or no longer: they are made to stand still, or ended."""

import asyncio
import logging

from actors.sandbox.words import Happening
from actors.sharing import Sharing
from actors.workshop import Workshop

log = logging.getLogger(__name__)
STILL_SECONDS = 3.0


async def sweep(work: Workshop, sharing: Sharing, held: set[str]) -> None:
    """Ends those whose tree has gone elsewhere, or is over. `held` are the trees of this process."""
    running = await asyncio.to_thread(work.sandboxes)
    strange = await sharing.strangers({root_of(key) for key in running} - held)
    for key in running:
        if root_of(key) in strange:
            log.warning("the sandbox of %s is ended: the action is held elsewhere, or over", key)
            box = work.box(key, unheard)
            await box.kill()
            await box.close()


async def stand_still(work: Workshop, sharing: Sharing, held: set[str]) -> None:
    """What is held here no longer must not go on by itself, unless another process on this machine has it."""
    running = [key for key in await asyncio.to_thread(work.sandboxes) if root_of(key) in held]
    taken = await sharing.taken_here({root_of(key) for key in running})
    still = [_freeze(work, key) for key in running if root_of(key) not in taken]
    if still:
        _, late = await asyncio.wait([asyncio.ensure_future(one) for one in still], timeout=STILL_SECONDS)
        for task in late:
            task.cancel()


async def _freeze(work: Workshop, key: str) -> None:
    box = work.box(key, unheard)
    await box.attach()
    await box.suspend()
    await box.close()


def root_of(key: str) -> str:
    return key.partition("--")[0]


def unheard(happening: Happening) -> None:
    """It is told again to whoever attaches."""
