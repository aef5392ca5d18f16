"""An action whose own loop fails: the failure is a state that is told, and nothing that it started goes on."""

from actors.entries import ActionEntry, Failed, JobEnded, Stopped
from gateway.events import ActionAnswered, ActionEnded, ActionResponded
from tests.actors.rules import texts
from tests.actors.shop import Held, Shop, call, code
from tests.actors.test_idle import processes_below

RUNS = "import time\nprint('runs', flush=True)\ntime.sleep(600)"


class Broken(Shop):
    """The loop of one action fails when it is about to run that code."""

    def __init__(self, folder, key, words, times=10**6):
        super().__init__(folder, box=self._broken)
        self.key, self.words, self.times = key, words, times
        self.broken = False

    def _broken(self, key, emit):
        box = self._sandbox(key, emit)
        execute, attach = box.execute, box.attach

        async def executes(cell, text, *, stateful):
            self.broken = self.broken or self.words in text
            self._fail()
            await execute(cell, text, stateful=stateful)

        async def attaches():
            self._fail()
            return await attach()

        if key == self.key:
            box.execute, box.attach = executes, attaches
        return box

    def _fail(self):
        if self.broken and self.times:
            self.times -= 1
            raise OSError("the disk is gone")


def ends(entries: list[ActionEntry]) -> list[str]:
    return [type(one).__name__ for one in entries if isinstance(one, Failed | Stopped)]


async def test_a_child_that_fails_inside_has_failed_and_its_parent_decides(tmp_path):
    async with Broken(tmp_path, "a1--child1", "breaks") as shop:
        shop.model.on("Trip", call("act", query="Flight"), "Without a flight")
        below = [call("act", query="Seat"), code(RUNS)]
        shop.model.on("Flight", below, "Waiting", code("breaks"))
        seat = Held(code(RUNS))
        shop.model.on("Seat", seat)
        await shop.start("a1", "Trip to Rome")
        await shop.output("a1--child1", "cell2", "runs")
        seat.release()
        await shop.output("a1--child1--child1", "cell1", "runs")
        child = next(one for one in shop.host.open_actors if one.key == "a1--child1")
        await shop.ask("a1", "How far?")
        child.happened(object())  # no word of its inbox: its loop fails
        assert (await shop.fact("a1", ActionResponded)).text == "Without a flight"
        assert any("child1 failed: I failed inside" in line for line in texts(await shop.state("a1")))
        assert ends(await shop.log("a1--child1")) == ["Failed"]
        assert ends(await shop.log("a1--child1--child1")) == ["Stopped"]
        await shop.until(lambda: _none_below(tmp_path))
        await shop.fact("a1", ActionAnswered)


async def _none_below(folder):
    return not processes_below(folder)


async def test_a_root_that_fails_is_folded_again_and_its_children_with_it(tmp_path):
    async with Broken(tmp_path, "a1", "breaks", times=1) as shop:
        part = Held("Part is done")
        shop.model.on("Trip", [call("act", query="Part"), code("breaks")], "Done")
        shop.model.on("Part", part, "Part is done")
        await shop.start("a1", "Trip to Rome")
        await part.cancelled.wait()
        await shop.fact("a1", ActionResponded)
        ended = {one.job: one.failed for one in await shop.log("a1") if isinstance(one, JobEnded)}
        assert ended == {"child1": False, "cell2": True}
        assert not shop.notices


async def test_one_that_fails_again_and_again_is_ended_with_all_below_it(tmp_path):
    async with Broken(tmp_path, "a1", "breaks") as shop:
        breaks = Held(code("breaks"))
        shop.model.on("Trip", code("h = primitives.act('Part')", stateful=True), breaks)
        shop.model.on("Part", code(RUNS))
        await shop.start("a1", "Trip to Rome")
        await shop.output("a1--child2", "cell1", "runs")
        breaks.release()
        ended = await shop.fact("a1", ActionEnded)
        assert (ended.end, "again and again" in ended.text) == ("failed", True)
        await shop.entry("a1--child2", Stopped)
        await shop.until(lambda: _none_below(tmp_path))
        assert any("failed 5 times" in notice for notice in shop.notices)
        await shop.ask("a1", "What happened?")
        await shop.fact("a1", ActionAnswered)
