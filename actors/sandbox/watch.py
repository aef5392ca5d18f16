"""Looks at what a sandbox keeps on disk, and ends it when that is too much: nobody else bounds it. See `quota`."""

import asyncio
import time

from actors.sandbox import quota as quotas
from actors.sandbox.cells import Cells
from actors.sandbox.crew import Crew
from actors.sandbox.folder import Folder
from actors.sandbox.quota import Quota

BOUNDLESS = Quota(bytes=1 << 62, files=1 << 62)
# While no cell runs: what may come unseen, one part in so many of what may be kept; and after how long it is looked for
# all the same, as others may have made room for what was written.
SLIP, QUIET_SECONDS = 16, 15.0


class Watch:
    """From `begin` until all of the sandbox has ended: what a cell has left running writes after its end, too."""

    def __init__(self, quota: Quota | None, folder: Folder, crew: Crew, cells: Cells) -> None:
        self._quota, self._folder, self._crew, self._cells = quota, folder, crew, cells
        self._task: asyncio.Task[None] | None = None
        self._news = ""

    def begin(self) -> None:
        """While it goes on already it changes nothing."""
        if self._quota is not None and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._hold_to(self._quota), name="watch")

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def news(self) -> str:
        """Why it was ended while no cell ran, once; "" if it was not."""
        news, self._news = self._news, ""
        return news

    async def _hold_to(self, quota: Quota) -> None:
        """What was written since all was well is removed with the sandbox, or no cell could run."""
        well, pause, room, began = time.time(), quotas.CHECK_SECONDS, BOUNDLESS, 0.0
        while self._cells.running() or self._crew.lives:
            await asyncio.sleep(pause)
            left = await asyncio.to_thread(quotas.room, self._folder.workspace, self._crew.tmp())
            quiet = not self._cells.running() and time.time() - began < QUIET_SECONDS
            if quiet and not _has_shrunk(room, left, quota):
                room = Quota(bytes=max(room.bytes, left.bytes), files=max(room.files, left.files))
                continue
            began, room = time.time(), left
            folders = (self._folder.workspace, self._folder.run)
            why = await asyncio.to_thread(quotas.exceeded, folders, self._crew.tmp(), quota)
            pause = max(quotas.CHECK_SECONDS, (time.time() - began) * quotas.SHARE)
            if why:
                self._tell(f"{why}; what it wrote last was removed, and it was ended.")
                await self._crew.kill()
                await asyncio.to_thread(quotas.trim, self._folder.workspace, well)
            else:
                well = began

    def _tell(self, why: str) -> None:
        running = self._cells.running()
        if not running:
            self._news = f"{why} Its variables are gone."
        for name in running:
            if (cell := self._cells.get(name)) is not None:
                self._cells.lose(cell, why)


def _has_shrunk(room: Quota, left: Quota, quota: Quota) -> bool:
    """By so much that this sandbox may have done it."""
    return room.bytes - left.bytes > quota.bytes // SLIP or room.files - left.files > quota.files // SLIP
