"""A real gateway process, killed with SIGKILL at each step of three nested workers that are steered, asked and stopped.

On both brokers. The suite kills it at a share of the moments; `make soak` at all of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.entries import ActionEntry, Asked, Interjected, JobEnded, JobStarted, Paused, Resumed, Stopped
from tests.actors import rules
from tests.servers.nats import PROGRAM, WANTED, NatsServer
from tests.servers.openai import Received, Reply
from tests.stage import Stage, open_stage
from tests.staging.houses import processes_in
from tests.staging.models import call
from tests.staging.waiting import until

TOP = "p-ana-a1"
MIDDLE, BOTTOM = f"{TOP}--child2", f"{TOP}--child2--child1"
CODE = """\
import pathlib, time
pathlib.Path('begun').touch()
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('got', await primitives.request_clarification('Which card?'), flush=True)
while True:
    time.sleep(0.01)
"""
STEPS = ("started", "interjected", "paused", "asked", "resumed", "questioned", "answered", "stopped")
MOMENTS = [(step, when) for step in STEPS for when in ("at once", "after")]
BROKERS = ("sqlite", "jetstream")
SHARE = [("sqlite", "paused", "at once"), ("jetstream", "questioned", "after")]


def waits_on(received: Received) -> Reply:
    """After a word: goes on waiting for what it waits for."""
    text = received.text
    if "cell1 still runs" in text:
        return Reply(calls=[call("continue_code", cell="cell1", seconds=600)])
    return Reply(text="Going on")


class Play:
    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        stage.desk.on("Book the trip").acts("trip", "First level", saying="On it")
        stage.desk.on("work account").interjects("trip", saying="Passed on")
        stage.desk.on("Pause").pauses("trip", saying="Paused it")
        stage.desk.on("How far").asks("trip", saying="Let me ask")
        stage.desk.on("Go on").resumes("trip", saying="Resumed it")
        stage.desk.on("blue one").answers("trip", saying="Noted")
        stage.desk.on("Stop").stops("trip", saying="Stopping")
        stage.desk.on("Going on").waits()
        stage.worker.on("First level").runs("print(await primitives.act('Second level'))")
        stage.worker.on("Second level").calls(call("act", query="Third level"))
        stage.worker.on("Third level").runs(CODE)
        stage.worker.on("work account").decides(waits_on)
        stage.worker.on("still runs").decides(waits_on)
        stage.worker.on("cell1 is lost with its sandbox").runs(CODE)  # it had not begun yet
        stage.worker.beside("How far").responds("Half of it.")

    async def do(self, step: str) -> Callable[[], Any]:
        """Causes it; what comes back says whether it has happened."""
        ana = self.stage.ana
        match step:
            case "started":
                ana.telegram("Book the trip")
                return (self._workspace / "begun").exists
            case "interjected":
                ana.telegram("Use the work account")
                return lambda: self._all_have(Interjected)
            case "paused":
                ana.telegram("Pause it")
                return lambda: self._all_have(Paused)
            case "asked":
                ana.telegram("How far are you?")
                return lambda: any("Half of it." in text for text in ana.on_telegram())
            case "resumed":
                ana.telegram("Go on with it")
                return lambda: self._all_have(Resumed)
            case "questioned":
                (self._workspace / "go").touch()
                return lambda: any("Which card?" in text for text in ana.on_telegram())
            case "answered":
                ana.telegram("The blue one")
                return lambda: any(one.value == "The blue one" for one in self._of(BOTTOM, JobEnded))
            case _:
                ana.telegram("Stop it")
                return lambda: self._all_have(Stopped) and not processes_in(self.folder)

    @property
    def _workspace(self) -> Path:
        return self.folder / "frontdesk.db.actions" / BOTTOM / "workspace"

    def log(self, key: str) -> list[ActionEntry]:
        return self.stage.journals.action_entries(key)

    def _of(self, key: str, kind: type[Any]) -> list[Any]:
        return [one for one in self.log(key) if isinstance(one, kind)]

    def _all_have(self, kind: type[Any]) -> bool:
        return all(self._of(key, kind) for key in (TOP, MIDDLE, BOTTOM))


@pytest.mark.parametrize(("broker", "step", "when"), SHARE)
async def test_a_share_of_the_moments(tmp_path: Path, broker: str, step: str, when: str) -> None:
    await killed(tmp_path, broker, step, when)


@pytest.mark.soak
@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize(("step", "when"), MOMENTS)
async def test_every_moment(tmp_path: Path, broker: str, step: str, when: str) -> None:
    await killed(tmp_path, broker, step, when)


@contextmanager
def opened(broker: str) -> Iterator[str]:
    """Its address."""
    if broker == "sqlite":
        yield broker
    elif not PROGRAM.exists():
        pytest.skip(WANTED)
    else:
        with NatsServer() as server:
            yield server.url


async def killed(folder: Path, broker: str, at: str, when: str) -> None:
    with opened(broker) as url:
        async with open_stage(folder, None, broker=url) as stage:
            await play_through(stage, folder, at, when)


async def play_through(stage: Stage, folder: Path, at: str, when: str) -> None:
    play = Play(stage, folder)
    for step in STEPS:
        happened = await play.do(step)
        if step == at and when == "at once":
            await again(stage)
        await until(happened, lambda step=step: f"{step}: {story(stage)}")
        if step == at and when == "after":
            await again(stage)
    for key in (TOP, MIDDLE, BOTTOM):
        state = rules.every_prefix(key, play.log(key))
        assert state.phase == "stopped"
        kinds = [type(one).__name__ for one in play.log(key) if isinstance(one, STEERING)]
        assert kinds == ["Interjected", "Paused", *(["Asked"] if key == TOP else []), "Resumed", "Stopped"]
        shown = "\n".join(str(message.get("content")) for message in state.transcript.snapshot({}, "?"))
        assert shown.count("Use the work account") == 1
    cells = [one for one in play.log(BOTTOM) if isinstance(one, JobStarted) and one.kind == "cell"]
    assert len(cells) == 1 or (at, when) == ("started", "at once"), "what had begun ran on"
    assert sum("Which card?" in text for text in stage.ana.on_telegram()) == 1


STEERING = Interjected | Paused | Asked | Resumed | Stopped


async def again(stage: Stage) -> None:
    await stage.kill()
    await stage.start()


def story(stage: Stage) -> str:
    lines = []
    for subject in stage.journals.subjects("log.act.%"):
        state = stage.journals.action(subject.removeprefix("log.act."))
        lines += [f"--- {state.key} {state.phase} {list(state.transcript.jobs)}", *rules.texts(state)]
    return "\n".join([*lines, f"Ana sees {stage.ana.on_telegram()}", stage.house.log.read_text()[-2000:]])  # type: ignore[attr-defined]
