"""A gateway for tests to kill: `python gateway.py <directory> <code> <stateful> <text>`.

It runs one cell, `c1`, prints `ready` when `text` is in its output, or, without a text, when it has called; and then
does nothing until it is ended.
"""

import asyncio
import sys
from pathlib import Path

from actors.sandbox.words import CellCalled, Happening
from tests.sandbox.desk import Desk


async def main(directory: str, code: str, stateful: str, text: str) -> None:
    desk = Desk(Path(directory))
    await desk.begin(code, stateful=stateful == "yes", cell="c1")

    def calls(told: list[Happening]) -> list[CellCalled]:
        return [happening for happening in told if isinstance(happening, CellCalled)]

    if not text:
        await desk.until(calls)
    else:
        await desk.output("c1", text)
        desk.sandbox.fresh("c1")
        desk.sandbox.recorded("c1")
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
