"""What is kept of a stateful session while nothing of it runs."""

from actors.sandbox.words import Restored

BEFORE = """\
import json
import math as m
from functools import lru_cache

class Month:
    def __init__(self, name): self.name = name

RATE = 2

@lru_cache
def twice(n):
    return n * RATE

def area(r): return m.pi * twice(r)

rows = [{"month": "Feb", "total": 7}]
february = Month("Feb")
numbers = (n for n in range(3))
square = lambda n: n * n
handle = open("notes.txt", "w")
_private = 5
"""


async def test_variables_come_back_one_by_one_and_what_cannot_is_named(make_desk):
    desk = make_desk()
    await desk.run(BEFORE, stateful=True)
    kept = await desk.sandbox.save()
    assert {"json", "m", "Month", "RATE", "twice", "area", "rows", "february", "_private"} <= {
        name.name for name in kept.saved
    }
    assert {lost.name for lost in kept.lost} == {"numbers", "square", "handle"}
    assert "cannot pickle" in next(lost.why for lost in kept.lost if lost.name == "numbers")
    await desk.sandbox.kill()

    again = make_desk(desk.sandbox.workspace.parent)
    restored = await again.sandbox.restore()
    assert restored.lost == ()
    assert {name.name for name in kept.saved} == {*restored.names}
    ended = await again.run("(area(1) > 6, february.name, rows[0]['total'], json.dumps(_private))", stateful=True)
    assert ended.value == "(True, 'Feb', 7, '5')"
    await again.run("RATE = 10", stateful=True)
    assert (await again.run("twice(50)", stateful=True)).value == "500"
    second = await again.sandbox.save()
    assert "area" in {name.name for name in second.saved}


async def test_a_value_that_raises_when_it_comes_back_is_lost_alone(make_desk):
    desk = make_desk()
    code = "class Odd:\n    def __setstate__(self, state): raise RuntimeError('no')\nodd = Odd()\nodd.x = 1\nfine = 3"
    await desk.run(code, stateful=True)
    await desk.sandbox.save()
    await desk.sandbox.kill()
    again = make_desk(desk.sandbox.workspace.parent)
    restored = await again.sandbox.restore()
    assert [(lost.name, lost.why) for lost in restored.lost] == [("odd", "no")]
    assert (await again.run("fine", stateful=True)).value == "3"


async def test_nothing_is_kept_of_a_sandbox_without_a_session(make_desk):
    desk = make_desk()
    kept = await desk.sandbox.save()
    assert (kept.saved, kept.lost) == ((), ())
    assert await desk.sandbox.restore() == Restored()
