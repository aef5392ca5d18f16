"""A session that nobody speaks to costs nothing, and takes up where it left off."""

import os
from pathlib import Path

from actors.entries import Hibernated, Woken
from actors.workshop import Limits
from gateway.events import ActionAnswered, ActionEnded, ActionResponded
from tests.actors.rules import texts
from tests.actors.shop import Shop, code


def processes_below(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(folder):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


FEBRUARY = (
    "rows = [1, 2, 3]\ndef total(): return sum(rows)\nlines = (n for n in rows)\nopen('note.txt', 'w').write('hi')"
)


async def test_an_idle_session_hibernates_and_its_next_word_finds_its_variables(shop, tmp_path):
    shop.model.on("February", code(FEBRUARY, stateful=True), "It is 6", code("print(total() + 1)", stateful=True), "7")
    await shop.start("a1", "Do February")
    await shop.phase("a1", "awaiting_input")
    assert processes_below(tmp_path)
    shop.clock.advance(hours=12)
    state = await shop.phase("a1", "hibernated")
    assert {one.name for one in state.asleep.saved} == {"rows", "total"}
    await shop.until(gone := _gone(shop))
    assert processes_below(tmp_path) == []

    await shop.interject("a1", "Great, now one more")
    responded = await shop.fact("a1", ActionResponded, 2)
    assert responded.text == "7"
    lines = texts(await shop.phase("a1", "awaiting_input"))
    woken = next(line for line in lines if "put to sleep" in line)
    assert "there again: rows, total" in woken
    assert "lines (cannot pickle 'generator' object)" in woken
    assert lines.index(woken) == next(n for n, line in enumerate(lines) if "one more" in line) + 1
    assert "tool: cell2 ended: ok.\n7" in lines
    assert gone is not None


def _gone(shop: Shop, key: str = "a1"):
    async def gone() -> bool:
        return shop.host.actor(key) is None

    return gone


async def test_it_wakes_after_a_restart_too_and_is_asked_without_waking(shop, tmp_path):
    shop.model.on("February", code("x = 41", stateful=True), "Done", code("x + 1", stateful=True), "42")
    await shop.start("a1", "Do February")
    await shop.phase("a1", "awaiting_input")
    shop.clock.advance(hours=12)
    await shop.phase("a1", "hibernated")
    await shop.again()
    await shop.ask("a1", "What did you do?")
    assert (await shop.fact("a1", ActionAnswered)).text == "About half."
    assert (await shop.state("a1")).phase == "hibernated"
    assert processes_below(tmp_path) == []
    await shop.interject("a1", "And one more")
    await shop.fact("a1", ActionResponded, 2)
    assert "tool: cell2 ended: ok.\n42" in texts(await shop.state("a1"))


async def test_more_variables_than_an_entry_can_name_sleep_and_wake_all_the_same(shop):
    """Some are kept, and some cannot be."""
    many = "for n in range(6000): globals()[f'figure_{n:05d}_' + 'x' * 150] = n"
    lost = "for n in range(3000): globals()[f'stream_{n:05d}_' + 'x' * 150] = (one for one in ())"
    again = code(f"print(figure_05999_{'x' * 150} + 1)", stateful=True)
    shop.model.on("February", code(f"{many}\n{lost}", stateful=True), "Done", again, "It is 6000")
    await shop.start("a1", "Do February")
    await shop.phase("a1", "awaiting_input")
    shop.clock.advance(hours=12)
    await shop.phase("a1", "hibernated")
    await shop.interject("a1", "And the last?")
    assert (await shop.fact("a1", ActionResponded, 2)).text == "It is 6000"
    assert "tool: cell2 ended: ok.\n6000" in texts(await shop.phase("a1", "awaiting_input"))


async def test_a_word_that_comes_first_keeps_it_awake(shop):
    shop.model.on("February", code("x = 1", stateful=True), "Done", "Still here")
    await shop.start("a1", "Do February")
    await shop.phase("a1", "awaiting_input")
    await shop.interject("a1", "Wait")
    shop.clock.advance(hours=12)
    await shop.fact("a1", ActionResponded, 2)
    assert not [one for one in await shop.log("a1") if isinstance(one, Hibernated)]
    shop.clock.advance(hours=12)
    await shop.phase("a1", "hibernated")


async def test_when_too_many_are_live_the_one_longest_idle_sleeps_first(tmp_path):
    async with Shop(tmp_path, limits=Limits(max_live=2)) as shop:
        for n in (1, 2, 3, 4):
            shop.model.on(f"Task {n}", code("x = 1", stateful=True), "Done")
            await shop.start(f"a{n}", f"Task {n}")
            await shop.phase(f"a{n}", "awaiting_input")
            shop.clock.advance(minutes=1)
        await shop.phase("a1", "hibernated")
        await shop.phase("a2", "hibernated")
        assert [(await shop.state(key)).phase for key in ("a3", "a4")] == ["awaiting_input"] * 2


async def test_it_is_closed_in_the_end_with_a_line_to_its_conversation(shop):
    shop.model.on("February", code("x = 1", stateful=True), "It is 6")
    shop.model.on("March", "Nothing to do")
    for key, query in (("a1", "Do February"), ("a2", "Do March")):
        await shop.start(key, query)
        await shop.phase(key, "awaiting_input")
    shop.clock.advance(hours=12)
    await shop.phase("a1", "hibernated")
    await shop.again()
    shop.clock.advance(days=30)
    ended = await shop.fact("a1", ActionEnded)
    assert (ended.end, "30 days" in ended.text, "It is 6" in ended.text) == ("succeeded", True, True)
    await shop.fact("a2", ActionEnded)


async def test_a_variable_store_that_is_gone_is_named_as_lost(shop, tmp_path):
    shop.model.on("February", code("x = 41", stateful=True), "Done", "Alas")
    await shop.start("a1", "Do February")
    await shop.phase("a1", "awaiting_input")
    shop.clock.advance(hours=12)
    await shop.phase("a1", "hibernated")
    for kept in (tmp_path / "actions" / "a1" / "workspace" / ".session").iterdir():
        kept.write_bytes(b"no pickle")
    await shop.interject("a1", "And now?")
    woken = await shop.entry("a1", Woken)
    assert "Lost: x (" in woken.text
