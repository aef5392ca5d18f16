"""Waiting for what somebody else does, where it tells nobody: by looking again, never for a fixed time."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tests.patience import PATIENCE_SECONDS

T = TypeVar("T")

LOOK_AGAIN_SECONDS = 0.01


async def until(ready: Callable[[], T], instead: Callable[[], object] = lambda: "") -> T:
    """What `ready` gives, once that is true. AssertionError with `instead` when it does not come."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not (found := ready()):
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s; instead: {instead()}")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return found
