"""LM01, LM02, LM07 for the conversation: its prompt is valid, fits, and keeps what the turn is about."""

import json
import random

import msgspec
import pytest

from brain import joining
from brain.entries import Act, Speak
from brain.hearing import OVERHEARD_KEPT
from brain.outage import nothing_came
from brain.parts import Heard, Share
from brain.prompt import request
from brain.reading import read
from brain.state import LaneState
from brain.telling import EVENTS_CHARACTERS
from brain.tools import legal, render
from brain.turn import Turn
from brain.turns import MAX_EVENTS, events
from gateway.broker.protocol import MAX_ENTRY_BYTES
from gateway.events import ActionResponded, Ref
from gateway.llm.history import fitted, healed, tokens_of
from gateway.llm.model import Generation, Message
from gateway.record import decode, encode
from tests.brain.people import ANA, NOON, OWNER, Talk, frame
from tests.people.town import call
from tests.servers.openai_rules import broken_rule
from tests.store import words

FIXED_TOKENS = 1500


def prompt_of(state: LaneState, heard: tuple[Heard, ...]) -> list[Message]:
    turn = Turn(heard=heard, state=state)
    return request(frame(), turn, legal(turn, OWNER, [ANA]), NOON).messages


def test_the_fixed_part_is_small() -> None:
    tools = render(legal(Talk().turn(), OWNER, [ANA]))
    assert tokens_of(frame().instructions) + tokens_of(json.dumps(tools)) <= FIXED_TOKENS


@pytest.mark.parametrize("seed", range(12))
def test_any_conversation_makes_a_valid_prompt_and_fits_any_budget(seed: int) -> None:
    """Random facts and decisions, with broken sends and forgotten actions among them."""
    state = next(state for n in range(250, 300) if (state := words.lane(seed, n).state).undecided)
    any_of = random.Random(seed)
    said = [item for exchange in state.exchanges for item in exchange.heard if hasattr(item.fact, "text")]
    for item in any_of.sample(said, min(3, len(said))):
        item.fact = msgspec.structs.replace(item.fact, text="long " * any_of.choice([10, 5_000, 40_000]))
    messages = prompt_of(state, tuple(state.undecided))
    assert broken_rule({"messages": messages}) is None
    assert healed(messages) == messages
    for budget in (0, 100, 700, 2_000, 8_000, 30_000):
        kept = fitted(messages, budget)
        assert broken_rule({"messages": kept}) is None, budget
        assert kept[0] == messages[0]
        assert [m["content"][:60] for m in kept[-2:]] == [m["content"][:60] for m in messages[-2:]]


def test_what_the_turn_is_about_outlives_any_history() -> None:
    talk = Talk()
    for n in range(100):
        said = talk.says(f"message {n} " + "so long ago " * 100)
        talk.decides(Speak(route=said.route, text="I see " * 50))
    talk.says("the end, at last")
    kept = fitted(prompt_of(talk.state, tuple(talk.state.undecided)), 1_500)
    assert "the end, at last" in kept[-2]["content"]
    assert kept[-1]["content"].startswith("(State at")


def test_a_thousand_messages_at_once_are_turns_of_a_bounded_size() -> None:
    talk = Talk()
    for n in range(1_000):
        talk.says(f"message {n} " + "word " * 400)
    heard = events(talk.state)
    assert [item.label for item in heard] == [f"m{n}" for n in range(1, MAX_EVENTS + 1)]
    shown = prompt_of(talk.state, heard)[-2]["content"]
    assert len(shown) < EVENTS_CHARACTERS + MAX_EVENTS * 200
    assert all(f"message {n} " in shown for n in range(MAX_EVENTS))
    assert "more characters are not shown" in shown


def test_a_room_that_talks_among_itself_for_long_does_not_fill_the_prompt() -> None:
    talk = Talk("s-room")
    for n in range(1_000):
        talk.says(f"aside {n}", private=False, addressed=False)
    talk.says("you there?", private=False)
    assert len(talk.state.overheard) == OVERHEARD_KEPT
    assert "aside 999" in prompt_of(talk.state, tuple(talk.state.undecided))[-2]["content"]


def test_what_a_conversation_brings_into_another_fits_an_entry() -> None:
    talk = Talk()
    for n in range(30):
        said = talk.says(f"do {n} " + "ö" * 4_000)
        talk.decides(
            Act(name="x", query="ö" * 60_000, by=ANA, route=said.route), Speak(route=said.route, text="ö" * 60_000)
        )
        talk.state.overheard += [Heard(label="m1", fact=said, at=NOON)]
    joined = joining.share(talk.state, NOON)
    assert len(encode(joined)) < MAX_ENTRY_BYTES
    assert len(decode(bytes(joined.share), Share).actions) == 30
    other = Talk("p-other")
    other.state.apply(joined)
    assert "do 29" in str(other.state.overheard)


@pytest.mark.parametrize("results", [6, 60])
def test_results_that_are_passed_on_as_they_are_fit_an_entry(results: int) -> None:
    talk = Talk()
    for number, key in enumerate([talk.starts(f"part{n}") for n in range(results)], 1):
        ref = Ref("act", number, 0)
        talk.hears(ActionResponded(ref=ref, conversation="p-ana", action=key, text=f"{number} " + "字" * 19_000))
    made = nothing_came(talk.turn())
    assert len(encode(made)) < MAX_ENTRY_BYTES - 20_000
    told = [one.text.partition(" ")[0] for one in made if isinstance(one, Speak)]
    assert told == [f"{n}" for n in range(1, results + 1)]


def test_more_words_than_an_entry_holds_are_refused() -> None:
    talk = Talk()
    talk.says("tell me all")
    calls = tuple(call("send_message", text=letter * 60_000) for letter in "äöü")
    found = read(Generation(calls=calls), legal(talk.turn(), OWNER, [ANA]), talk.turn(), OWNER, NOON)
    assert (len(found.decisions), found.refused) == (1, True)
    assert "too much for one turn" in found.results[-1]
    again = read(Generation(calls=calls), legal(talk.turn(), OWNER, [ANA]), talk.turn(), OWNER, NOON, found.decisions)
    assert again.decisions == found.decisions, "what is said once more takes no more room"
