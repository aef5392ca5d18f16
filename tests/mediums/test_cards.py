"""Status cards on the mediums that have them: sent silently, edited in place, pressed, and the press answered."""

import contextlib

import pytest

from gateway.addresses import Address, Route
from gateway.cards import Button, Card, press
from gateway.events import ControlPressed
from gateway.live import TurnDecided
from mediums.medium import OutcomeUnknown, Rejected, SurelyNotSent
from tests.mediums.stages import open_stage
from tests.mediums.waiting import Inbox, receiving
from tests.servers.slack import LOST_ANSWER as SLACK_LOST
from tests.servers.slack import Refuse as SlackRefuse
from tests.servers.telegram import LOST_ANSWER, Refuse

RUNNING = Card(
    text="**booking** · working\nBook *Rome* & <b>",
    buttons=(
        Button(text="Lind", press=press("answer", "a1", "question1", 0)),
        Button(text="Okafor", press=press("answer", "a1", "question1", 1)),
        Button(text="Pause", press=press("pause", "a1")),
        Button(text="Stop", press=press("stop", "a1")),
    ),
)
DONE = Card(text="**booking** · done", ended=True)
EDIT = {"telegram": "editMessageText", "slack": "chat.update"}


@pytest.fixture(params=["telegram", "slack"])
async def stage(request):
    async with open_stage(request.param) as opened:
        yield opened


def buttons(shown):
    return [one if isinstance(one, str) else one[0] for one in shown.buttons]


def fault(stage, kind):
    """That medium's own way to fail."""
    name = stage.medium().name
    faults = {
        ("telegram", "flood"): Refuse(429, "Too Many Requests", retry_after=3),
        ("slack", "flood"): SlackRefuse("ratelimited", 429, retry_after=3),
        ("telegram", "lost"): LOST_ANSWER,
        ("slack", "lost"): SLACK_LOST,
        ("telegram", "gone"): Refuse(400, "Bad Request: message to edit not found"),
        ("slack", "gone"): SlackRefuse("message_not_found"),
    }
    stage.server.script(EDIT[name], faults[name, kind])


async def test_a_card_is_edited_in_place(stage):
    medium = stage.medium()
    card = await medium.show_card(stage.route, RUNNING, None)
    (shown,) = stage.server.shown
    assert "booking · working" in shown.text.replace("*", "")
    assert "& <b>" in shown.text
    assert buttons(shown) == ["Lind", "Okafor", "Pause", "Stop"]
    assert await medium.show_card(stage.route, DONE, card) == card
    (edited,) = stage.server.shown
    assert buttons(edited) == []
    assert "done" in edited.text
    assert edited.before == (shown.text,)


async def test_an_edit_that_changes_nothing_is_done(stage):
    medium = stage.medium()
    card = await medium.show_card(stage.route, RUNNING, None)
    assert await medium.show_card(stage.route, RUNNING, card) == card


@pytest.mark.parametrize(("kind", "end"), [("flood", SurelyNotSent), ("lost", OutcomeUnknown), ("gone", Rejected)])
async def test_an_edit_says_what_became_of_it(stage, kind, end):
    medium = stage.medium()
    card = await medium.show_card(stage.route, RUNNING, None)
    fault(stage, kind)
    with pytest.raises(end) as raised:
        await medium.show_card(stage.route, DONE, card)
    if kind == "flood":
        assert raised.value.retry_after_seconds == 3
    if kind == "lost":
        assert await medium.show_card(stage.route, DONE, card) == card
        assert len(stage.server.shown) == 1


@contextlib.asynccontextmanager
async def pressed(stage, medium, button, decide):
    """The fact of a press, and what `decide` says of it is signalled."""
    inbox = Inbox()
    async with receiving(medium, inbox):
        (shown,) = stage.server.shown
        query = stage.ana.presses(shown, button)
        await inbox.holds(1)
        (fact,) = inbox.facts
        await medium.show(TurnDecided(route=fact.route, covers=(fact.identity,), **decide))
        await stage.server.until(lambda: not stage.server.unconfirmed)
        yield fact, query


async def test_a_press_is_an_event_of_who_pressed_where_it_was_pressed(stage):
    medium = stage.medium()
    card = await medium.show_card(stage.route, RUNNING, None)
    async with pressed(stage, medium, "Okafor", {"passed_on": "answered"}) as (fact, _):
        assert isinstance(fact, ControlPressed)
        assert (fact.verb, fact.action, fact.question, fact.option) == ("answer", "a1", "question1", 1)
        user = {"telegram": str(stage.ana.id), "slack": f"T1/{stage.ana.id}"}[medium.name]
        assert fact.author.address == Address(medium=medium.name, user=user)
        assert fact.private
        assert fact.route == Route(
            medium=medium.name, account=medium.account, place=stage.route.place, thread=None, reply_to=card
        )


async def test_who_pressed_is_told_why_nothing_came_of_it(stage):
    medium, why = stage.medium(), "The task <!channel> & more has ended already."
    await medium.show_card(stage.route, RUNNING, None)
    async with pressed(stage, medium, "Stop", {"silence": why}) as (_, query):
        if medium.name == "telegram":
            await stage.server.until(lambda: query["id"] in stage.server.toasts)
            assert stage.server.toasts[query["id"]] == why
        else:
            await stage.server.until(lambda: stage.server.whispers)
            assert stage.server.whispers == [(stage.ana.id, stage.route.place, why, None)]
        assert len(stage.server.shown) == 1


async def test_two_presses_are_two_events(stage):
    medium, inbox = stage.medium(), Inbox()
    await medium.show_card(stage.route, RUNNING, None)
    async with receiving(medium, inbox):
        for _ in range(2):
            stage.ana.presses(stage.server.shown[0], "Stop")
        await inbox.holds(2)
    assert len({fact.identity for fact in inbox.facts}) == 2


async def test_a_press_is_durable_before_it_is_confirmed(stage):
    """What could not be stored comes again, as the same event."""
    medium = stage.medium()
    await medium.show_card(stage.route, RUNNING, None)
    stage.ana.presses(stage.server.shown[0], "Stop")
    tried = []

    async def fails(fact):
        tried.append(fact)
        raise ConnectionError("the disk is full")

    with pytest.raises(ConnectionError):
        await medium.receive(fails, Inbox().keep)
    assert stage.server.unconfirmed
    inbox = Inbox()
    async with receiving(stage.medium(), inbox):
        await inbox.holds(1)
    assert [fact.identity for fact in inbox.facts] == [tried[0].identity]


# --- Telegram alone --------------------------------------------------------------------------------------------------


async def test_cards_make_no_sound_and_go_to_their_topic(telegram):
    group = telegram.server.group("Trips", is_forum=True)
    medium = telegram.medium()
    route = Route(medium="telegram", account=medium.account, place=str(group["id"]), thread="77")
    await medium.show_card(route, RUNNING, None)
    (shown,) = telegram.server.shown
    assert (shown.silent, shown.thread) == (True, 77)
    async with pressed(telegram, medium, "Stop", {"passed_on": "stopping"}) as (fact, _):
        assert (fact.private, fact.route.thread) == (False, "77")


async def test_forged_presses_are_answered_and_are_no_events(telegram):
    medium, inbox = telegram.medium(), Inbox()
    await medium.show_card(telegram.route, RUNNING, None)
    async with receiving(medium, inbox):
        for data in ("", "x", "delete/a1//", "stop/a1", "answer/a1/-1/q", "stop//" + "9" * 500):
            query = telegram.server.press(telegram.ana.user, telegram.server.shown[0], data, {})
            await telegram.server.until(lambda query=query: query["id"] in telegram.server.toasts)
        await telegram.says("hello")
        await inbox.has(1)
    assert inbox.texts == ["hello"]


async def test_a_press_is_answered_also_while_nobody_decides(telegram):
    medium, inbox = telegram.medium(), Inbox()
    await medium.show_card(telegram.route, RUNNING, None)
    async with receiving(medium, inbox):
        query = telegram.ana.presses(telegram.server.shown[0], "Stop")
        await telegram.says("next")  # is not held up
        await inbox.holds(2)
        await telegram.server.until(lambda: telegram.server.toasts.get(query["id"]) == "")


async def test_the_commands_are_proposed_at_the_start(telegram):
    async with receiving(telegram.medium(), Inbox()):
        await telegram.server.until(lambda: telegram.server.commands)
    words = [one["command"] for one in telegram.server.commands]
    assert words == ["status", "stop", "pause", "resume", "help"]


# --- Slack alone -----------------------------------------------------------------------------------------------------


async def test_a_card_of_a_channel_is_pressed_in_its_thread():
    async with open_stage("slack") as slack:
        general, medium = slack.server.channel("general"), slack.medium()
        route = Route(medium="slack", account=medium.account, place=general.id, thread="1.000100")
        await medium.show_card(route, RUNNING, None)
        async with pressed(slack, medium, "Stop", {"silence": "no"}) as (fact, _):
            assert (fact.private, fact.route.thread) == (False, "1.000100")
            await slack.server.until(lambda: slack.server.whispers)
            assert slack.server.whispers[0][3] == "1.000100"


@pytest.mark.parametrize("name", ["email", "local"])
async def test_others_have_no_cards(name):
    async with open_stage(name) as opened:
        with pytest.raises(Rejected):
            await opened.medium().show_card(opened.route, RUNNING, None)
