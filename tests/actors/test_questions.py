"""Questions of an action: they block one call, and there comes an end to every one."""

from actors.entries import JobEnded
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from gateway.events import ActionResponded, ClarificationClosed, ClarificationRequested, CommandRefused
from tests.actors.rules import texts
from tests.actors.shop import call, code

ASKS = "answer = await primitives.request_clarification('Which?', options=['a', 'b'])\nprint('got', answer)"


async def test_several_at_once_are_answered_in_any_order_with_a_restart_between(shop):
    questions = [call("request_clarification", question=f"Which {n}?") for n in ("card", "day")]
    shop.model.on("Book", [*questions, code(ASKS)], "Booked")
    await shop.start("a1", "Book Rome")
    third = await shop.fact("a1", ClarificationRequested, 3)
    first, second, _ = await shop.facts("a1", ClarificationRequested)
    await shop.answer("a1", second.question, "Monday")
    await shop.fact("a1", ClarificationClosed)
    await shop.again()
    await shop.answer("a1", third.question, "b")
    await shop.answer("a1", first.question, "the blue one")
    await shop.fact("a1", ActionResponded)
    lines = texts(await shop.state("a1"))
    for said in (
        "“Which card?”) was answered by Ana: the blue one",
        "“Which day?”) was answered by Ana: Monday",
        "got b",
    ):
        assert sum(said in line for line in lines) == 1


async def test_a_person_is_reminded_once_and_the_default_counts_in_the_end(shop):
    asks = "print('got', primitives.request_clarification('Which?', default='the blue one', hours=10).result())"
    shop.model.on("Book", code(asks), "Booked")
    await shop.start("a1", "Book Rome")
    asked = await shop.fact("a1", ClarificationRequested)
    assert (asked.default, asked.again) == ("the blue one", False)
    await shop.again()
    shop.clock.advance(hours=4)
    again = await shop.fact("a1", ClarificationRequested, 2)
    assert (again.question, again.text, again.again) == (asked.question, "Which?", True)
    shop.clock.advance(hours=6)
    await shop.fact("a1", ActionResponded)
    assert len(await shop.facts("a1", ClarificationRequested)) == 2
    assert any("got the blue one" in line for line in texts(await shop.state("a1")))
    await shop.answer("a1", asked.question, "the red one")
    refused = await shop.fact("a1", CommandRefused)
    assert "awaiting_input" in refused.why


async def test_a_question_without_a_default_says_that_nobody_answered(shop):
    shop.model.on("Book", [call("request_clarification", question="Which?"), code(ASKS)], "I took the first")
    await shop.start("a1", "Book Rome")
    await shop.fact("a1", ClarificationRequested, 2)
    shop.clock.advance(days=3)
    await shop.fact("a1", ActionResponded)
    lines = texts(await shop.state("a1"))
    assert any("was not answered in time. Go on without" in line for line in lines)
    assert any("RemoteError: question" in line for line in lines)


async def test_an_answer_to_code_that_is_gone_says_so(shop):
    shop.model.on("Book", code(ASKS), call("request_clarification", question="Still there?"), "Booked")
    await shop.start("a1", "Book Rome")
    asked = await shop.fact("a1", ClarificationRequested)
    await shop.close()
    await Sandbox(shop.folder / "actions" / "a1", lambda happening: None, Bare()).kill()
    await shop.open()
    await shop.fact("a1", ClarificationRequested, 2)
    await shop.answer("a1", asked.question, "b")
    refused = await shop.fact("a1", CommandRefused)
    assert "The code that asked it is gone (cell1)" in refused.why


async def test_a_childs_question_goes_up_and_its_answer_down_and_its_default_counts_for_all(shop):
    shop.model.on("Trip", call("act", query="Flight to Rome"), "All booked")
    shop.model.on("Flight", call("request_clarification", question="Which card?"), code(ASKS), "Flight booked")
    await shop.start("a1", "Trip to Rome")
    asked = await shop.fact("a1", ClarificationRequested)
    assert asked.text == "Which card?"
    await shop.again()
    await shop.answer("a1", asked.question, "the blue one")
    second = await shop.fact("a1", ClarificationRequested, 2)
    shop.clock.advance(days=3)
    await shop.fact("a1", ActionResponded)
    assert second.question in {one.job for one in await shop.log("a1") if isinstance(one, JobEnded)}
    lines = texts(await shop.state("a1--child1"))
    assert any("answered by Ana: the blue one" in line for line in lines)
