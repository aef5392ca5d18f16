"""The composition root: the one place that knows every part, and what each is given. Starting and stopping is here.

Roles run side by side under their leases: one for each medium account (both directions), the brain, the actors. In one
process all of them; on a shared broker any of them in any number of processes, of which one holds each account, one is
the brain, and all run actions.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from functools import partial

from actors.sharing import role_of
from actors.supervisor import ActionHost
from brain.history import Recalls
from brain.manager import Manager
from brain.purse import Caps
from frontdesk import control
from frontdesk.accounts import Accounts
from frontdesk.crew import Crew
from frontdesk.erasing import erase_here
from frontdesk.parts import Parts
from frontdesk.people import Directory, contacts
from frontdesk.reaching import reach
from frontdesk.store import ROLES, is_shared, machine_of, open_broker
from frontdesk.upkeep import keeper, keeper_key
from frontdesk.work import Actors
from gateway import live, stalls
from gateway.addresses import Address
from gateway.broker.protocol import Broker, BrokerUnusable
from gateway.clock import utc_now
from gateway.holding import Guard, Role, supervise
from gateway.keeping import ViewsFailed
from gateway.notes import Notes
from gateway.record import Undecodable
from gateway.settings import Settings
from mediums.medium import Medium

LEASE_SECONDS = 10.0
SHARED_LEASE_SECONDS = 2.0  # whoever takes over waits for it; whole seconds


class App:
    """One gateway process with some or all of the roles."""

    def __init__(self, settings: Settings, parts: Parts, roles: Collection[str] = ROLES) -> None:
        self.settings, self.parts, self.roles = settings, parts, roles
        self.worker = f"{socket.gethostname()}-{os.getpid()}"
        self.directory = Directory(settings)
        self.broker: Broker | None = None
        self.manager: Manager | None = None
        self.mediums: dict[str, Medium] = {}
        self._actors: Actors | None = None

    @property
    def actions(self) -> ActionHost | None:
        return self._actors.host if self._actors is not None else None

    async def run(self) -> None:
        """Until cancelled; then every role ends cleanly. Raises BrokerUnusable."""
        broker = self.broker = await open_broker(self.settings, self.parts.operator)
        crew = Crew(partial(self._roles, broker))
        try:
            async with self._controlled(broker, crew):
                await crew.run(self._started)
        finally:
            await broker.close()

    def _started(self) -> None:
        stalls.keep_short()
        self.parts.started()

    @asynccontextmanager
    async def _controlled(self, broker: Broker, crew: Crew) -> AsyncIterator[None]:
        """What the command line may ask of it meanwhile."""
        store = self.settings.store.path
        if not is_shared(self.settings):
            async with control.answering(store, partial(self._answer, broker, crew)):
                yield
            return
        keeping_away = asyncio.create_task(control.keep_away_when_asked(broker, crew), name="control")
        try:
            yield
        finally:
            keeping_away.cancel()
            await asyncio.wait({keeping_away})

    async def _answer(self, broker: Broker, crew: Crew, asked: control.Asked) -> control.Answered:
        if asked.what != "erase":
            return control.Answered(well=False, text=f"This gateway does not know how to {asked.what}.")
        try:
            person = Address.parse(asked.about)
            async with crew.away():
                text = await erase_here(broker, self.settings, person)
        except (ValueError, BrokerUnusable, ViewsFailed, Undecodable) as error:
            return control.Answered(well=False, text=str(error))
        return control.Answered(well=True, text=text)

    def _roles(self, broker: Broker) -> dict[str, Coroutine[None, None, None]]:
        """By the key of their lease; and what only follows."""
        self.directory = Directory(self.settings)
        roles: dict[str, Role] = {}
        settings, shared = self.settings, is_shared(self.settings)
        machine = machine_of(settings.store.path)
        if "mediums" in self.roles:
            roles |= Accounts(broker, settings, self.parts, self.directory, self.worker, self.mediums).roles()
        if "brain" in self.roles:
            roles["brain"] = lambda guard: self._brain(broker, guard)
        if "actors" in self.roles:
            self._actors = Actors(broker, settings, self.parts, self.directory, self.worker)
            roles[f"{role_of(machine)}{os.getpid()}"] = self._actors.run
        if {"brain", "actors"} & {*self.roles}:  # whoever looks into the views
            roles[keeper_key(settings)] = keeper(broker, settings).run
        seconds = SHARED_LEASE_SECONDS if shared else LEASE_SECONDS
        held = {key: supervise(broker, key, seconds, work) for key, work in roles.items()}
        return {**held, "who is who": self.directory.follow(broker)}

    async def _brain(self, broker: Broker, guard: Guard) -> None:
        model = self.settings.model
        before = {subject.removeprefix("log.out.") for subject in await broker.subjects("log.out.>")}
        self.manager = Manager(
            broker,
            guard,
            self.worker,
            assistant=self.settings.assistant.name,
            contacts=contacts(self.settings),
            model=self.parts.brain_model,
            tell=lambda account, signal: broker.signal(live.subject(account), live.payload(signal)),
            operator=self.parts.operator,
            now=utc_now,
            pace=self.parts.pace,
            notes=Notes(broker, self.directory.whose, utc_now),
            recall=Recalls(self.settings.store.path),
            by_schema=self.settings.model.tool_calls == "schema",
            reach=reach(self.settings, lambda account: account in self.mediums or account in before),
            ambient=frozenset(one.place for one in self.settings.places if one.ambient),
            caps=Caps(
                all=model.max_usd_per_day,
                person=model.max_usd_per_person_per_day,
                zone=self.settings.assistant.timezone,
            ),
        )
        await self.manager.run()


__all__ = ["App", "Parts"]
