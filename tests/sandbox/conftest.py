"""Sandboxes of real processes; each is ended with its test, whatever the test did to it."""

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.words import Isolation
from tests.sandbox.desk import Desk, hardened

MakeDesk = Callable[..., Desk]


@pytest_asyncio.fixture(params=["bare", "hardened"])
async def isolation(request: pytest.FixtureRequest) -> Isolation:
    """Every promise of a sandbox holds in both tiers."""
    return Bare() if request.param == "bare" else await hardened()


@pytest_asyncio.fixture
async def make_desk(tmp_path: Path, isolation: Isolation) -> AsyncIterator[MakeDesk]:
    """Desks on directories of their own, or on one that another desk has had."""
    desks: list[Desk] = []
    numbers = itertools.count(1)

    def make(directory: Path | None = None, **options: Any) -> Desk:
        desks.append(Desk(directory or tmp_path / f"sandbox{next(numbers)}", **{"isolation": isolation, **options}))
        return desks[-1]

    yield make
    for desk in reversed(desks):
        await desk.sandbox.kill()


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    return make_desk()
