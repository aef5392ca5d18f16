"""The composition root: the one place that knows every part, and what each is given. Starting and stopping is here.

Roles run side by side under their leases: one for each medium account (both directions), the brain, the actors. In one
process all of them; on a shared broker any of them in any number of processes, of which one holds each account, one is
the brain, and all run actions.
"""

import asyncio
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from actors import prompt as actor_prompt
from actors.primitives import contacts as contact_cards
from actors.primitives import notes as note_primitives
from actors.primitives import tasks as task_primitives
from actors.primitives import transcripts
from actors.sandbox import found as sandboxes
from actors.sandbox.gate.policy import Grant, Policy
from actors.sandbox.host import Sandbox
from actors.sharing import Alone, Beside, role_of
from actors.supervisor import ActionHost
from actors.workshop import Box, Caller, Limits, Primitive, Workshop
from brain.contacts import Contact, Contacts, contact_key, owner
from brain.hold import Pace
from brain.manager import Manager
from frontdesk.console import Console
from frontdesk.history import LaneHistory, sees
from frontdesk.isolation import choose
from frontdesk.store import ROLES, is_shared, open_broker
from frontdesk.upkeep import views_file
from gateway import live
from gateway.addresses import Address, journal_key
from gateway.broker.protocol import Broker, Shared, Unconfirmed
from gateway.clock import utc_now
from gateway.events import MediumFact, Person, identity_of
from gateway.holding import Guard, Role, supervise
from gateway.journal import publish, store_blob
from gateway.keeping import Keeper
from gateway.live import LiveSignal
from gateway.llm.model import Model
from gateway.notes import Notes
from gateway.outbox import Outbox
from gateway.record import decode
from gateway.settings import IMAP_PORTS, SMTP_PORTS, EmailSettings, Settings
from mediums.medium import Medium

if TYPE_CHECKING:
    from actors.sandbox.words import Happening
    from mediums.email.account import Account

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
SHARED_LEASE_SECONDS = 2.0  # whoever takes over waits for it; whole seconds
STOP_SECONDS = 8.0


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between a gateway, the demo and a test. `operator` hears what somebody must mend."""

    brain_model: Model
    actor_model: Model
    operator: Callable[[str], None]
    primitives: Sequence[Primitive] = ()
    banner: Sequence[str] = ()
    pace: Pace = Pace()
    token: str = ""
    started: Callable[[], None] = lambda: None  # all is imported and begun: time for what should not slow the start
    opened: Callable[[str], None] = lambda url: None  # the local page listens at this address


class App:
    """One gateway process with some or all of the roles."""

    def __init__(self, settings: Settings, parts: Parts, roles: Collection[str] = ROLES) -> None:
        self.settings, self.parts, self.roles = settings, parts, roles
        self.worker = f"{socket.gethostname()}-{os.getpid()}"
        self.manager: Manager | None = None
        self.actions: ActionHost | None = None
        self.mediums: dict[str, Medium] = {}
        self.broker: Broker | None = None
        self.people = people(settings)
        self._slack_made: Medium | None = None  # outlives a restart of its role: it remembers its threads

    async def run(self) -> None:
        """Until cancelled; then every role ends cleanly, within STOP_SECONDS. Raises BrokerUnusable."""
        broker = self.broker = await open_broker(self.settings, self.parts.operator)
        tasks = [asyncio.create_task(role, name=name) for name, role in self._roles(broker).items()]
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
        roles: dict[str, Role] = {}
        if "mediums" in self.roles:
            makes = self._makes(broker)
            roles |= {f"medium-{journal_key(account)}": partial(self._medium, broker, make) for account, make in makes}
            if self.settings.mediums.slack is not None:
                roles["medium-slack"] = partial(self._slack, broker)
        if "brain" in self.roles:
            roles["brain"] = partial(self._brain, broker)
        if "actors" in self.roles:
            roles[f"{role_of(self._machine)}{os.getpid()}"] = partial(self._actors, broker)
        if not is_shared(self.settings):  # the views are a file of one machine: elsewhere nothing is forgotten
            roles["keeper"] = Keeper(broker, views_file(self.settings.store.path)).run
        seconds = SHARED_LEASE_SECONDS if is_shared(self.settings) else LEASE_SECONDS
        return {key: supervise(broker, key, seconds, work) for key, work in roles.items()}

    @property
    def _machine(self) -> str:
        """Where sandboxes can be found again: this machine, and the folder in which they are."""
        folder = hashlib.sha256(str(self._sandboxes).encode()).hexdigest()[:8]
        return f"{journal_key(socket.gethostname())}-{folder}"

    @property
    def _sandboxes(self) -> Path:
        path = self.settings.store.path.resolve()
        return path.parent / f"{path.name}.actions"

    # --- mediums -----------------------------------------------------------------------------------------------------

    def _makes(self, broker: Broker) -> list[tuple[str, Callable[[Guard], Medium]]]:
        """Modules of mediums are imported only where they are used: each costs memory and time."""
        made: list[tuple[str, Callable[[Guard], Medium]]] = []
        if (web := self.settings.mediums.web) is not None:
            from mediums.local.adapter import LocalMedium

            def local(guard: Guard) -> Medium:
                return LocalMedium(
                    broker,
                    guard,
                    self.worker,
                    listen=(web.listen.host, web.listen.port),
                    token=self.parts.token,
                    person=owner(self.people).name,
                    assistant=self.settings.assistant.name,
                    banner=self.parts.banner,
                    console=Console(broker, self.people, self.settings.assistant.name),
                )

            made.append((LocalMedium.account, local))
        if (telegram := self.settings.mediums.telegram) is not None:
            from mediums.telegram.adapter import TelegramMedium

            medium = TelegramMedium(telegram.token.reveal(), str(telegram.api_base))
            made.append((medium.account, lambda _: medium))
        if (email := self.settings.mediums.email) is not None:
            from mediums.email.adapter import EmailMedium

            mailbox = EmailMedium(mail_account(email, self.settings.assistant.name))
            made.append((mailbox.account, lambda _: mailbox))
        return made

    async def _slack(self, broker: Broker, guard: Guard) -> None:
        """Slack's account has the name of its workspace, which Slack itself tells: that comes first."""
        from mediums.slack.adapter import introduced

        slack = self.settings.mediums.slack
        assert slack is not None
        made = self._slack_made or await introduced(
            slack.bot_token.reveal(), slack.app_token.reveal(), str(slack.api_base)
        )
        self._slack_made = made
        await self._medium(broker, lambda _: made, guard)

    async def _medium(self, broker: Broker, make: Callable[[Guard], Medium], guard: Guard) -> None:
        medium = make(guard)
        self.mediums[medium.account] = medium
        subject = f"evt.medium.{journal_key(medium.account)}"

        async def publish_fact(fact: MediumFact) -> None:
            await publish(broker, subject, fact, identity_of(fact))

        signals: asyncio.Queue[LiveSignal] = asyncio.Queue(200)
        unwatch = broker.watch(live.subject(medium.account), partial(_offer, signals))
        broker.signal(live.AGAIN, b"")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    medium.receive(publish_fact, partial(store_blob, broker)), name=f"receive {medium.account}"
                )
                group.create_task(Outbox(broker, medium, guard, self.worker).run(), name=f"send {medium.account}")
                group.create_task(_show(medium, signals), name=f"show {medium.account}")
                if medium.name == "local":
                    group.create_task(self._announce(medium), name="announce local")
        finally:
            unwatch()

    async def _announce(self, medium: Medium) -> None:
        from mediums.local.adapter import LocalMedium

        assert isinstance(medium, LocalMedium)
        self.parts.opened(await medium.listening())

    # --- brain and actors --------------------------------------------------------------------------------------------

    async def _brain(self, broker: Broker, guard: Guard) -> None:
        self.manager = Manager(
            broker,
            guard,
            self.worker,
            assistant=self.settings.assistant.name,
            contacts=Contacts(self.people, self.settings.access.unknown, str(self.settings.assistant.timezone)),
            model=self.parts.brain_model,
            tell=lambda account, signal: broker.signal(live.subject(account), live.payload(signal)),
            operator=self.parts.operator,
            now=utc_now,
            pace=self.parts.pace,
            notes=Notes(broker, self._whose, utc_now),
        )
        await self.manager.run()

    async def _actors(self, broker: Broker, guard: Guard) -> None:
        settings = self.settings
        notes = Notes(broker, self._whose, utc_now)
        primitives = [
            contact_cards.find(self._cards),
            transcripts.search(LaneHistory(broker, self._whose, settings.assistant.name, settings.store.path)),
            *task_primitives.reading(task_primitives.Tasks(broker, self._whose, self._sees)),
            *note_primitives.keeping(notes, self._in_private),
            *self.parts.primitives,
        ]
        stubs = actor_prompt.stubs(primitives)
        folder = self._sandboxes
        choice = await choose(settings.sandbox)
        for line in choice.careful:
            self.parts.operator(line)

        secrets = settings.sandbox.secrets
        policy = Policy(
            allow=settings.sandbox.allow,
            grants=tuple(
                Grant(name=one.name, host=one.host, header=one.header, value=one.value.reveal()) for one in secrets
            ),
        )

        def box(key: str, emit: "Callable[[Happening], None]") -> Box:
            return Sandbox(
                folder / key,
                emit,
                choice.isolation,
                stubs=stubs,
                policy=policy,
                holder=socket.gethostname(),
                holds=guard.holds,
                freeze_seconds=LEASE_SECONDS,
            )

        work = Workshop(
            model=self.parts.actor_model,
            box=box,
            primitives={primitive.method: primitive for primitive in primitives},
            limits=Limits(
                max_steps=settings.actors.max_steps,
                max_tokens=settings.actors.max_tokens,
                max_usd=settings.actors.max_usd,
                max_minutes=settings.actors.max_minutes,
                max_live=settings.actors.max_live,
                hibernate_after=settings.actors.hibernate_after,
                close_after=settings.actors.close_after,
                code_refused=choice.refused,
                code_tag=choice.tag,
            ),
            now=utc_now,
            operator=self.parts.operator,
            notes=partial(self._noted, notes),
            told=actor_prompt.granted((one.name, one.host) for one in secrets),
            waiting=lambda key, after: host.waiting(key, after),  # noqa: PLW0108 - the host is made below
            check=guard.check,
            keep=partial(store_blob, broker),
            blob=broker.get_blob,
            sandboxes=partial(sandboxes.running, folder),
        )
        sharing = Beside(cast(Shared, broker), guard.lease, self._machine) if is_shared(settings) else Alone(broker)
        host = self.actions = ActionHost(broker, guard, self.worker, work, sharing)
        await host.run()

    def _whose(self, person: Person) -> str:
        """The key of a person, the same for all of their addresses."""
        return key_of(self.people, person.address)

    def _sees(self, person: Person, here: str, there: str) -> bool:
        return sees(self._whose(person), here, there)

    def _in_private(self, caller: Caller) -> bool:
        return caller.conversation == f"p-{self._whose(caller.by)}"

    async def _noted(self, notes: Notes, person: Person, conversation: str) -> tuple[str, ...]:
        """For the brief of their work: not where others would hear them."""
        if conversation != f"p-{self._whose(person)}":
            return ()
        try:
            return tuple(note.text for note in await notes.of(person))
        except Unconfirmed:  # work does not wait for what it can do without
            return ()

    def _cards(self, caller: Caller) -> list[contact_cards.Card]:
        return [
            contact_cards.Card(name=person.name, addresses=tuple(str(address) for address in person.addresses))
            for person in self.people
        ]


def key_of(known: Sequence[Contact], address: Address) -> str:
    """Of the person with that address, the same for all of their addresses."""
    found = next((one.key for one in known if address in one.addresses), None)
    return found or f"guest-{journal_key(str(address))}"


def people(settings: Settings) -> list[Contact]:
    """The contacts; the owner also has the local page and terminal. Without an owner, whoever is local is it."""
    found = [
        Contact(
            key=contact_key(one.name),
            name=one.name,
            role=one.role,
            addresses=one.addresses,
            timezone=str(one.timezone or settings.assistant.timezone),
        )
        for one in settings.contacts
    ]
    if not any(person.role == "owner" for person in found):
        found.insert(0, Contact(key="owner", name="You", role="owner", timezone=str(settings.assistant.timezone)))
    first = found.index(owner(found))
    local = tuple(Address(medium=medium, user="owner") for medium in ("web", "terminal"))
    found[first] = msgspec.structs.replace(found[first], addresses=(*found[first].addresses, *local))
    return found


def mail_account(email: EmailSettings, name: str) -> "Account":
    """`name` is shown beside the address of what it sends."""
    from mediums.email.account import Account, Server

    imap_port, smtp_port = email.imap_port or IMAP_PORTS[email.imap_security], email.smtp_port
    return Account(
        address=str(email.address),
        imap=Server(host=email.imap_host, port=imap_port, security=email.imap_security),
        smtp=Server(
            host=email.smtp_host, port=smtp_port or SMTP_PORTS[email.smtp_security], security=email.smtp_security
        ),
        username=email.username or str(email.address),
        password=email.password,
        authserv_id=email.authserv_id,
        name=name,
        ca_file=email.ca_file,
    )


def _offer(signals: "asyncio.Queue[LiveSignal]", data: bytes) -> None:
    """A medium that does not keep up misses some: all of it may be lost."""
    if not signals.full():
        signals.put_nowait(decode(data, LiveSignal))


async def _show(medium: Medium, signals: "asyncio.Queue[LiveSignal]") -> None:
    while True:
        await medium.show(await signals.get())
