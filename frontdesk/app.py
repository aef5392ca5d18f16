"""The composition root: the one place that knows every part, and what each is given. Starting and stopping is here.

Roles run side by side under their leases: one for each medium account (both directions), the brain, the actors. In one
process all of them; on a shared broker any of them in any number of processes, of which one holds each account, one is
the brain, and all run actions.
"""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Collection, Coroutine

from actors.sharing import role_of
from actors.supervisor import ActionHost
from brain.history import Recalls
from brain.manager import Manager
from brain.purse import Caps
from frontdesk.accounts import Accounts
from frontdesk.parts import Parts
from frontdesk.people import Directory, contacts
from frontdesk.reaching import reach
from frontdesk.store import ROLES, is_shared, machine_of, open_broker
from frontdesk.upkeep import keeper, keeper_key
from frontdesk.work import Actors
from gateway import live
from gateway.broker.protocol import Broker
from gateway.clock import utc_now
from gateway.holding import Guard, Role, supervise
from gateway.notes import Notes
from gateway.settings import Settings
from mediums.medium import Medium

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
SHARED_LEASE_SECONDS = 2.0  # whoever takes over waits for it; whole seconds
STOP_SECONDS = 8.0


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
        """Until cancelled; then every role ends cleanly, within STOP_SECONDS. Raises BrokerUnusable."""
        broker = self.broker = await open_broker(self.settings, self.parts.operator)
        tasks = [asyncio.create_task(role, name=name) for name, role in self._roles(broker).items()]
        gc.freeze()  # what was imported stays: a full collection that walked it took 34 ms
        tasks.append(asyncio.create_task(self.directory.follow(broker), name="who is who"))
        self.parts.started()
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            if late:
                log.error("did not stop in %.0f s: %s", STOP_SECONDS, [task.get_name() for task in late])
            await broker.close()

    def _roles(self, broker: Broker) -> dict[str, Coroutine[None, None, None]]:
        """By the key of their lease."""
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
        return {key: supervise(broker, key, seconds, work) for key, work in roles.items()}

    async def _brain(self, broker: Broker, guard: Guard) -> None:
        model = self.settings.model
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
            reach=reach(self.settings),
            ambient=frozenset(one.place for one in self.settings.places if one.ambient),
            caps=Caps(all=model.max_usd_per_day, person=model.max_usd_per_person_per_day),
        )
        await self.manager.run()


__all__ = ["App", "Parts"]
