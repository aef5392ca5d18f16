"""Holding a commit, and waiting until a time: pure parts."""

from datetime import timedelta

import pytest

from brain.entries import Taken, Wait
from brain.hold import Pace, quiet_in_seconds, voice_of
from brain.reminding import fire
from brain.telling import events_text
from gateway.events import MessageReceived, TimerFired
from tests.brain.people import BO, NOON, Talk, frame

PACE = Pace()


def quiet(talk: Talk, *gaps: float) -> float:
    """Messages that arrived so many seconds apart; how long the commit waits, asked at the last one's arrival."""
    arrived, at = {}, 100.0
    facts = [item.fact for item in talk.state.undecided if isinstance(item.fact, MessageReceived)]
    for fact, gap in zip(facts, (0.0, *gaps), strict=True):
        at += gap
        arrived[fact.identity] = at
    return quiet_in_seconds(talk.turn().heard, arrived, {}, at, PACE)


def test_a_whole_message_is_never_held() -> None:
    talk = Talk()
    talk.says("can you")
    assert quiet(talk) == 0


def test_a_burst_that_breaks_off_is_held_for_a_second() -> None:
    talk = Talk()
    talk.says("hi")
    talk.says("can you")
    assert quiet(talk, 0.9) == PACE.quiet_seconds
    talk.says("check the server?")
    assert quiet(talk, 0.9, 1.1) == 0


@pytest.mark.parametrize(("gap", "held"), [(0.9, True), (3.1, False)])
def test_st02_a_burst_of_which_the_first_is_answered_already_is_one(gap: float, held: bool) -> None:
    talk = Talk()
    hi = talk.says("hi")
    talk.decides()
    more = talk.says("can you")
    arrived = {more.identity: 100 + gap}
    wait = quiet_in_seconds(talk.turn().heard, arrived, {voice_of(hi): 100.0}, 100 + gap, PACE)
    assert wait == (PACE.quiet_seconds if held else 0)


@pytest.mark.parametrize("gap", [3.1, 60.0])
def test_what_comes_later_is_no_burst(gap: float) -> None:
    talk = Talk()
    talk.says("hi")
    talk.says("can you")
    assert quiet(talk, gap) == 0


def test_two_people_are_no_burst() -> None:
    talk = Talk("s-room")
    talk.says("hi", private=False)
    talk.says("and me", by=BO, private=False)
    assert quiet(talk, 0.5) == 0


def test_a_paste_that_the_client_split_is_held_alone() -> None:
    talk = Talk()
    talk.says("x" * 4096)
    assert quiet(talk) == PACE.quiet_seconds


def test_st02_a_paste_is_held_and_joined_whoever_speaks_between_its_halves() -> None:
    talk = Talk("s-room")
    talk.says("x" * 4083 + " the value is", private=False)
    talk.says("Good morning.", by=BO, private=False)
    assert quiet(talk, 0.5) == PACE.quiet_seconds - 0.5
    talk.says(" 17 so compute it.", private=False)
    assert quiet(talk, 0.5, 0.5) == 0
    first, second = events_text(talk.turn().heard, talk.state, frame().zone).split("\n[")
    assert "xx the value is 17 so compute it." in first
    assert second.endswith("Good morning.")


def test_a_timer_fires_once_and_not_after_a_later_turn() -> None:
    talk = Talk()
    talk.says("remind me")
    talk.decides(Wait(reason="he asked", until=NOON + timedelta(minutes=1)))
    timer = talk.state.timer
    assert timer is not None
    fired = fire(timer, NOON, talk.state)
    assert isinstance(fired, Taken)
    assert isinstance(fired.event, TimerFired)
    talk.state.apply(fired)
    assert [item.label for item in talk.state.undecided] == ["timer"]
    assert fire(timer, NOON, talk.state) is None
    talk.decides(Wait(reason="said"))
    talk.says("again")
    talk.decides(Wait(reason="he asked", until=NOON + timedelta(minutes=1)))
    later = talk.state.timer
    talk.says("never mind")
    talk.decides(Wait(reason="fine"))
    assert later is not None
    assert fire(later, NOON, talk.state) is None
