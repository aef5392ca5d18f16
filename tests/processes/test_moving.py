"""Roles on several processes: what is held moves to another when its holder dies, and nothing is lost or doubled."""

import asyncio
import time

import pytest
import pytest_asyncio

from actors.sandbox import found
from tests.processes.town import Town, worker
from tests.servers.nats import PROGRAM, WANTED
from tests.servers.openai import Hold, Reply

LANE, ACTION = "log.lane.p-owner", "log.act.p-owner-a1"
TAKEOVER_SECONDS = 30.0  # 3 on a quiet machine: bench measures it
COUNT = """
import time
kept = 0
for kept in range({n}):
    with open({path!r}, "a") as marks:
        marks.write(f"{{kept}}\\n")
    time.sleep(0.1)
print("counted", kept + 1)
"""


@pytest_asyncio.fixture
async def town(tmp_path):
    if not PROGRAM.exists():
        pytest.skip(WANTED)
    async with Town(tmp_path) as made:
        yield made


class Marks:
    """What the code writes where it runs, whatever isolates it and on whichever machine."""

    def __init__(self, folder):
        self._folder = folder

    def exists(self):
        return bool(self._files())

    def read_text(self):
        return self._files()[0].read_text()

    def _files(self):
        return sorted(self._folder.glob("*/*.actions/*/workspace/marks"))


@pytest.fixture
def marks(tmp_path):
    return Marks(tmp_path)


def counting(n=40):
    return worker(COUNT.format(n=n, path="marks"))


async def brain_and_standby(town):
    town.start("mediums")
    first = town.start("brain")
    town.client.say("hello")
    await town.sees("Re: hello")
    second = town.start("brain")
    await town.until(lambda: "brain: another process has it; standing by" in second.log())
    return first, second


async def counts(town, marks, machine="here"):
    """The process of actions in which it does."""
    for roles in ("mediums", "brain"):
        town.start(roles)
    first = town.start("actors", machine)
    town.client.say("Count the marks")
    await town.until(lambda: marks.exists() and len(marks.read_text().split()) > 2)
    return first


async def test_three_processes_are_one_assistant(town, marks):
    town.worker.script(counting(3))
    for roles in ("mediums", "brain", "actors"):
        town.start(roles)
    town.client.say("hello")
    await town.sees("Re: hello")
    town.client.say("Count the marks")
    await town.until(lambda: town.actions)
    await town.sees("Result: cell1 ended: ok. counted 3")
    assert "Count the marks" in await town.look("trace")
    assert "marks.write" in await town.look("code", "counting")
    assert "counting" in await town.look("actions")
    assert town.desk.complaints == town.worker.complaints == []


async def test_a_conversation_moves_when_its_brain_is_killed_in_the_middle_of_a_turn(town):
    first, second = await brain_and_standby(town)
    thinking = asyncio.Event()
    town.desk.script(lambda request: Hold(thinking, Reply(text="Re: too late")))
    town.client.say("do you hear me?")
    asked = len(town.desk.requests)
    await town.until(lambda: len(town.desk.requests) > asked - 1 and "hear me" in town.desk.requests[-1].text)
    await first.kill()
    killed = time.monotonic()
    town.desk.script(lambda request: Reply(text="Re: yes"))
    assert await town.holds(second, LANE) - killed <= TAKEOVER_SECONDS
    await town.sees("Re: yes")
    thinking.set()
    assert town.answers() == ["Re: hello", "Re: yes"]


async def test_a_clean_stop_hands_over_at_once(town):
    first, second = await brain_and_standby(town)
    stopping = time.monotonic()
    await first.stop()
    assert await town.holds(second, LANE) - stopping <= TAKEOVER_SECONDS
    town.client.say("still there?")
    await town.sees("Re: still there?")


async def test_an_action_moves_to_another_process_of_its_machine_with_its_sandbox(town, marks):
    town.worker.script(counting())
    first = await counts(town, marks)
    second = town.start("actors")
    await town.until(lambda: "held here" in second.log())
    await first.kill()
    killed = time.monotonic()
    town.client.say("Tell it to go on")
    assert await town.holds(second, ACTION) - killed <= TAKEOVER_SECONDS
    await town.until(lambda: any("Tell it to go on" in request.text for request in town.worker.requests))
    await town.sees("counted 40")
    assert marks.read_text().split() == [str(n) for n in range(40)]
    assert "lost" not in " ".join(town.answers())


async def test_an_action_whose_machine_is_gone_is_folded_elsewhere_and_says_what_was_lost(town, marks):
    town.worker.script(counting())
    first = await counts(town, marks, "one")
    other = town.start("actors", "two")
    await first.kill()
    await town.holds(other, ACTION)
    await town.sees("cell1 is lost with its sandbox")
    town.client.say("hello")
    await town.sees("Re: hello")


# --- frozen, taken over, thawed --------------------------------------------------------------------------------------


async def test_a_brain_that_was_frozen_is_refused_and_stands_by(town):
    first, second = await brain_and_standby(town)
    thinking = asyncio.Event()
    town.desk.script(lambda request: Hold(thinking, Reply(text="Re: from the frozen one")))
    town.client.say("one")
    await town.until(lambda: "] one" in town.desk.requests[-1].text)
    first.freeze()
    town.desk.script(lambda request: Reply(text="Re: from the other"))
    await town.holds(second, LANE)
    await town.sees("Re: from the other")
    thinking.set()
    first.thaw()
    await town.until(lambda: "brain stopped and starts again" in first.log())
    town.client.say("two")
    await town.until(lambda: len(town.answers()) == 3)
    assert town.answers() == ["Re: hello", "Re: from the other", "Re: from the other"]
    assert await town.holder(LANE) == second.pid
    await second.kill()
    town.desk.script(lambda request: Reply(text="Re: from the thawed one"))
    town.client.say("three")
    await town.sees("Re: from the thawed one")


async def test_a_process_of_actions_that_was_frozen_is_refused_and_its_sandbox_ends(town, marks):
    town.worker.script(counting(600))
    first = await counts(town, marks, "one")
    other = town.start("actors", "two")
    await town.until(lambda: "held here" in other.log())
    first.freeze()
    await town.holds(other, ACTION)
    await town.sees("cell1 is lost with its sandbox")
    boxes = town.folder / "one" / "frontdesk.db.actions"
    assert found.running(boxes) == ["p-owner-a1"]
    first.thaw()
    await town.until(lambda: not found.running(boxes))
    assert await town.holder(ACTION) == other.pid
    assert "actors" in first.log()


async def test_a_process_of_actions_that_was_frozen_leaves_the_sandbox_to_the_one_beside_it(town, marks):
    town.worker.script(counting(45))
    first = await counts(town, marks)
    second = town.start("actors")
    await town.until(lambda: "held here" in second.log())
    first.freeze()
    await town.holds(second, ACTION)
    first.thaw()
    await town.until(lambda: "stopped and starts again" in first.log())
    await town.sees("counted 45")
    assert marks.read_text().split() == [str(n) for n in range(45)]
