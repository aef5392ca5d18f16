"""Random commands at random awaits on a tree of actions, with crashes: what the table, the log and the transcripts of
parents and children say of it afterwards."""

import asyncio
from pathlib import Path

import pytest

from tests.kernel.tree import Tree
from tests.kernel.tree_rules import broken_tree

SUITE, SOAK, CHUNK, AT_ONCE = 50, 1000, 10, 10


@pytest.mark.parametrize("first", range(0, SUITE, CHUNK))
async def test_commands_at_random_awaits(tmp_path: Path, first: int) -> None:
    assert await _broken(tmp_path, range(first, first + CHUNK)) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SUITE, SUITE + SOAK, 5 * CHUNK))
async def test_many_commands_at_random_awaits(tmp_path: Path, first: int) -> None:
    assert await _broken(tmp_path, range(first, first + 5 * CHUNK)) == []


async def _broken(folder: Path, seeds: range) -> list[str]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> list[str]:
        async with slots:
            return await broken(folder, seed)

    return [text for texts in await asyncio.gather(*map(one, seeds)) for text in texts]


async def broken(folder: Path, seed: int) -> list[str]:
    return [f"seed {seed}: {text}" for text in await broken_tree(Tree(folder / f"tree{seed}.db", seed))]
