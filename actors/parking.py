"""Actions whose journal cannot be read: nobody opens them, whoever asked hears of it once, and the others go on.

A newer version wrote an entry, or the store is damaged. Nothing of it is thrown away: its commands stay, and a version
that can read the journal goes on with the action. All that is said of it here has refs of its own, by the places of the
commands, so that saying it again after a restart is harmless.
"""

import asyncio
import logging
from contextlib import suppress

from actors.entries import ActionEntry
from actors.journal import ActionState
from actors.strays import root_of, unheard
from actors.workshop import Workshop
from gateway.actions import verb_of
from gateway.broker.protocol import Broker
from gateway.events import ActionCommand, ActionEnded, CommandRefused, Ref
from gateway.folding import fold_stored
from gateway.journal import publish
from gateway.record import Undecodable

log = logging.getLogger(__name__)
UNREADABLE = "what was written down of it cannot be read any more"
ENDED = f"I cannot go on with this: {UNREADABLE}. What it had begun is not known to be done. My operator was told."
MEND = "Start the version that wrote it, or restore a backup; until then the action is left alone."


class Parked:
    def __init__(self, broker: Broker, work: Workshop) -> None:
        self._broker, self._work = broker, work
        self._through: dict[str, int] = {}  # up to which of its commands each was answered for

    def __contains__(self, key: str) -> bool:
        return key in self._through

    async def park(self, key: str, error: Undecodable, commands: list[tuple[int, ActionCommand]]) -> None:
        """`commands` are all that are stored of it."""
        log.error("the action %s is parked: %s", key, error)
        self._work.operator(f"The action {key} cannot be opened: {error}. {MEND}")
        state = ActionState(key)
        with suppress(Undecodable):  # it is folded as far as it can be read
            await fold_stored(self._broker, f"log.act.{key}", state, ActionEntry)
        self._through[key] = state.through
        for left in state.outgoing:
            await publish(self._broker, left.subject, left.body, str(left.ref))
        start = state.start or next((command for _, command in commands), None)
        if start is not None and not state.transcript.ended:
            ended = ActionEnded(
                ref=self._ref(key, 0), conversation=start.conversation, action=key, end="failed", text=ENDED
            )
            await publish(self._broker, f"evt.act.{key}", ended, str(ended.ref))
        for name in await asyncio.to_thread(self._work.sandboxes):
            if root_of(name) == key:
                await self._work.box(name, unheard).kill()
        await self.refuse(key, commands)

    async def refuse(self, key: str, commands: list[tuple[int, ActionCommand]]) -> None:
        for sequence, command in commands:
            if sequence <= self._through[key]:
                continue
            refused = CommandRefused(
                ref=self._ref(key, sequence),
                conversation=command.conversation,
                action=key,
                command=command.ref,
                verb=verb_of(command),
                why=UNREADABLE,
            )
            await publish(self._broker, f"evt.act.{key}", refused, str(refused.ref))
            self._through[key] = sequence

    def _ref(self, key: str, sequence: int) -> Ref:
        return Ref(f"act-{key}/parked", sequence, 0)
