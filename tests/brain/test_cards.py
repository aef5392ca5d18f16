"""What a status card says, when it is shown, and what its buttons and plain words come to: pure parts."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from brain.cards import card_of, plan
from brain.controls import ANSWERED, ENDED, NOT_KNOWN, decisions, is_plain_control
from brain.entries import Act, Carded, Speak, Steer, Wait
from brain.hold import Pace
from brain.parts import Heard
from brain.rights import Rights
from brain.turn import Turn
from brain.working import ActionView
from gateway.cards import pressed
from gateway.events import (
    ActionChanged,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    ClarificationClosed,
    ClarificationRequested,
    ControlPressed,
    Ref,
    ShowCard,
)
from tests.brain.people import ANA, BO, Talk, route

PACE, BERLIN = Pace(), ZoneInfo("Europe/Berlin")
RIGHTS = Rights("shared", lambda address: "member", lambda one, other: one == other)
FACTS = iter(range(1, 10_000))


class Work(Talk):
    """A talk with an action in it, and the cards that come of it."""

    def tells(self, kind: type, action: str, **fields: object) -> None:
        self.hears(kind(ref=Ref("act", next(FACTS), 0), conversation="p-ana", action=action, **fields))

    def asks(self, action: str, *options: str) -> None:
        self.tells(ClarificationRequested, action, question="question1", text="Which Sarah?", options=options)

    def shows(self, after_seconds: float = 0.0) -> list[str]:
        """Heads of the cards that are due by then."""
        self.now += timedelta(seconds=after_seconds)
        due = plan(self.state, BERLIN, self.now, PACE).due
        for carded in due:
            self.state.apply(carded)
        return [one.card.text.partition("\n")[0] for one in due]

    def again_in(self) -> float | None:
        again = plan(self.state, BERLIN, self.now, PACE).again
        return None if again is None else (again - self.now).total_seconds()

    def view(self, key: str) -> ActionView:
        return self.state.actions[key]


@pytest.fixture
def work() -> Work:
    return Work()


def starts(work: Work, *said: str, name: str = "booking", medium: str = "telegram") -> str:
    place = route("42", medium)
    work.says("book", at=place)
    speaks = [Speak(route=place, text=text) for text in said]
    work.decides(*speaks, Act(name=name, query=f"do *{name}*\nfor me", by=ANA, route=place))
    return list(work.state.actions)[-1]


def test_work_that_begins_without_a_word_has_a_card_at_once(work: Work) -> None:
    starts(work)
    assert work.shows() == ["**booking** · working since 13:00"]
    assert work.shows(600) == []


def test_work_that_begins_with_a_word_has_one_when_it_takes_long(work: Work) -> None:
    key = starts(work, "On it")
    assert work.shows() == []
    assert work.again_in() == PACE.card_seconds
    assert len(work.shows(PACE.card_seconds)) == 1
    other = starts(work, "On it", name="quick")
    work.tells(ActionResponded, other, text="Done")
    assert work.shows(60) == []
    assert work.again_in() is None
    assert work.view(key).card is not None


@pytest.mark.parametrize("medium", ["email", "web", "terminal"])
def test_where_nothing_can_be_edited_there_is_no_card(work: Work, medium: str) -> None:
    key = starts(work, medium=medium)
    work.tells(ActionProgressed, key, text="half of it")
    assert work.shows(600) == []


def test_what_matters_is_changed_at_once_and_what_it_is_at_now_and_then(work: Work) -> None:
    key = starts(work)
    work.shows()
    work.tells(ActionChanged, key, phase="running", doing="reading page 1")
    assert work.shows() == []
    work.tells(ActionChanged, key, phase="running", doing="reading page 2")
    assert work.shows(PACE.card_rest_seconds) != []
    assert "page 2" in card_of(work.view(key), BERLIN).text
    work.tells(ActionChanged, key, phase="paused")
    assert work.shows() == ["**booking** · paused"]


def test_a_question_with_options_has_them_as_buttons_until_it_is_answered(work: Work) -> None:
    key = starts(work, "On it")
    work.asks(key, "Lind", "Okafor")
    assert work.shows() == ["**booking** · waits for an answer"]
    card = card_of(work.view(key), BERLIN)
    assert [one.text for one in card.buttons] == ["Lind", "Okafor", "Pause", "Stop"]
    data = pressed(card.buttons[1].press)
    assert (data.verb, data.question, data.option) == ("answer", "question1", 1)
    assert work.state.pressed(data.action) is work.view(key)
    assert len(card.buttons[1].press.encode()) <= 64
    work.tells(ClarificationClosed, key, question="question1")
    assert [one.text for one in card_of(work.view(key), BERLIN).buttons] == ["Pause", "Stop"]
    assert len(work.shows()) == 1


@pytest.mark.parametrize(("end", "word"), [("succeeded", "done"), ("failed", "failed"), ("stopped", "stopped")])
def test_an_end_is_the_last_that_a_card_says(work: Work, end: str, word: str) -> None:
    key = starts(work)
    work.shows()
    work.tells(ActionEnded, key, end=end, text="what it had")
    assert work.shows() == [f"**booking** · {word}"]
    card = work.view(key).card
    assert card is not None
    assert (card.ended, card.buttons) == (True, ())
    assert work.shows(600) == []


def test_the_next_job_of_a_session_has_a_card_of_its_own(work: Work) -> None:
    key = starts(work)
    work.shows()
    work.tells(ActionResponded, key, text="February")
    assert work.shows() == ["**booking** · done"]
    work.says("now March")
    work.decides(Steer(verb="interject", action=key, by=ANA, text="now March"))
    assert len(work.shows()) == 1
    shown = [one.body for one in work.state.outgoing if isinstance(one.body, ShowCard)]
    assert [(one.run, one.card.ended) for one in shown] == [(0, False), (0, True), (1, False)]
    assert [one.ref for one in shown] == sorted(one.ref for one in shown)


def test_refs_of_cards_stand_in_order_among_those_of_turns(work: Work) -> None:
    for name in ("one", "two"):
        starts(work, name=name)
        work.shows()
    work.decides(Speak(route=route(), text="hello"))
    refs = [one.ref for one in work.state.outgoing]
    assert len(refs) == 5
    assert refs == sorted(refs)


def test_what_people_wrote_is_shown_as_it_is(work: Work) -> None:
    key = starts(work)
    assert card_of(work.view(key), BERLIN).text.splitlines()[1] == r"do \*booking\* for me"


def test_a_card_that_is_due_is_written_once(work: Work) -> None:
    key = starts(work)
    (carded,) = plan(work.state, BERLIN, work.now, PACE).due
    assert isinstance(carded, Carded)
    assert carded.action == key
    work.state.apply(carded)
    assert plan(work.state, BERLIN, work.now, PACE).due == []


# --- presses ---------------------------------------------------------------------------------------------------------


def press(work: Work, verb: str, by: object = ANA, action: str = "a1", **more: object) -> list[object]:
    fact = ControlPressed(
        identity=f"press/{next(FACTS)}", route=route(), author=by, at=work.now, verb=verb, action=action, **more
    )
    heard = Heard(label=action, fact=fact, at=work.now, control=True)
    return list(decisions(heard, Turn(heard=(heard,), state=work.state), RIGHTS))


def test_a_press_steers(work: Work) -> None:
    key = starts(work)
    (steer,) = press(work, "pause")
    assert steer == Steer(verb="pause", action=key, by=ANA, via="telegram")


def test_an_option_that_is_pressed_is_its_words(work: Work) -> None:
    key = starts(work)
    work.asks(key, "Lind", "Okafor")
    (steer,) = press(work, "answer", question="question1", option=1)
    assert isinstance(steer, Steer)
    assert (steer.text, steer.question) == ("Okafor", "question1")


@pytest.mark.parametrize(
    ("verb", "more", "why"),
    [
        ("stop", {"by": BO}, "“booking” is Ana's"),
        ("stop", {"action": "a9"}, NOT_KNOWN),
        ("resume", {}, "It goes on already."),
        ("answer", {"question": "question9", "option": 0}, ANSWERED),
        ("answer", {"question": "question1", "option": 7}, "That is no option"),
    ],
)
def test_a_press_that_does_nothing_says_why(work: Work, verb: str, more: dict[str, object], why: str) -> None:
    key = starts(work)
    work.asks(key, "Lind", "Okafor")
    (wait,) = press(work, verb, **more)
    assert isinstance(wait, Wait)
    assert why in wait.reason


def test_a_press_on_what_has_ended_says_so(work: Work) -> None:
    key = starts(work)
    work.tells(ActionEnded, key, end="succeeded", text="done")
    for verb in ("pause", "resume", "stop", "answer"):
        assert press(work, verb) == [Wait(reason=ENDED)]


def test_a_button_means_the_same_action_when_labels_change(work: Work) -> None:
    """As where two conversations become one."""
    key = starts(work)
    (button, _) = card_of(work.view(key), BERLIN).buttons
    work.view(key).label = "a7"
    starts(work, name="other")
    (steer,) = press(work, "pause", action=pressed(button.press).action)
    assert isinstance(steer, Steer)
    assert steer.action == key


def test_a_second_press_finds_it_done(work: Work) -> None:
    starts(work)
    (steer,) = press(work, "pause")
    assert isinstance(steer, Steer)
    work.decides(steer, by="control")
    assert press(work, "pause") == [Wait(reason="It stands still already.")]


# --- plain words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["stop", "STOP", " Stop. ", "stop booking", "stop a1", "stop all", "pause!", "status"])
def test_a_word_alone_is_a_command_where_it_fits(work: Work, text: str) -> None:
    starts(work)
    assert is_plain_control(text, work.state)


@pytest.mark.parametrize(
    "text",
    [
        "stop sending me these",
        "stop\nthat",
        "please stop",
        "resume",
        "resume booking",
        "status of the flight",
        "stop rome",
        "help me",
    ],
)
def test_what_may_mean_something_else_is_for_the_model(work: Work, text: str) -> None:
    starts(work)
    assert not is_plain_control(text, work.state)


def test_without_work_only_status_and_help_are_commands(work: Work) -> None:
    assert [word for word in ("status", "help", "stop", "pause", "resume") if is_plain_control(word, work.state)] == [
        "status",
        "help",
    ]


def test_a_word_that_is_an_option_of_a_question_is_its_answer(work: Work) -> None:
    key = starts(work)
    work.asks(key, "go on", "Stop")
    assert not is_plain_control("stop", work.state)
    assert is_plain_control("pause", work.state)


def says(work: Work, text: str, by: object = ANA) -> list[object]:
    fact = work.says(text, by)
    heard = Heard(label="m1", fact=fact, at=work.now, control=True)
    return list(decisions(heard, Turn(heard=(heard,), state=work.state), RIGHTS))


def test_a_plain_stop_among_several_asks_which_and_a_slash_stops_all(work: Work) -> None:
    one, two = starts(work, name="rome"), starts(work, name="oslo")
    (spoken,) = says(work, "stop")
    assert isinstance(spoken, Speak)
    assert "`stop a1`: **rome**" in spoken.text
    assert "`stop a2`: **oslo**" in spoken.text
    for all_of_them in ("/stop", "/stop all", "stop all"):
        assert [steer.action for steer in says(work, all_of_them)] == [one, two]
    assert [steer.action for steer in says(work, "stop oslo")] == [two]


def test_a_name_that_fits_several_asks_which(work: Work) -> None:
    starts(work, name="mail_sarah")
    starts(work, name="mail_ben")
    (spoken,) = says(work, "/stop mail")
    assert isinstance(spoken, Speak)
    assert "Which one?" in spoken.text
    third = starts(work, name="mail")
    assert [steer.action for steer in says(work, "/stop mail")] == [third]


@pytest.mark.parametrize("text", ["stop Rome trip", "/stop rome-trip", "/stop rome_trip"])
def test_a_name_is_said_as_people_say_it(work: Work, text: str) -> None:
    trip, _ = starts(work, name="rome_trip"), starts(work, name="oslo")
    assert is_plain_control(text, work.state) or text.startswith("/")
    assert [steer.action for steer in says(work, text)] == [trip]
    (spoken,) = says(work, "/stop ***")
    assert isinstance(spoken, Speak)


def test_who_may_not_is_told_so(work: Work) -> None:
    starts(work)
    (spoken,) = says(work, "/stop booking", BO)
    assert isinstance(spoken, Speak)
    assert spoken.text == "You may not stop “booking”: it is Ana's."
