"""Files over the border of an action: what people sent is there before its model is told; what code offers is told."""

import pytest

from actors.entries import Offered
from actors.handing import beginning
from gateway.events import ActionEnded, ActionResponded, ClarificationRequested, FileOffered
from gateway.files import attachment
from tests.actors.rules import texts
from tests.actors.shop import Shop, call, code

HANDS_ON = """\
print(await primitives.act("Write it down"))
print(open("received-1/numbers.txt").read())
"""
WRITES = """\
text = open("received-1/numbers.txt").read()
open("out.txt", "w").write(text.upper())
print(await primitives.files.send("out.txt", name="result.txt"))
"""
ASKS = """\
answer = await primitives.request_clarification("Which file?")
print(answer)
"""
TRIES = """\
import os
os.symlink("/etc/passwd", "link.txt")
for path in ("../../store.db", "/etc/passwd", "link.txt", "nothing.txt"):
    try:
        await primitives.files.send(path)
    except Exception as error:
        print("refused:", error)
"""


async def test_a_file_is_there_before_the_model_is_told_and_a_part_of_the_work_has_it_too(shop: Shop) -> None:
    shop.model.on("Take it", code(HANDS_ON), call("continue_code", cell="cell1", seconds=60), "All done")
    shop.model.on("Write it down", code(WRITES), "Written")
    await shop.start("a1", "Take it", files=(await shop.file("../../numbers.txt", b"one two"),))
    await shop.fact("a1", ActionResponded)
    first = str(shop.model.asked("Take it")[0].messages[-1]["content"])
    assert "\n  [file: received-1/numbers.txt (text/plain, 7 B)]\n    | one two" in first
    offered: FileOffered = await shop.fact("a1", FileOffered)
    assert (offered.file.name, offered.file.kind) == ("result.txt", "text/plain")
    assert await shop.broker.get_blob(offered.file.digest) == b"ONE TWO"
    assert len(await shop.facts("a1", FileOffered)) == 1
    assert any("one two" in text for text in texts(await shop.state("a1")))


async def test_what_is_not_in_the_workspace_is_not_offered(shop: Shop) -> None:
    shop.model.on("Try", code(TRIES), "Tried")
    await shop.start("a1", "Try", persist=False)
    await shop.fact("a1", ActionEnded)
    said = "\n".join(texts(await shop.state("a1")))
    assert said.count("\nrefused: ") == 4
    assert "a link is not followed" in said
    assert await shop.facts("a1", FileOffered) == []


async def test_a_file_that_is_not_in_the_store_any_more_does_not_hold_up_the_work(shop: Shop) -> None:
    shop.model.on("Take it", "Taken")
    await shop.start("a1", "Take it", files=(attachment("a.txt", "text/plain", 3, "0" * 64),))
    await shop.fact("a1", ActionResponded)
    assert "[file: a.txt is not there: it is not in the store any more]" in texts(await shop.state("a1"))[0]


async def test_more_comes_with_a_correction_and_with_an_answer_to_code(shop: Shop) -> None:
    shop.model.on("Wait", "Ready", code(ASKS), call("continue_code", cell="cell1", seconds=60), "Got it")
    await shop.start("a1", "Wait")
    await shop.fact("a1", ActionResponded)
    await shop.interject("a1", "here", (await shop.file("a.txt", b"a"),))
    question: ClarificationRequested = await shop.fact("a1", ClarificationRequested)
    left = shop.folder / "actions" / "a1" / "workspace" / "received-3"
    left.mkdir()  # as a crash before the answer was written would leave it
    await shop.answer("a1", question.question, "this one", (await shop.file("b.txt", b"b"),))
    await shop.fact("a1", ActionResponded, 2)
    said = "\n".join(texts(await shop.state("a1")))
    assert "[file: received-2/a.txt (text/plain, 1 B)]" in said
    assert "[file: received-4/b.txt (text/plain, 1 B)]" in said


async def test_the_same_file_is_offered_once_however_often_it_is_told(shop: Shop) -> None:
    twice = "open('x', 'w').write('x')\nawait primitives.files.send('x')\nawait primitives.files.send('x')"
    shop.model.on("Twice", code(twice), "Done")
    await shop.start("a1", "Twice")
    await shop.fact("a1", ActionResponded)
    assert len([one for one in await shop.log("a1") if isinstance(one, Offered)]) == 1


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfa,b\r\n\r\n1,2\n3,4\n5,6\n", "\n    | a,b\n    | 1,2\n    | 3,4\n    | …"),
        (("a" + "é" * 2_000).encode(), "\n    | a" + "é" * 119 + "\n    | …"),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"a\x00b", ""),
        (b"", ""),
    ],
)
def test_a_text_is_shown_with_its_first_lines(data: bytes, shown: str) -> None:
    assert beginning(data) == shown
