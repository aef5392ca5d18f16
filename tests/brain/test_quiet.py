"""A conversation in which nothing happens leaves the memory, and goes on at its next word as if it had stayed."""

import pytest

from brain.entries import Act, Speak, Wait
from brain.hold import Pace
from brain.lane import is_quiet
from gateway.events import MessageReceived, Ref, SendClosed
from tests.brain.people import ANA, NOON, Talk, route
from tests.store import stage as stages
from tests.store.conftest import eventually

PACE = Pace(quiet_seconds=0.01, closes_after_seconds=0.05)


def message(n: int) -> MessageReceived:
    return MessageReceived(identity=f"t/{n}", route=route(), author=ANA, text=f"word {n}.", at=NOON)


async def test_it_is_closed_and_folded_again_at_the_next_word(tmp_path) -> None:
    model, platform = stages.EchoModel(), stages.FakePlatform()
    async with stages.stage(tmp_path / "store.db", model, ["42"], [platform], pace=PACE) as stage:
        for n in range(3):
            await stage.hears(message(n))
            await eventually(lambda n=n: platform.texts()[-1:] == [f"echo word {n}."])
            await eventually(lambda: not stage.manager.lanes())
        (name,) = stage.manager._lanes.names()
        closed = stage.manager._lanes.state(name)
        assert closed.reached == {ANA.address: route()}
        assert not closed.exchanges
        await stage.hears(message(2))  # again: it is known
        await stage.hears(message(3))
        await eventually(lambda: platform.texts()[-1:] == ["echo word 3."])
    assert len(platform.texts()) == 4
    assert "word 0." in str(model.requests[-1].messages)


async def test_what_comes_while_it_closes_is_taken_once(tmp_path) -> None:
    """It closes as soon as it can: every word meets it at another moment."""
    model, platform = stages.EchoModel(), stages.FakePlatform()
    pace = Pace(quiet_seconds=0.01, closes_after_seconds=0.001)
    async with stages.stage(tmp_path / "store.db", model, ["42"], [platform], pace=pace) as stage:
        for n in range(25):
            await stage.hears(message(n))
            await eventually(lambda n=n: platform.texts()[-1:] == [f"echo word {n}."])
        await eventually(lambda: not stage.manager.lanes())
    assert len(platform.texts()) == 25


@pytest.mark.parametrize("held_by", ["nothing", "a message", "a timer", "work", "a send"])
def test_only_what_waits_for_nothing_is_quiet(held_by: str) -> None:
    talk = Talk()
    said = talk.says("hello")
    until = NOON.replace(hour=18)
    decision = {
        "a timer": Wait(reason="later", until=until),
        "work": Act(name="x", query="x", by=ANA, route=said.route),
        "a send": Speak(route=said.route, text="x"),
    }.get(held_by, Wait(reason="x"))
    if held_by != "a message":
        talk.decides(decision)
        talk.state.outgoing.clear()
    assert is_quiet(talk.state) == (held_by == "nothing")
    if held_by == "a send":
        talk.hears(SendClosed(ref=Ref("out", 1), conversation="p-ana", send=Ref("p-ana", 1, 0), outcome="sent"))
        assert is_quiet(talk.state)
