"""`frontdesk trace`: why, of any message: what was seen, by which rules, what the model was shown, what came of it."""

import pytest

from brain.entries import Act, Decided, Prompted, Recalled, Speak, Summarised, Taken
from frontdesk.console import Console
from frontdesk.people import contacts
from gateway.events import MessageReceived, Ref, SendClosed
from gateway.journal import stamped
from gateway.llm.model import Usage
from gateway.settings import ContactSettings, Settings
from tests.store.words import ANA, START, TELEGRAM


def said(n: int, text: str) -> MessageReceived:
    return MessageReceived(identity=f"t/{n}", route=TELEGRAM, author=ANA, text=text, at=START)


def decided(turn: int, n: int) -> Decided:
    return Decided(
        turn=turn,
        at=START,
        covers=(f"t/{n}",),
        decisions=(Recalled(query="hotel", found="x", of=("t/0",)), Speak(route=TELEGRAM, text="The Adlon.")),
        model="m",
        usage=Usage(prompt_tokens=900, completion_tokens=8, usd=0.0125),
        prompt=Prompted(digest="00ff", messages=5, tools=4, tokens=880),
    )


@pytest.fixture
async def trace(broker):
    """Asks after so many of the entries."""
    settings = Settings(contacts=(ContactSettings(name="Ana", addresses=(ANA.address,), role="owner"),))
    console = Console(broker, contacts(settings), "Frontdesk")
    written = 0

    async def ask(about: str, *entries: object) -> str:
        nonlocal written
        for entry in entries:
            written += 1
            await broker.append("log.lane.p-ana", stamped(1, str(written), entry), msg_id=str(written))
        return await console.trace(about)

    return ask


async def test_it_has_all_that_a_decision_followed_from_and_what_became_of_it(trace) -> None:
    closed = SendClosed(ref=Ref("out", 1), conversation="p-ana", send=Ref("p-ana", 1, 0), outcome="failed", why="gone")
    text = await trace(
        "m2",
        Taken(event=said(1, "an aside"), at=START, attention="keep"),
        Taken(event=said(2, "Which hotel?"), at=START),
        decided(1, 2),
        Taken(event=closed, at=START),
    )
    for part in (
        "decided by the model m",
        "an aside",
        "Which hotel?",
        "by the rules: m1 was only kept; m2 opened the turn",
        "**looked up** “hotel”: 1 found",
        "**said** on telegram, failed: The Adlon.",
        "about 880 tokens: 5 messages, 4 tools (prompt 00ff)",
        "cost: 900 + 8 tokens, 0.0125 USD",
    ):
        assert part in text


async def test_it_is_found_when_it_has_left_the_prompt(trace) -> None:
    turns = [one for n in range(1, 4) for one in (Taken(event=said(n, f"word {n}"), at=START), decided(n, n))]
    await trace("m3", *turns)
    text = await trace("m1", Summarised(first=1, through=2, text="words", at=START))
    assert "word 1" in text
    assert "**said** on telegram" in text
    with pytest.raises(LookupError, match="No turn about m9"):
        await trace("m9")


async def test_a_message_that_waits_says_for_what(trace) -> None:
    line = Decided(turn=1, at=START, covers=(), decisions=(Speak(route=TELEGRAM, text="Not now."),), by="outage")
    text = await trace("m1", Taken(event=said(1, "hello"), at=START), line)
    assert text.startswith("Not decided yet: the model cannot be reached.")
    assert "hello" in text


async def test_a_conversation_that_cannot_be_read_says_so_and_what_mends_it(trace, broker) -> None:
    await broker.append("log.lane.p-ana", b'[1, "n", {"type": "Dreamt", "of": "sheep"}]', msg_id="newer")
    with pytest.raises(
        LookupError, match=r"cannot be read: log\.lane\.p-ana, entry 1: .*Start the version that wrote it"
    ):
        await trace("")


async def test_whoever_runs_it_asks_about_any_conversation(broker) -> None:
    settings = Settings(contacts=(ContactSettings(name="Ana", addresses=(ANA.address,), role="owner"),))
    console = Console(broker, contacts(settings), "Frontdesk")
    assert await console.actions("all") == "Nothing is in flight, and nothing has ended."
    start = Act(name="report", query="Report", by=ANA, route=TELEGRAM)
    told = Decided(turn=1, at=START, covers=("t/1",), decisions=(start,))
    for n, entry in enumerate((Taken(event=said(1, "Report, please"), at=START), told)):
        await broker.append("log.lane.s-room", stamped(1, str(n), entry), msg_id=str(n))
    assert "Report, please" in await console.trace("s-room m1")
    assert "**started** report" in await console.trace("s-room")
    assert (await console.actions("all")).startswith("**s-room**\n\n- **report** (a1)")
    with pytest.raises(LookupError, match=r"no conversation p-ben\. There are: s-room"):
        await console.trace("p-ben m1")
