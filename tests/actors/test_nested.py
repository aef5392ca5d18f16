"""Three levels: a worker whose code starts a worker, and so on. Steered at the top; all transcripts checked."""

from pathlib import Path

from actors.entries import ActionEntry, Asked, Interjected, Paused, Resumed, Stopped
from gateway.events import ActionAnswered, ActionEnded, ActionResponded, ClarificationRequested
from tests.actors.rules import texts
from tests.actors.shop import Held, Shop, call, code
from tests.actors.test_idle import processes_below

TOP, MIDDLE, BOTTOM = "a1", "a1--child2", "a1--child2--child1"

STARTS = "print('starts')\nprint(await primitives.act('Second level'))"
BLOCKS = """\
import time
print('begins', flush=True)
for n in range(500):
    time.sleep(0.005)
    print(n, flush=True)
"""
OBSTINATE = """\
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pids = []
for n in range(20):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        while True: time.sleep(1)
    pids.append(pid)
print('all', flush=True)
while True: time.sleep(1)
"""


WAITS = """\
import pathlib, time
print('first half', flush=True)
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('second half')
"""


async def three_levels(shop: Shop) -> None:
    shop.model.on("First level", code(STARTS), call("continue_code", cell="cell1", seconds=600), "First is done")
    shop.model.on("Second level", call("act", query="Third level"), "Go on, third", "Second is done")
    shop.model.on("Third level", code(BLOCKS), call("continue_code", cell="cell1", seconds=600), "Third is done")
    await shop.start(TOP, "First level")
    await shop.output(BOTTOM, "cell1", "begins")


def steering(entries: list[ActionEntry]) -> list[str]:
    return [type(one).__name__ for one in entries if isinstance(one, Interjected | Paused | Resumed | Asked | Stopped)]


async def position(shop: Shop) -> str:
    actor = next(one for one in shop.host.open_actors if one.key == BOTTOM)
    return actor.box.peek("cell1")


async def test_each_level_is_interjected_paused_resumed_and_stopped_with_it(shop, tmp_path):
    await three_levels(shop)
    await shop.interject(TOP, "Use the work account")
    await shop.entry(BOTTOM, Interjected)
    await shop.until(lambda: _asked(shop, "Third level", 2))

    await shop.pause(TOP)
    await shop.entry(BOTTOM, Paused)
    await shop.ask(TOP, "How far are you?")
    assert (await shop.fact(TOP, ActionAnswered)).text == "About half."
    await shop.until(lambda: _all_stand(tmp_path))
    stood = await position(shop)
    await shop.ask(TOP, "And now?")
    await shop.fact(TOP, ActionAnswered, 2)
    assert await position(shop) == stood

    await shop.resume(TOP)
    await shop.entry(BOTTOM, Resumed)
    await shop.output(BOTTOM, "cell1", f"{len(stood.splitlines()) + 5}\n")

    await shop.stop(TOP)
    ended = await shop.fact(TOP, ActionEnded)
    assert ended.end == "stopped"
    assert "Its worker for “Second level” was stopped with it." in ended.text
    await shop.until(lambda: _none_below(tmp_path))

    for key in (TOP, MIDDLE, BOTTOM):
        entries = await shop.log(key)
        expected = ["Interjected", "Paused", "Asked", "Asked", "Resumed", "Stopped"]
        assert steering(entries) == [one for one in expected if key == TOP or one != "Asked"]
        lines = texts(await shop.state(key))
        assert sum("[Ana on telegram, Mon 09:00 UTC] Use the work account" in line for line in lines) == 1
        shown = [message["content"] for message in (await shop.state(key)).transcript.snapshot({}, "?")]
        assert shown.count("[paused]") == shown.count("[resumed]") == 1


async def _asked(shop: Shop, words: str, times: int) -> bool:
    return len(shop.model.asked(words)) >= times


async def _all_stand(folder) -> bool:
    """What runs code. Each sandbox's first process goes on: it has to notice when nobody holds the action any more."""
    seen = {pid: _process(pid) for pid in processes_below(folder)}
    return {state for state, parent in seen.values() if parent in seen} == {"T"}


def _process(pid: int) -> tuple[str, int]:
    state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return state, int(parent)


async def _none_below(folder) -> bool:
    return not processes_below(folder)


async def test_it_survives_a_restart_in_the_midst_and_comes_to_its_end(shop):
    await three_levels(shop)
    shop.model.then("First level", "First is done")
    shop.model.then("Second level", "Second is done")
    shop.model.then("Third level", "Third is done")
    await shop.again()
    await shop.fact(TOP, ActionResponded)
    lines = texts(await shop.state(TOP))
    assert any("Second is done" in line for line in lines)
    assert any("Third is done" in line for line in texts(await shop.state(MIDDLE)))
    assert any("\n499" in line for line in texts(await shop.state(BOTTOM)))
    log = await shop.log(BOTTOM)
    assert sum(type(one).__name__ == "JobStarted" for one in log) == 1


async def test_a_question_from_the_third_level_goes_up_and_its_answer_down(shop):
    shop.model.on("First level", code(STARTS), "First is done")
    shop.model.on("Second level", call("act", query="Third level"), "Second is done")
    asks = "print('chosen', await primitives.request_clarification('Which account?', options=['work', 'private']))"
    shop.model.on("Third level", code(asks), "Third is done")
    await shop.start(TOP, "First level")
    asked = await shop.fact(TOP, ClarificationRequested)
    assert (asked.text, asked.options) == ("Which account?", ("work", "private"))
    await shop.again()
    await shop.answer(TOP, asked.question, "work")
    await shop.fact(TOP, ActionResponded)
    assert any("chosen work" in line for line in texts(await shop.state(BOTTOM)))
    for key in (TOP, MIDDLE):
        assert any("was answered by Ana: work" in line for line in texts(await shop.state(key)))


async def test_stop_ends_twenty_programs_that_ignore_every_signal(shop, tmp_path):
    shop.model.on("First level", code(OBSTINATE), "Never")
    await shop.start(TOP, "First level")
    await shop.output(TOP, "cell1", "all")
    assert len(processes_below(tmp_path)) >= 21
    await shop.stop(TOP)
    await shop.until(lambda: _none_below(tmp_path))
    assert (await shop.fact(TOP, ActionEnded)).end == "stopped"


async def test_no_word_is_lost_whenever_it_comes(shop):
    """Mid-stream, between the answer and its sending, while code runs, between a result and the answer to it."""
    first, second, third = Held("Draft"), Held(code("print('x')")), Held("Done")
    shop.model.on("First level", first, second, third, "All four heard")
    await shop.start(TOP, "First level")
    await first.asked.wait()
    await shop.interject(TOP, "one")
    await first.cancelled.wait()
    await second.asked.wait()
    second.release()
    await third.asked.wait()
    for word in ("two", "three"):
        await shop.interject(TOP, word)
    await third.cancelled.wait()
    await shop.interject(TOP, "four")
    await shop.entry(TOP, Interjected, 4)
    await shop.fact(TOP, ActionResponded)
    lines = texts(await shop.phase(TOP, "awaiting_input"))
    said = [line.rpartition("] ")[2] for line in lines if line.startswith("user: [Ana") or "\n[Ana" in line]
    assert said == ["one", "two", "three", "four"]


async def test_output_that_was_shown_is_not_shown_again_after_a_restart(shop):
    waits = call("continue_code", cell="cell1", seconds=600)
    shop.model.on("First level", code(WAITS), waits, waits, "Done")
    await shop.start(TOP, "First level")
    await shop.output(TOP, "cell1", "first half")
    await shop.interject(TOP, "Hurry")
    await shop.until(lambda: _asked(shop, "First level", 2))
    await shop.again()
    await shop.until(lambda: _open(shop))
    (shop.folder / "actions" / TOP / "workspace" / "go").touch()
    await shop.fact(TOP, ActionResponded)
    text = "\n".join(texts(await shop.state(TOP)))
    assert (text.count("\nfirst half"), text.count("\nsecond half")) == (1, 1)


async def _open(shop) -> bool:
    return bool(shop.host.open_actors)
