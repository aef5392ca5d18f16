"""The role of each medium account: both directions, under one lease."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from brain.contacts import owner
from frontdesk.console import Console
from frontdesk.parts import Parts
from frontdesk.people import Directory
from gateway import live
from gateway.addresses import journal_key
from gateway.broker.protocol import Broker
from gateway.events import PlaceMoved
from gateway.holding import CannotServe, Guard, Role
from gateway.journal import publish, store_blob
from gateway.live import LiveSignal
from gateway.outbox import CameBack, Outbox
from gateway.record import decode
from gateway.settings import IMAP_PORTS, SMTP_PORTS, EmailSettings, Settings, SlackSettings
from mediums.incoming import bounded
from mediums.medium import Medium, Told
from mediums.visible import as_seen

if TYPE_CHECKING:
    from mediums.email.account import Account
    from mediums.slack.adapter import Entry


class Accounts:
    """`opened` is told of each medium as it starts, by its account."""

    def __init__(
        self,
        broker: Broker,
        settings: Settings,
        parts: Parts,
        directory: Directory,
        worker: str,
        opened: dict[str, Medium],
    ) -> None:
        self._broker, self._settings, self._parts = broker, settings, parts
        self._people, self._worker, self._opened = directory.contacts, worker, opened
        self._slack_made: Medium | None = None  # outlives a restart of its role: it remembers its threads

    def roles(self) -> dict[str, Role]:
        """By the key of their lease."""
        roles: dict[str, Role] = {
            f"medium-{journal_key(account)}": partial(self._medium, make) for account, make in self._makes()
        }
        if self._settings.mediums.slack is not None:
            roles["medium-slack"] = self._slack
        return roles

    def _makes(self) -> list[tuple[str, Callable[[Guard], Medium]]]:
        """Modules of mediums are imported only where they are used: each costs memory and time."""
        made: list[tuple[str, Callable[[Guard], Medium]]] = []
        if (web := self._settings.mediums.web) is not None:
            from mediums.local.adapter import LocalMedium

            def local(guard: Guard) -> Medium:
                return LocalMedium(
                    self._broker,
                    guard,
                    self._worker,
                    listen=(web.listen.host, web.listen.port),
                    token=self._parts.token,
                    person=owner(self._people.settings).name,
                    assistant=self._settings.assistant.name,
                    banner=self._parts.banner,
                    console=Console(self._broker, self._people, self._settings.assistant.name),
                )

            made.append((LocalMedium.account, local))
        if (telegram := self._settings.mediums.telegram) is not None:
            from mediums.telegram.adapter import TelegramMedium

            try:
                medium = TelegramMedium(telegram.token.reveal(), str(telegram.api_base))
            except ValueError as error:  # of no token's form: nothing to try again
                raise CannotServe(str(error)) from error
            made.append((medium.account, lambda _: medium))
        if (email := self._settings.mediums.email) is not None:
            from mediums.email.adapter import EmailMedium

            mailbox = EmailMedium(mail_account(email, self._settings.assistant.name))
            made.append((mailbox.account, lambda _: mailbox))
        return made

    async def _slack(self, guard: Guard) -> None:
        """Slack's account has the name of its workspace, which Slack itself tells: that comes first."""
        from mediums.slack.introducing import introduced

        slack = self._settings.mediums.slack
        assert slack is not None
        made = self._slack_made or await introduced(slack.bot_token.reveal(), slack_entry(slack), str(slack.api_base))
        self._slack_made = made
        await self._medium(lambda _: made, guard)

    async def _medium(self, make: Callable[[Guard], Medium], guard: Guard) -> None:
        medium = make(guard)
        self._opened[medium.account] = medium
        broker = self._broker
        subject = f"evt.medium.{journal_key(medium.account)}"

        outbox = Outbox(broker, medium, guard, self._worker)

        async def publish_fact(fact: Told) -> None:
            if isinstance(fact, CameBack):
                await outbox.take_back(fact)
            else:
                seen = fact if isinstance(fact, PlaceMoved) else as_seen(fact)
                await publish(broker, subject, bounded(seen), seen.identity)

        signals: asyncio.Queue[LiveSignal] = asyncio.Queue(200)
        unwatch = broker.watch(live.subject(medium.account), partial(_offer, signals))
        broker.signal(live.AGAIN, b"")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    medium.receive(publish_fact, partial(store_blob, broker)), name=f"receive {medium.account}"
                )
                group.create_task(outbox.run(), name=f"send {medium.account}")
                group.create_task(_show(medium, signals), name=f"show {medium.account}")
                if medium.name == "local":
                    group.create_task(self._announce(medium), name="announce local")
        finally:
            unwatch()

    async def _announce(self, medium: Medium) -> None:
        from mediums.local.adapter import LocalMedium

        assert isinstance(medium, LocalMedium)
        self._parts.opened(await medium.listening())


def slack_entry(slack: SlackSettings) -> "Entry":
    """The settings hold one of the two."""
    from mediums.slack.door import Door

    if slack.signing_secret is not None and slack.listen is not None:
        return Door(host=slack.listen.host, port=slack.listen.port, signing_secret=slack.signing_secret.reveal())
    assert slack.app_token is not None
    return slack.app_token.reveal()


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
