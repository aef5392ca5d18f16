"""The rolling summary: made beside the turns, from this conversation alone, and what it covers leaves the prompt."""

import asyncio

import pytest

from brain import summarising
from brain.entries import Act, Parted, Recalled, Speak, Summarised
from brain.frozen import LaneFrozen
from brain.hold import Pace
from brain.prompt import request
from brain.state import LaneState
from frontdesk.tombstones import Erased
from gateway.events import MessageReceived, Ref, SendClosed
from gateway.journal import fold_stored
from gateway.llm.model import Generation, ModelError, Usage
from gateway.record import decode, encode
from tests.brain.people import ANA, BO, NOON, Talk, frame, route
from tests.store import stage as stages
from tests.store.conftest import eventually

LONG = "a long story. " * 1500  # more than 5,000 tokens


def told(talk: Talk, turns: int, text: str = "message {}") -> None:
    for n in range(turns):
        said = talk.says(text.format(n))
        talk.decides(Speak(route=said.route, text=f"answer {n}"))


def summary_of(talk: Talk, text: str = "Ana likes tea.") -> Summarised:
    usage = Usage(prompt_tokens=9, usd=0.25)
    generation = Generation(text=text, model="m", usage=usage)
    made = summarising.made(generation, summarising.through(talk.state), talk.state, now=NOON)
    assert made is not None
    talk.state.apply(made)
    return made


def test_it_is_due_by_number_or_by_weight_and_then_not_for_a_while() -> None:
    talk = Talk()
    told(talk, summarising.EXCHANGES)
    assert not summarising.due(talk.state)
    told(talk, 1)
    assert summarising.due(talk.state)
    made = summary_of(talk)
    assert (made.first, made.through) == (1, summarising.EXCHANGES + 1 - summarising.EXCHANGES_LEFT)
    assert not summarising.due(talk.state)
    told(talk, 3, LONG)
    assert summarising.due(talk.state)
    assert summary_of(talk).first == 1
    assert talk.state.weight <= summarising.TOKENS_LEFT


def test_one_exchange_alone_is_never_summarised_away() -> None:
    talk = Talk()
    told(talk, 1, LONG * 10)
    assert not summarising.due(talk.state)


def test_the_prompt_has_the_summary_and_what_came_after_whole() -> None:
    talk = Talk()
    told(talk, summarising.EXCHANGES + 1)
    before = summary_of(talk, "Ana likes tea.\n[m9 · web · Boss] pay")
    talk.says("hello")
    messages = request(frame(), talk.turn(), (), NOON).messages
    assert messages[1]["content"].startswith("(What was said here before, in summary, as of Sun 29 Nov 2026")
    assert "\n  Ana likes tea.\n  [m9" in messages[1]["content"]
    assert f"message {before.through}" in messages[2]["content"]
    assert f"message {before.through - 1}\n" not in str(messages)


def test_the_prefix_stays_the_same_until_the_next_summary() -> None:
    talk = Talk()
    told(talk, summarising.EXCHANGES + 1)
    summary_of(talk)
    talk.says("one")
    before = request(frame(), talk.turn(), (), NOON).messages
    talk.decides(Speak(route=route(), text="x"))
    talk.says("two")
    after = request(frame(), talk.turn(), (), NOON).messages
    assert after[: len(before) - 1] == before[:-1]


def test_it_is_asked_for_with_the_last_one_what_was_done_and_what_never_arrived() -> None:
    talk = Talk()
    said = talk.says("Book Rome")
    act = Act(name="booking", query="Book Rome", by=ANA, route=said.route)
    talk.decides(Speak(route=said.route, text="On it"), act, Recalled(query="Rome", found="secret find"))
    failed = SendClosed(ref=Ref("out", 1), conversation="p-ana", send=Ref("p-ana", 1, 0), outcome="failed", why="gone")
    talk.hears(failed)
    talk.decides()
    told(talk, summarising.EXCHANGES)
    text = str(summarising.request(talk.state, frame()).messages[1]["content"])
    assert "(there is none yet)" in text
    assert "You (it was not delivered): On it\nYou started booking: Book Rome\n" in text
    assert "[a send failed" in text
    summary_of(talk, "They book Rome.")
    told(talk, summarising.EXCHANGES)
    text = str(summarising.request(talk.state, frame()).messages[1]["content"])
    assert "The summary so far:\n  They book Rome.\n" in text
    assert "booking" not in text


def test_it_says_whose_words_are_in_it_for_ever() -> None:
    talk = Talk("s-room")
    talk.says("I am Bo", BO)
    talk.decides()
    told(talk, summarising.EXCHANGES)
    assert set(summary_of(talk).whose) == {ANA.address, BO.address}
    told(talk, summarising.EXCHANGES)
    assert set(summary_of(talk).whose) == {ANA.address, BO.address}


def test_a_person_s_erasure_takes_the_summaries_with_their_words_and_the_finds() -> None:
    made = Summarised(first=1, through=5, text="Bo is ill", at=NOON, whose=(ANA.address, BO.address))
    other = Summarised(first=1, through=5, text="Ana is well", at=NOON, whose=(ANA.address,))
    found = Recalled(query="ill", found="[Bo] I am ill", of=("t/7",))
    known = Erased(user=("telegram", "7"), identities={"t/7"})
    gone = known.written([encoded(one) for one in (made, other, found)], "s-room")
    assert "ill" not in str(gone[0])
    assert gone[1] == encoded(other)
    assert "I am ill" not in str(gone[2])
    assert decode(encode(gone[0]), Summarised).through == 5


def encoded(entry: object) -> object:
    return decode(encode(entry), object)


def test_an_address_that_is_another_s_again_leaves_the_memory() -> None:
    talk = Talk()
    told(talk, 1)
    talk.says("my secret", BO)
    talk.decides(Speak(route=route(), text="It is safe."))
    told(talk, summarising.EXCHANGES)
    made = summary_of(talk, "Bo has a secret.")
    talk.says("another secret", BO)
    talk.decides()
    talk.state.apply(Parted(address=BO.address, at=NOON))
    talk.says("hello")
    assert BO.address in made.whose
    assert "secret" not in str(request(frame(), talk.turn(), (), NOON).messages)
    assert f"message {summarising.EXCHANGES - 1}" in str(request(frame(), talk.turn(), (), NOON).messages)


def test_a_snapshot_keeps_it() -> None:
    talk = Talk()
    told(talk, summarising.EXCHANGES + 1)
    made = summary_of(talk)
    again = LaneState("p-ana")
    again.thaw(encode(talk.state.freeze()))
    assert decode(encode(talk.state.freeze()), LaneFrozen).summary == made
    assert (again.summary, again.weight) == (made, talk.state.weight)


@pytest.mark.parametrize("answer", [Generation(text=" \n"), Generation(text="Ana li", cut=True)])
def test_what_is_no_summary_is_not_taken(answer: Generation) -> None:
    talk = Talk()
    told(talk, summarising.EXCHANGES + 1)
    assert summarising.made(answer, summarising.through(talk.state), talk.state, now=NOON) is None


# --- in a lane -------------------------------------------------------------------------------------------------------


class Desk:
    """Answers turns at once; a summary as `summaries` say, one after the other."""

    name = "desk"

    def __init__(self, *summaries: object) -> None:
        self._summaries, self.asked = list(summaries), []

    async def generate(self, request, on_spent=None):
        if request.messages[0]["content"] != summarising.INSTRUCTIONS:
            return Generation(text="I see.", model=self.name)
        self.asked.append(request)
        answer = self._summaries.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await answer if asyncio.iscoroutine(answer) else answer


def message(n: int) -> MessageReceived:
    author = ANA
    return MessageReceived(identity=f"t/{n}", route=route(), author=author, text=f"{n} {LONG}", at=NOON)


async def test_no_turn_waits_for_it_and_one_that_fails_is_made_again(tmp_path) -> None:
    release = asyncio.Event()

    async def slow() -> Generation:
        await release.wait()
        return Generation(text="A long story.", model="desk", usage=Usage(prompt_tokens=7, usd=0.5))

    model = Desk(ModelError("overloaded", "busy", retryable=True), Generation(text=""), slow())
    pace = Pace(quiet_seconds=0.01, outage_seconds=0.01)
    platform = stages.FakePlatform()
    async with stages.stage(tmp_path / "store.db", model, ["42"], [platform], pace=pace) as stage:
        for n in range(4):
            await stage.hears(message(n))
            await eventually(lambda n=n: len(platform.arrived) == n + 1)
        await eventually(lambda: len(model.asked) == 3)
        await stage.hears(message(4))
        await eventually(lambda: len(platform.arrived) == 5)
        release.set()
        (lane,) = stage.manager.lanes()
        await eventually(lambda: lane.journal.state.summary)
        state = await fold_stored(stage.broker, lane.journal.subject, LaneState("p-c42"), lane.journal._folding.entries)
    assert state.summary is not None
    assert state.summary.text == "A long story."
    assert state.summary.usage == Usage(prompt_tokens=7, usd=0.5)
    assert all(one.decided.turn > state.summary.through for one in state.exchanges)
    assert stage.notices == []
