"""The daily caps: people are told once, nothing is lost, work rests with them, and everything goes on the next day."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from brain import controls, joining
from brain.entries import Decided, Speak, Spent, Steer, Wait
from brain.parts import Spending
from brain.purse import Caps, Purse, steers, told
from brain.state import LaneState
from gateway.events import ActionChanged, ActionProgressed, FileOffered, MessageReceived, Ref
from gateway.files import Attachment
from gateway.llm.model import Generation, Usage
from gateway.record import encode
from tests.brain.people import ANA, BO, NOON, OWNER, Talk, frame, route
from tests.store import stage as stages
from tests.store.conftest import eventually

TODAY = NOON.date().isoformat()


def purse(caps: Caps, now: datetime = NOON) -> tuple[Purse, list[str]]:
    notices: list[str] = []
    return Purse(caps, str, lambda: now, notices.append), notices


def test_a_lane_counts_its_turns_what_was_cancelled_and_its_work_by_person_and_day() -> None:
    talk = Talk()
    key = talk.starts("report", ANA)
    usage = Usage(usd=0.5)
    for at in (NOON - timedelta(days=1), NOON):
        talk.state.apply(Spent(usage=usage, at=at, charged=BO.address))
    turn = talk.state.turns + 1
    talk.state.apply(Decided(turn=turn, at=NOON, covers=(), decisions=(), usage=usage, charged=ANA.address))
    for n, usd in enumerate((0.25, 0.25, 1.0)):
        talk.hears(ActionProgressed(ref=Ref("act", n), conversation="p-ana", action=key, text="x", usd=usd))
    expected = Spending(day=TODAY, usd={str(BO.address): 0.5, str(ANA.address): 1.5})
    assert talk.state.spending == expected
    again = LaneState("p-ana")
    again.thaw(encode(talk.state.freeze()))
    assert again.spending == expected


def test_work_of_a_shared_place_that_is_steered_in_private_counts_and_rests_once() -> None:
    talk = Talk()
    key = talk.starts("report", ANA)
    talk.state.actions[key].elsewhere = True
    talk.hears(ActionProgressed(ref=Ref("act", 1), conversation="p-ana", action=key, text="x", usd=2.0))
    assert talk.state.spending == Spending()
    over, _ = purse(Caps(all=1.0))
    over.note("s-room", Spending(day=TODAY, usd={str(ANA.address): 2.0}))
    assert steers(talk.state, over) == ()


def test_a_cap_is_reached_by_all_conversations_together_and_by_each_person() -> None:
    all_of_it, notices = purse(Caps(all=1.0))
    all_of_it.note("p-ana", Spending(day=TODAY, usd={str(ANA.address): 0.75}))
    assert not all_of_it.is_over([ANA])
    all_of_it.note("p-bo", Spending(day=TODAY, usd={str(BO.address): 0.125, "": 0.125}))
    assert all_of_it.is_over([])
    assert all_of_it.is_over([ANA])
    assert len(notices) == 1
    assert "max_usd_per_day" in notices[0]
    each, _ = purse(Caps(person=0.5))
    each.note("s-room", Spending(day=TODAY, usd={str(ANA.address): 0.25, str(BO.address): 0.25}))
    each.note("p-ana", Spending(day=TODAY, usd={str(ANA.address): 0.25}))
    each.note("p-ana", Spending(day=TODAY, usd={str(ANA.address): 0.25}))
    assert each.is_over([ANA])
    assert not each.is_over([BO])
    assert not each.is_over([])


def test_a_day_is_one_in_the_assistants_time_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    late = NOON.replace(hour=23, minute=30)  # half past midnight in Berlin
    state = LaneState("p-ana", berlin)
    for at in (late - timedelta(hours=1), late):
        state.apply(Spent(usage=Usage(usd=0.5), at=at, charged=ANA.address))
    assert state.spending == Spending(day="2026-11-30", usd={str(ANA.address): 0.5})
    some, _ = purse(Caps(all=0.5, zone=berlin), late)
    some.note("p-ana", state.spending)
    assert some.is_over([])
    assert some.until == datetime(2026, 12, 1, tzinfo=berlin)


def test_yesterday_does_not_count() -> None:
    some, notices = purse(Caps(all=1.0, person=0.5))
    some.note("p-ana", Spending(day=(NOON - timedelta(days=1)).date().isoformat(), usd={str(ANA.address): 9.0}))
    assert not some.is_over([ANA])
    assert not notices


def test_they_are_told_once_a_day_with_the_time_in_their_zone() -> None:
    talk = Talk()
    talk.says("hello")
    until = NOON.replace(hour=0) + timedelta(days=1)
    (line,) = told(talk.turn(), until, frame().zone)
    assert isinstance(line, Speak)
    assert "01:00 (CET)" in line.text
    talk.state.apply(Decided(turn=1, at=NOON, covers=(), decisions=(line,), by="cap"))
    assert told(talk.turn(), until, frame().zone) == ()
    assert talk.state.undecided
    assert told(talk.turn(), until + timedelta(days=1), frame().zone)


def test_work_of_whoever_is_over_rests_and_goes_on_and_what_a_person_paused_does_not() -> None:
    talk = Talk()
    key, other = talk.starts("report", ANA), talk.starts("trip", ANA)
    talk.decides(Steer(verb="pause", action=other, by=ANA))
    over, _ = purse(Caps(all=1.0))
    over.note("p-bo", Spending(day=TODAY, usd={"": 1.0}))
    resting = steers(talk.state, over)
    assert [(one.verb, one.action) for one in resting] == [("pause", key)]
    talk.state.apply(Decided(turn=talk.state.turns + 1, at=NOON, covers=(), decisions=resting, by="cap"))
    talk.hears(ActionChanged(ref=Ref("act", 1), conversation="p-ana", action=key, phase="paused"))
    assert steers(talk.state, over) == ()
    next_day, _ = purse(Caps(all=1.0), NOON + timedelta(days=1))
    going_on = steers(talk.state, next_day)
    assert [(one.verb, one.action) for one in going_on] == [("resume", key)]
    talk.state.apply(Decided(turn=talk.state.turns + 1, at=NOON, covers=(), decisions=going_on, by="cap"))
    assert talk.state.resting == []


def test_who_resumes_what_rests_at_a_cap_is_told_when_it_goes_on() -> None:
    talk = Talk()
    report, trip = talk.starts("report", ANA), talk.starts("trip", ANA)
    for key in (report, trip):
        talk.hears(ActionChanged(ref=Ref("act", talk.state.turns), conversation="p-ana", action=key, phase="paused"))
        talk.decides(Steer(verb="pause", action=key, by=ANA))
    talk.state.resting.append(report)
    rights = OWNER

    def said(text: str) -> list[object]:
        talk.says(text)
        turn = talk.turn()
        talk.decides(by="control")
        return list(controls.decisions(turn.heard[-1], turn, rights))

    (rests,) = said("/resume report")
    assert rests.text.startswith("The budget for today is used up: “report”")
    resumed, line = said("/resume all")
    assert (resumed.verb, resumed.action) == ("resume", trip)
    assert line.text.splitlines()[0] == "Resumed: trip."
    assert "“report” can't go on now" in line.text


def test_what_rests_and_what_was_overheard_goes_on_where_the_conversation_goes() -> None:
    old, new = Talk("p-guest"), Talk("p-ana")
    new.says("hello")
    new.decides()
    key = old.starts("report", ANA)
    old.state.resting.append(key)
    pdf = Attachment(digest="d", name="report.pdf", kind="application/pdf", size=3)
    old.hears(FileOffered(ref=Ref("act", 1), conversation="p-guest", action=key, file=pdf))
    new.state.apply(joining.share(old.state, NOON))
    assert new.state.resting == [key]
    assert [(item.label, item.files) for item in new.state.overheard] == [("a1", ("f1",))]
    assert new.state.files == {"f1": pdf}


# --- in a gateway ----------------------------------------------------------------------------------------------------


class Costly:
    """Each answer costs a dollar."""

    name = "costly"

    def __init__(self) -> None:
        self.requests = []

    async def generate(self, request, on_spent=None):
        self.requests.append(request)
        return Generation(text="I see.", model=self.name, usage=Usage(prompt_tokens=1, usd=1.0))


def message(n: int, text: str) -> MessageReceived:
    return MessageReceived(identity=f"t/{n}", route=route(), author=ANA, text=text, at=NOON)


async def test_at_the_cap_what_they_say_is_kept_hatches_work_and_the_next_day_answers(tmp_path) -> None:
    """The clock stands just before midnight, until it is moved."""
    clock = [datetime(2026, 11, 29, 23, 59, 59, 800_000, tzinfo=UTC)]
    model, platform = Costly(), stages.FakePlatform()
    async with stages.stage(
        tmp_path / "store.db", model, ["42"], [platform], caps=Caps(person=1.0), now=lambda: clock[0]
    ) as stage:
        await stage.hears(message(1, "Hello."))
        await eventually(lambda: platform.texts() == ["I see."])
        for n, text in ((2, "And now?"), (3, "Are you there?"), (4, "/status")):
            await stage.hears(message(n, text))
        await eventually(lambda: len(platform.texts()) == 3)
        line = next(text for text in platform.texts() if "budget" in text)
        assert "00:00 (UTC)" in line
        assert "Nothing is in flight." in platform.texts()
        assert len(model.requests) == 1
        assert ["max_usd_per_person_per_day" in notice for notice in stage.notices] == [True]
        clock[0] += timedelta(seconds=1)
        await eventually(lambda: len(platform.texts()) == 4)
        assert platform.texts()[3] == "I see."
        events = model.requests[1].messages[-2]["content"]
        assert "And now?" in events
        assert "Are you there?" in events


def test_work_that_rests_at_a_cap_does_not_end_what_was_waited_for() -> None:
    talk = Talk()
    key = talk.starts()
    talk.says("tell me at one")
    talk.decides(Wait(reason="at one", until=NOON + timedelta(hours=1)))
    talk.state.apply(
        Decided(turn=9, at=NOON, covers=(), decisions=(Steer(verb="pause", action=key, by=ANA),), by="cap")
    )
    assert talk.state.timer is not None


def test_a_hatch_in_an_outage_does_not_end_it() -> None:
    talk = Talk()
    talk.says("hello")
    talk.state.apply(Decided(turn=1, at=NOON, covers=(), decisions=(), by="outage"))
    talk.state.apply(Decided(turn=2, at=NOON, covers=(), decisions=(), by="control"))
    assert talk.state.outage
