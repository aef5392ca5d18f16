"""Work whose machine goes: it comes back and finds what it had saved, or another takes over and says what is lost."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from actors.entries import SandboxLost, Woken
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from actors.sharing import Beside, Sharing, role_of
from gateway.broker.nats import JetStreamBroker
from gateway.broker.protocol import Broker, Shared
from gateway.events import ActionAnswered, ActionResponded
from gateway.holding import Guard
from tests.actors.rules import texts
from tests.actors.shop import Clock, Held, ScriptedModel, Shop, call, code
from tests.servers.nats import PROGRAM, WANTED, NatsServer

numbers = itertools.count(1)
COUNTS = "rows = [1, 2, 3]\nlines = (n for n in rows)\nopen('note.txt', 'w').write(await primitives.act('Look it up'))"
COMPUTES = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"


class Machine(Shop):
    """One of several: its own folder, the same server. Closed and `switched_off`, it is gone."""

    poll_seconds = 0.05  # each look is a request to the server

    def __init__(self, folder: Path, url: str, model: ScriptedModel, clock: Clock) -> None:
        super().__init__(folder, model=model, clock=clock)
        self._url, self._name = url, folder.name

    async def _store(self) -> Broker:
        return await JetStreamBroker.connect(self._url, ack_wait_seconds=0.5)

    def _lease(self) -> str:
        return f"{role_of(self._name)}{next(numbers)}"

    def _sharing(self, guard: Guard) -> Sharing:
        return Beside(cast(Shared, self.broker), guard.lease, self._name)  # type: ignore[arg-type]

    async def switched_off(self) -> None:
        await self.close()
        await kill_all(self.folder)

    async def holder(self, key: str) -> str:
        return (await cast(Shared, self.broker).claims())[key].lease


async def kill_all(folder: Path) -> None:
    for one in (folder / "actions").glob("*"):
        await Sandbox(one, lambda happening: None, Bare()).kill()


@pytest_asyncio.fixture
async def machines(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    if not PROGRAM.exists():
        pytest.skip(WANTED)
    with NatsServer() as server:
        model, clock = ScriptedModel(), Clock()
        one, two = (Machine(tmp_path / name, server.url, model, clock) for name in ("one", "two"))
        two._commands = one._commands  # of one person
        async with one:
            yield one, two


async def test_a_session_at_rest_is_left_to_its_machine_and_what_it_loses_with_that_is_named(machines):
    one, two = machines
    shows = code("print(rows, open('note.txt').read())", stateful=True)
    one.model.on(
        "February", code(COUNTS, stateful=True), "It is 6", shows, "Still 6", code("rows = 0", stateful=True), "Alas"
    )
    one.model.on("Look it up", code("print('looked')"), "It is in the book")
    one.model.on("Other work", Held("Done"), "Done")
    await one.start("a1", "Do February")
    await one.phase("a1", "awaiting_input")
    one.clock.advance(hours=12)
    await one.phase("a1", "hibernated")
    await one.start("a2", "Other work")
    await one.phase("a2", "running")
    await one.switched_off()

    await two.open()
    await two.fact("a2", ActionResponded)  # taken over, because there is work to do
    assert (await two.holder("a1")).startswith(role_of("one"))
    await two.close()

    await one.open()
    await one.interject("a1", "Show me")
    await one.fact("a1", ActionResponded, 2)
    shown = texts(await one.state("a1"))
    assert any("there again: rows" in line for line in shown)
    assert any("[1, 2, 3] It is in the book" in line for line in shown)
    one.clock.advance(hours=12)
    await one.phase("a1", "hibernated")
    await one.switched_off()

    await two.open()
    await two.interject("a1", "And once more")
    await two.fact("a1", ActionResponded, 3)
    woken = await two.entry("a1", Woken, 2)
    assert "All of your files are lost with the machine that you worked on" in woken.text
    assert "rows (it was kept on the machine that you worked on, which is not there any more)" in woken.text
    one.model.then("February", call("steer", action="child2", verb="ask", text="Where was it?"), "In the book")
    await two.interject("a1", "Where was it?")
    await two.fact("a1", ActionResponded, 4)
    assert any("child2 answered: About half." in line for line in texts(await two.state("a1")))
    one.clock.advance(hours=12)
    await two.phase("a1", "hibernated")
    await two.switched_off()

    await one.open()  # where older files and variables are
    await one.interject("a1", "And here?")
    assert "rows (it was kept on the machine" in (await one.entry("a1", Woken, 3)).text


async def test_work_of_three_levels_goes_on_elsewhere_and_each_says_what_it_has_lost(machines):
    one, two = machines
    one.model.on("First level", code("x = 1", stateful=True), call("act", query="Second level"), "First done")
    one.model.on("Second level", call("act", query="Third level"), "Second done")
    one.model.on("Third level", code(COMPUTES, stateful=True), "Third done")
    bottom = "a1--child2--child1"
    await one.start("a1", "First level")
    await one.output(bottom, "cell1", "begun")
    await one.switched_off()

    await two.open()
    await two.ask("a1", "How far?")
    await two.fact("a1", ActionAnswered)
    assert (await two.fact("a1", ActionResponded)).text == "First done"
    for key in ("a1", bottom):
        lost = await two.entry(key, SandboxLost)
        assert "all of your files and the variables of the stateful session" in lost.text
    assert any("cell1 is lost with its sandbox" in line for line in texts(await two.state(bottom)))
    assert not any(isinstance(one, SandboxLost) for one in await two.log("a1--child2"))
    await two.again()
    assert len([one for one in await two.log("a1") if isinstance(one, SandboxLost)]) == 1
    await two.close()
    await one.open()
