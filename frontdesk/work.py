"""The role that runs actions: what their code can call, where it runs, and within which bounds."""

import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from actors import prompt as actor_prompt
from actors.primitives import contacts as contact_cards
from actors.primitives import notes as note_primitives
from actors.primitives import packages as package_primitives
from actors.primitives import tasks as task_primitives
from actors.primitives import transcripts
from actors.sandbox import found as sandboxes
from actors.sandbox.gate.policy import Grant, Policy
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.words import Isolation
from actors.sandbox.stubs import Stub
from actors.sandbox.zygote import Hold
from actors.sharing import Alone, Beside
from actors.supervisor import ActionHost
from actors.workshop import Box, Caller, Limits, Primitive, Workshop
from frontdesk import packages
from frontdesk.history import LaneHistory, sees
from frontdesk.isolation import Choice, choose
from frontdesk.parts import Parts
from frontdesk.people import Directory
from frontdesk.store import is_shared, machine_of, workspaces
from gateway.broker.protocol import Broker, Shared, Unconfirmed
from gateway.clock import utc_now
from gateway.events import Person
from gateway.holding import Guard
from gateway.journal import store_blob
from gateway.notes import Notes
from gateway.settings import Settings

if TYPE_CHECKING:
    from actors.sandbox.words import Happening

UNSIGNED = 'sandbox.secrets are not used: that needs isolation, and sandbox.network = "proxy".'
END_SECONDS = 900.0  # without a word from its holder, where another machine takes over what it belongs to


def hold_of(settings: Settings, holds: Callable[[], bool]) -> Hold:
    """How long a sandbox goes on of which nobody says that it is held."""
    return Hold(holder=socket.gethostname(), holds=holds, end_seconds=END_SECONDS if is_shared(settings) else None)


class Actors:
    def __init__(self, broker: Broker, settings: Settings, parts: Parts, directory: Directory, worker: str) -> None:
        self._broker, self._settings, self._parts, self._people, self._worker = (
            broker,
            settings,
            parts,
            directory,
            worker,
        )
        self._notes = Notes(broker, directory.whose, utc_now)
        self.host: ActionHost | None = None

    async def run(self, guard: Guard) -> None:
        settings, broker = self._settings, self._broker
        choice = await choose(settings.sandbox)
        for line in choice.careful:
            self._parts.operator(line)
        if settings.sandbox.secrets and not choice.signs_requests:
            self._parts.operator(UNSIGNED)
        work = self._workshop(guard, choice)
        machine = machine_of(settings.store.path)
        sharing = Beside(cast(Shared, broker), guard.lease, machine) if is_shared(settings) else Alone(broker)
        self.host = ActionHost(broker, guard, self._worker, work, sharing)
        await self.host.run()

    def _workshop(self, guard: Guard, choice: Choice) -> Workshop:
        primitives, secrets = self._primitives(choice), self._settings.sandbox.secrets
        signed = [(one.name, one.host) for one in secrets if choice.signs_requests]
        folder = workspaces(self._settings.store.path)
        return Workshop(
            model=self._parts.actor_model,
            box=self._boxes(folder, guard, packages.furnished(self._settings, choice), actor_prompt.stubs(primitives)),
            primitives={primitive.method: primitive for primitive in primitives},
            limits=self._limits(choice),
            now=utc_now,
            operator=self._parts.operator,
            notes=self._noted,
            told=packages.told(self._settings, choice) + actor_prompt.granted(signed),
            waiting=lambda key, after: cast(ActionHost, self.host).waiting(key, after),
            check=guard.check,
            keep=partial(store_blob, self._broker),
            blob=self._broker.get_blob,
            sandboxes=partial(sandboxes.running, folder),
        )

    def _primitives(self, choice: Choice) -> list[Primitive]:
        broker, settings = self._broker, self._settings
        return [
            contact_cards.find(self._cards),
            transcripts.search(
                LaneHistory(
                    broker, self._people.whose, settings.assistant.name, settings.store.path, self._people.contacts.home
                )
            ),
            *task_primitives.reading(task_primitives.Tasks(broker, self._people.whose, self._sees)),
            *note_primitives.keeping(self._notes, self._in_private),
            *package_primitives.installing(settings.sandbox.install, packages.Installer(settings, choice)),
            *self._parts.primitives,
        ]

    def _boxes(
        self, folder: Path, guard: Guard, isolation: Isolation, stubs: Sequence[Stub]
    ) -> "Callable[[str, Callable[[Happening], None]], Box]":
        settings = self._settings.sandbox
        grants = (
            Grant(name=one.name, host=one.host, header=one.header, value=one.value.reveal()) for one in settings.secrets
        )
        policy, hold = Policy(allow=settings.allow, grants=tuple(grants)), hold_of(self._settings, guard.holds)

        def box(key: str, emit: "Callable[[Happening], None]") -> Box:
            return Sandbox(
                folder / key,
                emit,
                isolation,
                stubs=stubs,
                policy=policy,
                hold=hold,
            )

        return box

    def _limits(self, choice: Choice) -> Limits:
        bounds = self._settings.actors
        return Limits(
            max_steps=bounds.max_steps,
            max_tokens=bounds.max_tokens,
            max_usd=bounds.max_usd,
            max_minutes=bounds.max_minutes,
            max_live=bounds.max_live,
            hibernate_after=bounds.hibernate_after,
            close_after=bounds.close_after,
            code_refused=choice.refused,
            code_tag=choice.tag,
        )

    # --- what primitives and briefs are told -------------------------------------------------------------------------

    def _sees(self, person: Person, here: str, there: str) -> bool:
        home = self._people.contacts.home
        return sees(self._people.whose(person), home(here), home(there))

    def _in_private(self, caller: Caller) -> bool:
        return self._is_theirs(caller.by, caller.conversation)

    def _is_theirs(self, person: Person, conversation: str) -> bool:
        return self._people.contacts.home(conversation) == f"p-{self._people.whose(person)}"

    async def _noted(self, person: Person, conversation: str) -> tuple[str, ...]:
        """For the brief of their work: not where others would hear them."""
        if not self._is_theirs(person, conversation):
            return ()
        try:
            return tuple(note.text for note in await self._notes.of(person))
        except Unconfirmed:  # work does not wait for what it can do without
            return ()

    def _cards(self, caller: Caller) -> list[contact_cards.Card]:
        return [
            contact_cards.Card(name=person.name, addresses=tuple(str(address) for address in person.addresses))
            for person in self._people.contacts.everyone()
        ]
