"""Each rule taken away once: the proof is worth something only if it notices. What is only a courtesy is not missed."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.universe import Change, changed, load

STEP = 12  # faults at a time, until one is noticed
SETTLE_SECONDS = 6.0  # a broken product may never come to rest
SEEDS = range(60)


@dataclass(frozen=True)
class Taken:
    """A rule, taken away. `by` is what must notice: faults of that mode, at points whose labels begin so; or another.

    `seeds` are faults by chance, `tree` random commands to a tree of actions, `steps` a crash anywhere in its story.
    """

    changes: tuple[Change, ...]
    by: str = "crash"
    at: tuple[str, ...] = ("append", "ack", "send", "box", "effect")
    repeatable: bool = False
    lost: bool = False


def taken(module: str, old: str, new: str, by: str = "crash", **more: Any) -> Taken:
    return Taken(changes=(Change(module, old, new),), by=by, **more)


COMMIT = "            if state.moved or (interrupts is not None and state.interrupts > interrupts):\n"
COVERS = "                covers=covers,\n                decisions=made.decisions,\n"
EMIT = """\
            for outgoing in batch:
                await publish(self._broker, outgoing.subject, outgoing.body, str(outgoing.ref))
            through = batch[-1].ref
            await self.write(partial(_emitted, through))
"""
APPEND = """\
        sequence = await self._broker.append(self.subject, data, msg_id=nonce, expect_last=self._tail)
        self._fold(sequence, entry, len(data))
"""
TAKE = """\
                    await self._take(delivery.stored.data, lanes)
                    await acknowledge(delivery.ack)
"""
HEAR = """\
        while not await self._taken(key):
            await asyncio.sleep(AGAIN_SECONDS)
        await acknowledge(delivery.ack)
"""

QUICK: dict[str, Taken] = {
    "a commit looks again for what came meanwhile": taken("brain.turns", COMMIT, "            if state.moved:\n"),
    "what follows is published again after a restart": taken(
        "gateway.journal",
        EMIT,
        """\
            through = batch[-1].ref
            await self.write(partial(_emitted, through))
            for outgoing in batch:
                await publish(self._broker, outgoing.subject, outgoing.body, str(outgoing.ref))
""",
        at=("append log.lane Emitted", "append cmd"),
    ),
    "an attempt of a former holder is unknown, not repeated": taken(
        "gateway.outbox",
        "            if item.attempting and (self._platform.repeatable or self.journal.state.is_edit(item.send)):\n",
        "            if item.attempting:\n",
        at=("send",),
    ),
    "an effect that was begun is not begun again": taken(
        "actors.effects",
        "    elif call.rpc in state.effects:\n",
        "    elif False:\n",
        at=("effect", "append log.act Effect"),
    ),
}
SLOW: dict[str, Taken] = {
    "covers are what the model saw, not a range": taken(
        "brain.turns",
        COVERS,
        "                covers=tuple(identity_of(item.fact) for item in events(state)),\n"
        "                decisions=made.decisions,\n",
        by="seeds",
    ),
    "a message is taken once": taken("brain.state", "return fact.identity in self.identities", "return False"),
    "a ref is taken once": taken(
        "gateway.seen", "return (ref.batch, ref.n) <=", "return False and (ref.batch, ref.n) <="
    ),
    "the fence stands while an append is unresolved": taken(
        "gateway.journal", "expect_last=self._tail)", "expect_last=None)", "late"
    ),
    "a message is acknowledged after it is durable": taken(
        "brain.manager",
        TAKE,
        "                    await acknowledge(delivery.ack)\n"
        "                    await self._take(delivery.stored.data, lanes)\n",
        at=("ack brain",),
    ),
    "a command is acknowledged after it is durable": taken(
        "actors.supervisor",
        HEAR,
        "        await acknowledge(delivery.ack)\n"
        "        while not await self._taken(key):\n"
        "            await asyncio.sleep(AGAIN_SECONDS)\n",
        at=("append log.lane",),  # an acknowledgement goes with the next commit, of whomever
    ),
    "nothing leaves before its decision is durable": taken(
        "gateway.journal",
        APPEND,
        "        self._folding.take(self._tail, entry, len(data))\n        self._wake()\n"
        "        await asyncio.sleep(0.02)\n"
        "        self._tail = await self._broker.append(self.subject, data, msg_id=nonce, expect_last=self._tail)\n",
    ),
    "a refusal is told": taken(
        "actors.telling",
        '            yield CommandRefused, {"command": ref, "verb": verb, "why": why, **whose}\n',
        "            pass\n",
    ),
    "an answer of code is known after a restart": taken(
        "actors.journal",
        "            self.answers[rpc] = entry\n",
        "            pass\n",
        at=("box reply", "append log.act JobEnded"),
    ),
    "steering goes down to the children": taken(
        "actors.children", "            if job in actor.transcript.jobs:\n", "            if False:\n", "tree"
    ),
    "what goes down again keeps its ref": taken(
        "actors.children",
        'Ref(f"act-{actor.key}/cascade", actor.state.last_word_at, 0)',
        'Ref(f"act-{actor.key}/cascade", actor.state.commands_taken, 0)',
        "tree",
    ),
    "a child that has ended says so again": taken(
        "actors.happenings", "        actor.tell_parent()\n        for ask", "        for ask", "tree"
    ),
    "each call of a worker's model steers once": taken(
        "actors.calls", 'int(call.id.removeprefix("c"))', "actor.transcript.calls_made", "tree"
    ),
    "children end with their parent": taken(
        "actors.actor", "                    await self.children.end(self)\n", "", "steps"
    ),
    "a sandbox goes and stands with its action after a restart": taken(
        "actors.happenings",
        "    await (actor.box.suspend() if actor.transcript.paused else actor.box.resume())\n",
        "",
        "steps",
    ),
    "an ask is answered after a restart": taken(
        "actors.happenings",
        "    for ask in actor.state.asks.values():\n        actor.answer_again(ask)\n\n\nasync",
        "\n\nasync",
        "tree",
    ),
}
COURTESIES: dict[str, Taken] = {
    "its own entry is known again by its nonce": taken(
        "gateway.journal",
        "            found = theirs == nonce or (",
        "            found = False and (",
        "lost",
        at=("append log",),
    ),
    "commands are drained before a response": taken(
        "actors.actor",
        "        waiting = await self.work.waiting(self.key, self.state.through)\n",
        "        waiting: list[tuple[int, ActionCommand]] = []\n",
        at=("append log.act", "append cmd.act"),
    ),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A broken product complains at length."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("rule", QUICK.values(), ids=QUICK)
def test_a_missing_rule_is_noticed(tmp_path: Path, rule: Taken) -> None:
    assert noticed(tmp_path, rule)


@pytest.mark.soak
@pytest.mark.parametrize("rule", SLOW.values(), ids=SLOW)
def test_every_missing_rule_is_noticed(tmp_path: Path, rule: Taken) -> None:
    assert noticed(tmp_path, rule)


@pytest.mark.soak
@pytest.mark.parametrize("rule", COURTESIES.values(), ids=COURTESIES)
def test_a_missing_courtesy_breaks_nothing(tmp_path: Path, rule: Taken) -> None:
    assert noticed(tmp_path, rule) == []


def noticed(folder: Path, rule: Taken) -> list[str]:
    with changed(*rule.changes):
        return asyncio.run(_noticed(folder, rule))


async def _noticed(folder: Path, rule: Taken) -> list[str]:
    """The first breaches that are found."""
    if rule.by == "tree":
        return await _in_the_tree(folder)
    sweep, world = load("tests.kernel.sweep"), load("tests.kernel.world")
    if rule.by == "steps":
        load("tests.kernel.tree").RUN_SECONDS = SETTLE_SECONDS
        return list((await sweep.sweep_tree(folder, await sweep.tree_points(folder, "crash"), STEP))[1])
    world.SETTLE_SECONDS = SETTLE_SECONDS
    if rule.by == "seeds":
        for first in SEEDS[::STEP]:
            if broken := (await sweep.seeds(folder, range(first, first + STEP)))[1]:
                return list(broken)
        return []
    knobs = world.Knobs(repeatable=rule.repeatable, sandbox_lost=rule.lost)
    clean = await sweep.run(folder, knobs, None)
    if broken := load("tests.kernel.rules").violations(clean):
        return list(broken)
    faults = [fault for fault in await sweep.points(folder, knobs, rule.by) if fault.label.startswith(rule.at)]
    for first in range(0, len(faults), STEP):
        if broken := (await sweep.sweep(folder, knobs, faults[first : first + STEP], STEP))[1]:
            return list(broken)
    return []


async def _in_the_tree(folder: Path) -> list[str]:
    tree, play = load("tests.kernel.tree"), load("tests.kernel.test_property")
    tree.RUN_SECONDS = SETTLE_SECONDS
    for first in SEEDS[::STEP]:
        rounds = await asyncio.gather(
            *(play.broken(folder, seed) for seed in range(first, first + STEP)), return_exceptions=True
        )
        if broken := [text for one in rounds for text in ([repr(one)] if isinstance(one, BaseException) else one)]:
            return broken
    return []
