"""The whole story with a fault at every await of the process that lives it: before and after each effect.

Enumerated, not sampled: a run without a fault shows which points there are. The suite crashes right after every
append, send and acknowledgement (what is durable changes nowhere else, so right before one is right after the last),
and strikes a share of the rest; `make soak` strikes all, and random seeds besides, where chance delays everything.
"""

from pathlib import Path

import pytest

from tests.kernel.faults import Fault, Mode
from tests.kernel.rules import violations
from tests.kernel.sweep import points, run, seeds, sweep, sweep_tree, tree_points
from tests.kernel.world import Knobs

CHUNKS = 8
SHARES = 2  # of the suite, one for each core
ALWAYS = ("append", "send", "ack")
EVERY = {"crash": 48, "lost": 48, "late": 24, "outage": 32, "deposed": 48}
MOST_UNREACHED = 0.1  # of the faults: now and then a run differs from the one that was counted
SEEDS_AT_ONCE, SEEDS = 50, 450

VARIANTS = {
    "a chat that shows twice what is sent twice": Knobs(),
    "a chat that knows a send again": Knobs(repeatable=True),
    "a sandbox that is lost in a crash": Knobs(sandbox_lost=True),
    "a quick model": Knobs(think_seconds=0.001),
    "a lease that is renewed all the time": Knobs(lease_seconds=0.4),
}
MODES: tuple[Mode, ...] = ("crash", "lost", "late", "outage", "deposed")


@pytest.mark.parametrize("knobs", VARIANTS.values(), ids=VARIANTS)
async def test_the_story_without_a_fault(tmp_path: Path, knobs: Knobs) -> None:
    played = await run(tmp_path, knobs, None)
    assert violations(played) == []
    assert len(played.story.platform.pushed) == 9
    assert played.story.effects == ["cell1-a", "cell3-b"]


async def test_messages_and_corrections_come_while_a_model_generates(tmp_path: Path) -> None:
    story = (await run(tmp_path, Knobs(think_seconds=0.1), None)).story
    assert story.desk.cancelled, "the conversation's"
    assert story.work.cancelled, "the worker's"


@pytest.mark.parametrize("share", range(SHARES * 3))
async def test_a_crash_after_every_append_send_and_acknowledgement(tmp_path: Path, share: int) -> None:
    knobs = list(VARIANTS.values())[share % 3]
    found = [fault for fault in await points(tmp_path, knobs, "crash") if fault.when == "after"]
    await _struck(tmp_path, knobs, [one for one in found if one.label.startswith(ALWAYS)][share :: SHARES * 3])


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("mode", MODES)
async def test_a_share_of_the_points(tmp_path: Path, mode: Mode, share: int) -> None:
    knobs = list(VARIANTS.values())[share]
    await _struck(tmp_path, knobs, (await points(tmp_path, knobs, mode))[:: EVERY[mode]][share::SHARES])


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_crash_after_every_effect_of_a_tree_of_actions(tmp_path: Path, share: int) -> None:
    faults = [fault for fault in await tree_points(tmp_path, "crash") if fault.when == "after"][share::SHARES]
    fired, failures = await sweep_tree(tmp_path, faults)
    assert failures == []
    assert fired >= len(faults) * (1 - MOST_UNREACHED) - 1


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
async def test_every_point_of_a_tree_of_actions(tmp_path: Path, mode: Mode) -> None:
    _, failures = await sweep_tree(tmp_path, await tree_points(tmp_path, mode))
    assert failures == []


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("knobs", VARIANTS.values(), ids=VARIANTS)
async def test_every_point(tmp_path: Path, knobs: Knobs, mode: Mode, chunk: int) -> None:
    found = await points(tmp_path, knobs, mode)
    await _struck(tmp_path, knobs, found[chunk::CHUNKS])


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
async def test_by_chance(tmp_path: Path, first: int) -> None:
    _, failures = await seeds(tmp_path, range(first, first + SEEDS_AT_ONCE))
    assert failures == []


async def _struck(folder: Path, knobs: Knobs, faults: list[Fault]) -> None:
    fired, failures = await sweep(folder, knobs, faults)
    assert failures == []
    assert fired >= len(faults) * (1 - MOST_UNREACHED) - 1
