"""When something opens a turn: progress is gathered, and what is not urgent waits for the end of quiet hours."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from brain.contacts import Contact
from brain.hold import Pace
from brain.opening import is_a_step_by_mail, opens_at
from gateway.events import ActionProgressed, ActionResponded, ClarificationRequested, Ref
from gateway.quiet import quiet_hours
from tests.brain.people import Talk, route

PACE, BERLIN = Pace(), ZoneInfo("Europe/Berlin")
HOURS = quiet_hours("22:00-07:00")


def someone(**how: object) -> Contact:
    return Contact(key="ana", name="Ana", role="owner", timezone="Europe/Berlin", quiet_hours=HOURS, **how)


def at(hour: int, minute: int = 0, day: int = 29) -> datetime:
    """In Berlin."""
    return datetime(2026, 11, day, hour, minute, tzinfo=BERLIN)


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.now = at(21).astimezone(UTC)
    made.key = made.starts()  # type: ignore[attr-defined]
    made.now = at(23).astimezone(UTC)
    return made


def tells(talk: Talk, kind: type, number: int = 1, **fields: object) -> None:
    talk.hears(kind(ref=Ref("act", number, 0), conversation="p-ana", action=talk.key, **fields))  # type: ignore[attr-defined]


def opens(talk: Talk, who: Contact) -> datetime:
    return opens_at(tuple(talk.state.undecided), talk.state, who, talk.now, PACE)


def test_progress_is_gathered_for_some_seconds(talk: Talk) -> None:
    nobody = Contact(key="ana", name="Ana", role="owner")
    for number in (1, 2):
        tells(talk, ActionProgressed, number, text="half of it")
    first = talk.state.undecided[0].at
    assert opens(talk, nobody) == first + timedelta(seconds=PACE.progress_seconds)
    tells(talk, ActionResponded, 3, text="all of it")
    assert opens(talk, nobody) == talk.state.undecided[-1].at


def test_a_clock_that_is_set_back_holds_nothing_up(talk: Talk) -> None:
    nobody = Contact(key="ana", name="Ana", role="owner")
    talk.says("are you there?")
    talk.now -= timedelta(hours=1)
    assert opens(talk, nobody) == talk.now


def test_in_quiet_hours_what_is_not_urgent_waits(talk: Talk) -> None:
    tells(talk, ActionResponded, text="all of it")
    assert opens(talk, someone()) == at(7, day=30)
    tells(talk, ClarificationRequested, 2, question="question1", text="Which Sarah?")
    assert opens(talk, someone()) == at(7, day=30)
    assert opens(talk, someone(urgent_questions=True)) <= talk.now


def test_who_writes_in_quiet_hours_is_answered_and_told_the_rest(talk: Talk) -> None:
    tells(talk, ActionResponded, text="all of it")
    talk.says("still up")
    assert opens(talk, someone()) <= talk.now
    talk.decides()
    tells(talk, ActionResponded, 2, text="more")
    assert opens(talk, someone()) <= talk.now
    talk.now += timedelta(seconds=PACE.awake_seconds)
    assert opens(talk, someone()) == at(7, day=30)


@pytest.mark.parametrize(
    ("hours", "moment", "until"),
    [
        ("22:00-07:00", at(21, 59), None),
        ("22:00-07:00", at(22), at(7, day=30)),
        ("22:00-07:00", at(0, 30, day=30), at(7, day=30)),
        ("22:00-07:00", at(7), None),
        ("12:30-13:30", at(13), at(13, 30)),
        ("12:30-13:30", at(13, 30), None),
    ],
)
def test_quiet_hours_are_the_persons_own(hours: str, moment: datetime, until: datetime | None) -> None:
    assert quiet_hours(hours).until(moment.astimezone(UTC), BERLIN) == until


def test_quiet_hours_follow_the_clock_of_the_place() -> None:
    """The night in which clocks are set back is longer."""
    evening = datetime(2026, 10, 24, 23, tzinfo=BERLIN)
    until = HOURS.until(evening, BERLIN)
    assert until is not None
    assert until.astimezone(UTC) == datetime(2026, 10, 25, 6, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "22:00", "22-7", "24:00-07:00", "22:00-22:00", "22:60-07:00"])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write them as in"):
        quiet_hours(text)


def test_a_step_is_never_a_mail() -> None:
    for medium, is_one in (("email", True), ("telegram", False)):
        talk = Talk()
        talk.key = talk.starts()  # type: ignore[attr-defined]
        talk.state.actions[talk.key].route = route("thread", medium)  # type: ignore[attr-defined]
        tells(talk, ActionProgressed, text="half of it")
        assert is_a_step_by_mail(tuple(talk.state.undecided), talk.state) is is_one
        tells(talk, ActionResponded, 2, text="all of it")
        assert not is_a_step_by_mail(tuple(talk.state.undecided), talk.state)
