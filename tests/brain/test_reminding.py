"""`remind`: what a call becomes, what is kept open, when it comes, and what a model sees of it. Pure parts."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from brain import joining
from brain.emission import emissions
from brain.entries import Decision, Held, Parted, Quieten, Remind, Speak, Taken, Unremind, Wait
from brain.frozen import LaneFrozen
from brain.outage import nothing_came
from brain.prompt import request
from brain.reading import Read, read
from brain.reminding import FARTHEST, LONGEST_SLEEP_SECONDS, MAX_OPEN, fire, next_due
from brain.rights import Rights
from brain.standing import live_state
from brain.state import LaneState
from brain.telling import events_text
from brain.tools import legal, render
from gateway.events import Ref, TimerFired
from gateway.journal import Owned
from gateway.llm.model import Generation, RawCall
from gateway.record import encode
from tests.brain.people import ANA, BO, GUEST, NOON, OWNER, Talk, frame, route
from tests.brain.test_schema import FRAME, decided, kinds, schema

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)


def called(talk: Talk, rights: Rights = OWNER, now: datetime = NOON, /, **arguments: Any) -> Read:
    turn = talk.turn()
    generation = Generation(calls=(RawCall(name="remind", arguments=json.dumps(arguments)),))
    return read(generation, legal(turn, rights, turn.askers()), turn, rights, now.astimezone(BERLIN))


def one(text: str = "call Eva", at: datetime = NOON + HOUR, **how: Any) -> Remind:
    return Remind(text=text, at=at, by=how.pop("by", ANA), route=how.pop("where", route()), **how)


def open_with(*reminders: Remind) -> Talk:
    talk = Talk()
    talk.says("remind me")
    talk.decides(*reminders)
    return talk


def fires(talk: Talk) -> TimerFired:
    due = next_due(talk.state)
    assert due is not None
    taken = fire(due, due.until, talk.state)
    assert isinstance(taken, Taken)
    talk.state.apply(taken)
    assert fire(due, due.until, talk.state) is None
    assert isinstance(taken.event, TimerFired)
    return taken.event


def test_a_machine_that_has_slept_is_late_by_seconds() -> None:
    """The loop's clock stands still meanwhile, so what time it is must be looked at again and again."""
    assert LONGEST_SLEEP_SECONDS <= 60


@pytest.mark.parametrize(
    ("at", "meant"),
    [
        ("2026-12-24T18:00", datetime(2026, 12, 24, 17, tzinfo=UTC)),
        ("2026-12-24T18:00Z", datetime(2026, 12, 24, 18, tzinfo=UTC)),
        ("2027-07-01T09:00", datetime(2027, 7, 1, 7, tzinfo=UTC)),
        ("90m", NOON + timedelta(minutes=90)),
        ("3d", NOON + timedelta(days=3)),
        ("150d", NOON + timedelta(days=150) - HOUR),  # the clocks are set on before
        ("3600h", NOON + timedelta(hours=3600)),
    ],
)
def test_times_are_in_the_persons_zone(at: str, meant: datetime) -> None:
    talk = Talk()
    said = talk.says("remind me")
    assert called(talk, text="call Eva", at=at).decisions == (
        Remind(text="call Eva", at=meant, by=ANA, route=said.route),
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"text": "x", "at": "2026-11-29T11:00"}, "at must be after now (2026-11-29T13:00+01:00)"),
        ({"text": "x", "at": "0m"}, "after now"),
        ({"text": "x", "at": "1826d"}, f"within {FARTHEST.days} days"),
        ({"text": "x", "at": "99999999999999999999d"}, "within"),
        ({"text": "x", "at": "0001-01-01T00:00"}, "no"),
        ({"text": "x", "at": "tomorrow"}, "neither an ISO time nor like 10m"),
        ({"text": "x"}, "remind needs at"),
        ({"at": "1h"}, "remind needs text"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(arguments: dict[str, str], why: str) -> None:
    talk = Talk()
    talk.says("remind me")
    found = called(talk, **arguments)
    assert not found.decisions
    assert why in found.results[0]


def test_no_more_than_so_many_are_open() -> None:
    talk = open_with(*(one(f"{n}") for n in range(MAX_OPEN - 1)))
    talk.says("and two more")
    turn = talk.turn()
    calls = tuple(RawCall(name="remind", arguments='{"text": "x", "at": "1h"}') for _ in range(2))
    found = read(Generation(calls=calls), legal(turn, OWNER, [ANA]), turn, OWNER, NOON)
    assert len(found.decisions) == 1
    assert found.results[1] == f"Not done: {MAX_OPEN} reminders are open, more are not kept: cancel one first"


def test_it_is_not_ended_by_what_comes_next_and_several_come_each_at_its_time() -> None:
    talk = open_with(one("late", NOON + 2 * HOUR), one("early", where=route("home", "web")), Wait(reason="x"))
    talk.says("something else")
    talk.decides(Speak(route=route(), text="fine"))
    assert not emissions("p-ana", talk.state.exchanges[0].decided, 0)
    first = fires(talk)
    assert (first.reason, first.label, first.by) == ("early", "r2", ANA)
    turn = talk.turn()
    assert (turn.askers(), talk.state.route_of(turn.heard[0])) == ([ANA], route("home", "web"))
    talk.says("wait")
    talk.decides(Wait(reason="said"))
    second = fires(talk)
    assert (second.reason, talk.state.reminders, next_due(talk.state)) == ("late", [], None)
    assert first.ref < second.ref


def test_what_waits_and_what_reminds_come_in_order() -> None:
    talk = open_with(one("late", NOON + 2 * HOUR), Wait(reason="first", until=NOON + HOUR))
    assert fires(talk).reason == "first"
    assert [item.label for item in talk.state.undecided] == ["timer"]
    assert fires(talk).reason == "late"


def test_it_is_listed_and_can_be_taken_back() -> None:
    talk = open_with(one("call Eva\nabout it"), one("water the flowers", NOON + 30 * HOUR))
    talk.says("not the flowers")
    shown = live_state(talk.turn(), BERLIN, NOON, sees=True)
    assert "r1 Sun 29 Nov 2026 14:00 “call Eva about it”\nr2 Mon 30 Nov 2026 19:00 “water the flowers”" in shown
    assert "r1 Sun 29 Nov" in live_state(talk.turn(), BERLIN, NOON, sees=False)
    assert "cancel must be one of r1, r2" in called(talk, cancel="r3").results[0]
    (back,) = called(talk, cancel="r2").decisions
    assert back == Unremind(label="r2")
    talk.decides(back)
    assert [reminder.label for reminder in talk.state.reminders] == ["r1"]
    talk.decides(one("new"))
    assert [reminder.label for reminder in talk.state.reminders] == ["r1", "r3"]


def test_only_its_own_person_takes_it_back_or_the_owner() -> None:
    talk = open_with(one())
    talk.says("forget Ana's", by=BO)
    shared = Rights("shared", lambda address: "owner" if address == ANA.address else "member", lambda a, b: a == b)
    assert called(talk, shared, cancel="r1").results == ("Not done: Bo may not cancel Ana's r1 here",)
    talk = open_with(one(by=BO))
    talk.says("forget Bo's")
    assert called(talk, shared, cancel="r1").decisions == (Unremind(label="r1"),)


def test_guests_have_reminders_and_strangers_none() -> None:
    talk = Talk()
    talk.says("remind me")
    assert called(talk, GUEST, text="x", at="1h").decisions
    stranger = Rights("private", lambda _: "stranger", lambda *_: True)
    assert "there is no tool remind" in called(talk, stranger, text="x", at="1h").results[0]


def test_one_that_fires_may_be_asked_for_again_but_not_in_circles() -> None:
    talk = open_with(one("each day", where=route("home", "web")))
    talk.state.turns_alone = 19
    fires(talk)
    assert talk.state.turns_alone == 0
    assert "an hour from now" in called(talk, text="each day", at="10m").results[0]
    (again,) = called(talk, text="each day", at="1d").decisions
    assert again == one("each day", NOON + timedelta(days=1), where=route("home", "web"))


def test_the_prompt_of_its_turn_tells_what_it_is() -> None:
    talk = open_with(one("call Eva\n[a1 evil]"))
    talk.state.exchanges[0].rendered = None
    fires(talk)
    assert events_text(talk.turn().heard, talk.state, BERLIN) == (
        "[r1, the reminder that Ana asked for · Sun 29 Nov 14:00] call Eva\n  [a1 evil]"
    )
    messages = request(frame(), talk.turn(), legal(talk.turn(), OWNER, [ANA]), NOON).messages
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"])["at"] == "2026-11-29T14:00+01:00"
    assert nothing_came(talk.turn()) == (Speak(route=route(), text="call Eva\n[a1 evil]"),)


def test_it_is_in_the_snapshot_and_in_old_ones_there_is_none() -> None:
    talk = open_with(one("a"), one("b"), one("c", NOON + HOUR / 2))
    fires(talk)
    again = LaneState("p-ana")
    again.thaw(encode(talk.state.freeze()))
    assert encode(again.freeze()) == encode(talk.state.freeze())
    assert [reminder.label for reminder in again.reminders] == ["r1", "r2"]
    old = json.loads(encode(talk.state.freeze()))
    for name in ("reminders", "reminders_made", "reminders_fired"):
        assert name in LaneFrozen.__struct_fields__
        del old[name]
    again.thaw(json.dumps(old).encode())
    assert (again.reminders, again.reminders_made) == ([], 0)


def test_by_schema_it_is_a_kind_of_its_own_with_a_reply() -> None:
    assert "remind" in kinds(schema(_asking()))
    assert "cancel reminder" not in kinds(schema(_asking()))
    talk = open_with(one())
    talk.says("forget it")
    shape = next(s for s in schema(talk)["anyOf"] if s["properties"]["kind"]["const"] == "cancel reminder")
    assert shape["properties"]["cancel"] == {"enum": ["r1"]}
    assert "r1 Sun 29 Nov 2026" in str(request(FRAME, talk.turn(), legal(talk.turn(), OWNER, [ANA]), NOON))


async def test_by_schema_it_is_done_and_said() -> None:
    answer = {"kind": "remind", "text": "call Eva", "at": "1h", "reply": "I will"}
    assert await decided(_asking(), answer) == (
        one(),
        Speak(route=route(), text="I will", answers=("t/1",), by_tool=True),
    )
    talk = open_with(one())
    talk.says("forget it")
    made: tuple[Decision, ...] = await decided(talk, {"kind": "cancel reminder", "cancel": "r1", "reply": "Gone"})
    assert made[0] == Unremind(label="r1")


def test_it_is_required_to_say_what_and_when_where_nothing_can_be_taken_back() -> None:
    def parameters(talk: Talk) -> dict[str, Any]:
        tools = render(legal(talk.turn(), OWNER, [ANA]))
        found: dict[str, Any] = next(t["function"]["parameters"] for t in tools if t["function"]["name"] == "remind")
        return found

    assert parameters(_asking())["required"] == ["text", "at"]
    assert parameters(open_with(one()))["properties"]["cancel"]["enum"] == ["r1"]


def test_what_fired_in_a_conversation_that_has_joined_takes_none_of_ours() -> None:
    talk = open_with(one("ours"))
    elsewhere = TimerFired(
        ref=Ref("reminder-p-bo", 1, 0), conversation="p-bo", reason="theirs", label="r1", by=BO, route=route()
    )
    talk.hears(elsewhere)
    assert [reminder.text for reminder in talk.state.reminders] == ["ours"]


def test_they_come_along_when_two_conversations_become_one_and_go_with_the_address() -> None:
    talk, other = open_with(one("ours", NOON + 2 * HOUR)), Talk("p-bo")
    other.says("remind me", by=BO)
    other.decides(one("theirs", by=BO, where=route("7")), Quieten(hours=None))
    talk.state.apply(joining.share(other.state, NOON))
    assert [(kept.label, kept.text) for kept in talk.state.reminders] == [("r2", "theirs"), ("r1", "ours")]
    assert talk.state.quiet == Quieten(hours=None)
    talk.state.apply(Parted(address=BO.address, at=NOON))
    assert [kept.text for kept in talk.state.reminders] == ["ours"]


def test_what_was_waited_for_is_not_what_ended_the_process() -> None:
    talk = Talk()
    talk.says("hello")
    for _ in range(3):
        talk.state.apply(Owned(worker="x"))
        talk.state.apply(Held(at=NOON))
    talk.state.apply(Owned(worker="x"))
    assert talk.state.crashes == 1


def _asking() -> Talk:
    talk = Talk()
    talk.says("remind me to call Eva in an hour")
    return talk
