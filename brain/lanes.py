"""The lanes' supervisor: one lane for each conversation. One that fails is folded again from its journal; the others do
not notice. One that has been quiet for long is closed, and folded again at its next word. One whose journal cannot be
read is parked: nobody opens it, and nothing of it is thrown away.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from brain.lane import Lane, Quiet, is_quiet
from brain.state import LaneState
from gateway.broker.protocol import Deposed
from gateway.journal import JournalClosed
from gateway.record import Undecodable

log = logging.getLogger(__name__)
MEND = "Start the version that wrote it, or restore a backup; until then what is written there is kept."
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 10.0

T = TypeVar("T")
Opens = Callable[[str], Awaitable[Lane]]


class Parked(Exception):
    """Nobody can open that conversation: its journal cannot be read."""

    def __init__(self, conversation: str) -> None:
        super().__init__(conversation)
        self.conversation = conversation


class Lanes:
    """`opens` folds and owns a conversation's journal; `group` is where they run."""

    def __init__(self, opens: Opens, group: asyncio.TaskGroup, operator: Callable[[str], None]) -> None:
        self._opens, self._group, self._operator = opens, group, operator
        self._parked: set[str] = set()
        self._lanes: dict[str, asyncio.Future[Lane]] = {}
        self._closed: dict[str, LaneState] = {}

    def __contains__(self, conversation: str) -> bool:
        return conversation in self._lanes or conversation in self._closed

    def keep(self, conversation: str) -> None:
        if conversation not in self._lanes:
            self._closed.pop(conversation, None)
            self._lanes[conversation] = asyncio.get_running_loop().create_future()
            self._group.create_task(self._keep_running(conversation), name=f"lane {conversation}")

    def names(self) -> list[str]:
        return [*self._lanes, *self._closed]

    def open_now(self) -> list[Lane]:
        return [lane.result() for lane in self._lanes.values() if lane.done() and not lane.cancelled()]

    def state(self, conversation: str) -> LaneState | None:
        """Of one that is closed only where its people were."""
        lane = self.now(conversation)
        return lane.journal.state if lane is not None else self._closed.get(conversation)

    def shared(self) -> list[LaneState]:
        """Of the shared places that are open now."""
        found = (self.state(name) for name in self._lanes if name.startswith("s-"))
        return [state for state in found if state is not None]

    def now(self, conversation: str) -> Lane | None:
        """If it is open now."""
        lane = self._lanes.get(conversation)
        return lane.result() if lane is not None and lane.done() and not lane.cancelled() else None

    async def get(self, conversation: str) -> Lane:
        """Folded: its state has all that its journal holds. Raises Parked."""
        if conversation in self._parked:
            raise Parked(conversation)
        self.keep(conversation)
        return await asyncio.shield(self._lanes[conversation])

    async def ask(self, conversation: str, what: Callable[[Lane], Awaitable[T]]) -> T:
        """Again, where the lane fails under it and is being folded anew. Raises Parked."""
        while True:
            lane = await self.get(conversation)
            with suppress(JournalClosed):
                return await what(lane)
            await asyncio.sleep(FIRST_PAUSE_SECONDS)

    async def _keep_running(self, conversation: str) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                lane = await self._opens(conversation)
            except Undecodable as error:
                self._park(conversation, error)
                return
            self._lanes[conversation].set_result(lane)
            quiet = False
            try:
                await lane.run()
            except* Deposed:
                raise
            except* Quiet:
                quiet = True
            except* Exception:  # whatever it is, it ends neither the others nor this one
                log.exception("lane %s (%s) failed; it is folded again", conversation, lane.frame.contact.name)
            if quiet and await lane.journal.release() and is_quiet(lane.journal.state):
                del self._lanes[conversation]  # who asked meanwhile was refused, and asks again
                self._closed[conversation] = _remembered(lane.journal.state)
                return
            self._lanes[conversation] = asyncio.get_running_loop().create_future()
            if quiet:  # something was being written as it ended
                continue
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _park(self, conversation: str, error: Undecodable) -> None:
        self._parked.add(conversation)
        self._operator(f"The conversation {conversation} cannot be opened: {error}. {MEND}")
        waited_for = self._lanes.pop(conversation)
        waited_for.set_exception(Parked(conversation))
        waited_for.exception()  # whether or not somebody waits for it


def _remembered(state: LaneState) -> LaneState:
    light = LaneState(state.conversation)
    light.reached, light.routes = state.reached, state.routes
    return light
