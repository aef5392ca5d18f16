"""A stage for each test, and one helper process for all of them: with litellm its start takes seconds."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.llm.client import HelperProcess
from tests.stage import Stage, open_stage

THREADS = 2

Opens = Callable[..., AbstractAsyncContextManager[Stage]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The helper lives in one loop, and so do all that use it."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def helper() -> AsyncIterator[HelperProcess]:
    """The loop's threads are made here too, so that no test is thought to have left them."""
    loop, all_there = asyncio.get_running_loop(), threading.Barrier(THREADS)
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    await asyncio.gather(*(loop.run_in_executor(None, all_there.wait) for _ in range(THREADS)))
    async with HelperProcess("tests") as process:
        await process.ready()
        yield process


@pytest.fixture
def opens(tmp_path: Path, helper: HelperProcess) -> Opens:
    """For a stage with settings of its own."""
    return partial(open_stage, tmp_path, helper)


@pytest_asyncio.fixture(loop_scope="session")
async def stage(opens: Opens) -> AsyncIterator[Stage]:
    """The gateway in this process."""
    async with opens() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def apart(tmp_path: Path, helper: HelperProcess) -> AsyncIterator[Stage]:
    """The gateway in a process of its own, which can be killed."""
    async with open_stage(tmp_path, None) as opened:
        yield opened
