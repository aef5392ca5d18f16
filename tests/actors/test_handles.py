"""Workers of a worker: started and steered by its code and by its model."""

from actors.entries import Interjected, Paused, Resumed
from gateway.events import ActionEnded, ActionProgressed, ActionResponded
from tests.actors.rules import texts
from tests.actors.shop import Held, call, code

SEVERAL = """\
import asyncio
a, b = primitives.act("Part A"), primitives.act("Part B", name="b")
print(await asyncio.gather(a, b))
"""

STEERED = """\
h = primitives.act("Part A")
await h.interject("Use the work account")
print("asked:", await h.ask("How far?"))
await h.pause()
await h.resume()
await h.stop("not needed")
try:
    await h
except RemoteError as error:
    print("ended:", error)
print("afterwards:", await h.ask("And now?"))
"""


async def test_several_at_once_from_code(shop):
    shop.model.on("Trip", code(SEVERAL), "Done")
    shop.model.on("Part A", "A is done")
    shop.model.on("Part B", "B is done")
    await shop.start("a1", "Trip")
    await shop.fact("a1", ActionResponded)
    assert any("['A is done', 'B is done']" in line for line in texts(await shop.state("a1")))


async def test_a_handle_steers_asks_and_ends_its_worker(shop):
    shop.model.on("Trip", code(STEERED), "Done")
    shop.model.on("Part A", Held("never"))
    shop.model.beside = lambda request: "Not far."
    await shop.start("a1", "Trip")
    await shop.fact("a1", ActionResponded)
    result = next(line for line in texts(await shop.state("a1")) if line.startswith("tool:"))
    assert "asked: Not far." in result
    assert "ended: It had not run anything yet." in result
    assert "afterwards: Not far." in result
    child = await shop.log("a1--child2")
    assert [type(one) for one in child if isinstance(one, Interjected | Paused | Resumed)] == [
        Interjected,
        Paused,
        Resumed,
    ]
    assert "[the worker for Ana, Mon 09:00 UTC] Use the work account" in texts(await shop.state("a1--child2"))[1]


async def test_a_handle_kept_in_the_session_steers_in_a_later_cell_after_a_restart(shop):
    part = Held("A is done")
    shop.model.on(
        "Trip",
        code("h = primitives.act('Part A')", stateful=True),
        code("await h.interject('Faster'); print(await h)", stateful=True),
        "Done",
    )
    shop.model.on("Part A", part, "A is done fast")
    second = shop.model._steps["Trip"][1]
    gate = Held(second)
    shop.model._steps["Trip"][1] = gate
    await shop.start("a1", "Trip")
    await gate.asked.wait()
    await part.asked.wait()
    await shop.again()
    gate.release()
    await shop.fact("a1", ActionResponded)
    assert any("A is done fast" in line for line in texts(await shop.state("a1")))


async def test_the_model_asks_a_worker_that_works_and_one_that_has_ended(shop):
    part = Held("A is done")
    shop.model.on(
        "Trip",
        [call("act", query="Part A"), call("steer", action="child1", verb="ask", text="How far?")],
        call("steer", action="child1", verb="ask", text="What was it?"),
        call("steer", action="child9", verb="ask", text="?"),
        "Done",
    )
    shop.model.on("Part A", part)
    shop.model.beside = lambda request: "Half." if "How far" in request.messages[-1]["content"] else "It was A."
    await shop.start("a1", "Trip")

    async def asked() -> bool:
        return any("child1 answered: Half." in line for line in texts(await shop.state("a1")))

    await shop.until(asked)
    part.release()
    await shop.fact("a1", ActionResponded)
    lines = texts(await shop.state("a1"))
    assert any("child1 answered: It was A." in line for line in lines)
    assert any("child9 has never worked for you" in line for line in lines)


async def test_an_ask_of_a_child_survives_a_restart_and_is_answered_once(shop):
    answer = Held("-")
    shop.model.on(
        "Trip", [call("act", query="Part A"), call("steer", action="child1", verb="ask", text="How far?")], "Done"
    )
    shop.model.on("Part A", Held("A is done"), "A is done")
    asked = 0

    def beside(request):
        nonlocal asked
        asked += 1
        answer.asked.set()
        return "Half."

    shop.model.beside = beside
    await shop.start("a1", "Trip")
    await answer.asked.wait()
    await shop.again()
    await shop.fact("a1", ActionResponded)
    lines = texts(await shop.state("a1"))
    assert sum("child1 answered: Half." in line for line in lines) == 1


async def test_a_failed_worker_is_an_error_to_the_code_that_waits(shop):
    shop.model.on("Trip", code("await primitives.act('Part A')"), "Alas")
    shop.model.on("Part A", code("1/0"))
    await shop.start("a1", "Trip")
    await shop.fact("a1", ActionResponded)
    assert (await shop.state("a1--child2")).phase == "failed"
    assert any(
        "RemoteError: I could not go on: the same thing failed" in line for line in texts(await shop.state("a1"))
    )


async def test_a_worker_that_ends_while_its_parent_is_down_is_heard_of(shop):
    shop.model.on("Trip", call("act", query="Part A"), "Done")
    shop.model.on("Part A", call("notify", text="at it"), "A is done")
    await shop.start("a1", "Trip")
    await shop.fact("a1", ActionProgressed)
    await shop.again()
    await shop.fact("a1", ActionResponded)
    assert not await shop.facts("a1", ActionEnded)
