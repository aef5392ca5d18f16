"""The email medium: the watch on the mailbox, the sends, and an honest word about both.

Owns the connection's life and the order of "durable, then marked": a mail is published, and only then marked as taken,
with a keyword of its own (or \\Seen, where the server keeps none). So what was not marked comes again after any crash,
whatever has been read meanwhile, and nothing needs to be remembered here. What mails mean is in `wire` and `letter`.
"""

import asyncio
import importlib
import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gateway.addresses import Route
from gateway.cards import Card
from gateway.events import MessageReceived
from gateway.files import Keep
from gateway.live import LiveSignal
from gateway.record import Record
from mediums.email import letter, wire
from mediums.email.account import MEDIUM, Account
from mediums.email.body import Enclosed
from mediums.email.budget import Budget
from mediums.email.failures import MailboxFailed
from mediums.email.robots import Kind
from mediums.incoming import Found, taken
from mediums.medium import Carried, Health, Publish, Rejected, SurelyNotSent

if TYPE_CHECKING:
    from mediums.email.imap import Mailbox

log = logging.getLogger(__name__)

OFF_THE_LOOP_BYTES = 200_000  # reading a larger mail would hold up everybody's conversation
LONG_CHARACTERS = 2_000  # so would writing one
HELD_KEPT = 10_000


class Pace(Record, frozen=True, kw_only=True):
    """How long things may take, in seconds, and how much is taken. `idle_seconds` bounds how long a dead connection
    goes unnoticed; servers allow 29 minutes, and routers forget sooner."""

    idle_seconds: float = 300.0
    poll_seconds: float = 60.0
    call_seconds: float = 20.0
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 60.0
    publishing_seconds: float = 10.0
    largest_bytes: int = 20_000_000
    old_mails: int = 20
    of_a_thread: int = 30
    of_a_person: int = 120
    stumbles: int = 3
    unreadable_seconds: float = 600.0


class EmailMedium:
    """One mailbox. Sends are not repeatable: nobody shows two mails with one Message-ID once."""

    name = MEDIUM
    repeatable = False
    may_come_back = True
    files_with_text = True

    def __init__(
        self, account: Account, pace: Pace | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.account = account.key
        self._account, self._pace, self._now = account, pace or Pace(), now
        self._trouble = "not connected to the mailbox yet"
        self._send_trouble = ""
        self._answered_at = time.monotonic()
        self._publishing_since: float | None = None
        self._budget = Budget(self._pace.of_a_thread, self._pace.of_a_person)
        self._held: dict[tuple[int, int], float] = {}
        self._stumbles = ((0, 0), 0)  # the mail over which the connection ended last, and how often

    # --- receiving ---------------------------------------------------------------------------------------------------

    async def receive(self, publish: Publish, keep: Keep) -> None:
        """For ever. Mails that a failed `publish` left unmarked come again with the next call."""
        try:
            await self._watch(publish, keep)
        finally:
            self._trouble = self._trouble or "no longer receiving"
            self._publishing_since = None

    async def _watch(self, publish: Publish, keep: Keep) -> None:
        failed = 0
        while True:
            try:
                mailbox = await self._opened()
            except MailboxFailed as error:
                failed += 1
                await self._rest(error, failed)
                continue
            try:
                await self._pass_over_what_was_before_us(mailbox)
                while True:
                    await self._take_all(mailbox, publish, keep)
                    self._well()
                    failed = 0
                    await mailbox.news(self._pace.idle_seconds, self._pace.poll_seconds)
            except MailboxFailed as error:
                failed += 1
                await self._rest(error, failed)
            finally:
                await mailbox.close()

    async def _opened(self) -> "Mailbox":
        module = await asyncio.to_thread(importlib.import_module, "mediums.email.imap")
        opened: Mailbox = await module.Mailbox.open(self._account, self._pace.call_seconds, self._answered)
        return opened

    async def _pass_over_what_was_before_us(self, mailbox: "Mailbox") -> None:
        """In a mailbox that was never watched, years of mail may lie: all but a day's is left alone. A few may as well
        have come while we were down and someone had cleared the mailbox of all that is marked."""
        if not await mailbox.before_us():
            return
        recent = {*await mailbox.untaken(self._now() - timedelta(days=1))}
        old = [uid for uid in await mailbox.untaken() if uid not in recent]
        if len(old) > self._pace.old_mails:
            log.warning("%s: first start on this mailbox: %d older mails are left alone", self.account, len(old))
            await mailbox.mark(old)

    async def _take_all(self, mailbox: "Mailbox", publish: Publish, keep: Keep) -> None:
        for uid in await mailbox.untaken():
            if self._held.get((mailbox.uid_validity, uid), 0.0) > time.monotonic():
                continue
            try:
                await self._take(mailbox, uid, publish, keep)
            except MailboxFailed:
                self._stumbled(mailbox, uid)
                raise

    async def _take(self, mailbox: "Mailbox", uid: int, publish: Publish, keep: Keep) -> None:
        """Published if a person wrote it, then marked; one that is over the budget stays as it is."""
        heard = await self._heard(mailbox, uid)
        if heard is not None and heard.fact is not None:
            wait_seconds = self._budget.wait_seconds(heard.thread, heard.fact.author.address.user)
            if wait_seconds:
                why = "too many came within an hour, as between two robots"
                self._hold(mailbox, uid, wait_seconds, heard.about, why)
                return
            self._publishing_since = time.monotonic()
            await publish(await self._with_files(heard.fact, heard.files, keep))
            self._publishing_since = None
        elif heard is not None:
            level = logging.WARNING if heard.kind in (Kind.BOUNCE, Kind.PERSON) else logging.INFO
            log.log(level, "%s: %s; it is left alone", self.account, heard.about)
            if heard.returned is not None:
                await publish(heard.returned)
        await mailbox.mark([uid])

    async def _heard(self, mailbox: "Mailbox", uid: int) -> wire.Heard | None:
        envelope = await mailbox.envelope(uid)
        if envelope is None:
            return None
        if envelope.size > self._pace.largest_bytes:
            header = await mailbox.header(uid) or b""
            note = f"a mail of {envelope.size / 1e6:.0f} MB: too large, it was not read; say so"
            return wire.noticed(header, self._account, envelope.at, note)
        raw = await mailbox.raw(uid, envelope.size)
        if raw is None:
            return None
        try:
            if len(raw) > OFF_THE_LOOP_BYTES or b"text/html" in raw:
                return await asyncio.to_thread(wire.heard, raw, self._account, envelope.at)
            return wire.heard(raw, self._account, envelope.at)
        except Exception:  # anybody can send anything, and no mail may ever end the watch on the mailbox
            log.exception("%s: mail %d cannot be read", self.account, uid)
            return wire.noticed(raw, self._account, envelope.at, "this mail cannot be read: it is broken")

    async def _with_files(self, fact: MessageReceived, enclosed: tuple[Enclosed, ...], keep: Keep) -> MessageReceived:
        async def data(one: Found) -> bytes:
            return enclosed[int(one.fetch)].data

        found = [
            Found(name=one.name, kind=one.kind, fetch=str(place), size=len(one.data))
            for place, one in enumerate(enclosed)
        ]
        return msgspec.structs.replace(fact, files=await taken(found, data, keep, self.account))

    def _stumbled(self, mailbox: "Mailbox", uid: int) -> None:
        """The connection ended over this mail. One that the server cannot give (it says goodbye, each time) must not
        keep back those behind it."""
        place = (mailbox.uid_validity, uid)
        self._stumbles = (place, self._stumbles[1] + 1 if self._stumbles[0] == place else 1)
        if self._stumbles[1] >= self._pace.stumbles:
            self._hold(mailbox, uid, self._pace.unreadable_seconds, f"mail {uid}", "the server does not hand it over")

    def _hold(self, mailbox: "Mailbox", uid: int, wait_seconds: float, about: str, why: str) -> None:
        minutes = wait_seconds / 60
        log.warning("%s: %s waits %.0f min in the mailbox: %s", self.account, about, minutes, why)
        self._held[mailbox.uid_validity, uid] = time.monotonic() + wait_seconds
        if len(self._held) > HELD_KEPT:
            del self._held[next(iter(self._held))]

    async def _rest(self, error: MailboxFailed, failed: int) -> None:
        """Says what is wrong, once, and waits: longer each time, and never in step with others."""
        text = str(error)
        if text != self._trouble:
            log.warning("%s: %s", self.account, text)
        self._trouble = text
        longest = self._pace.longest_pause_seconds
        grown = longest if error.patience else min(self._pace.first_pause_seconds * 2 ** min(failed - 1, 16), longest)
        await asyncio.sleep(grown * random.uniform(0.75, 1.0))  # noqa: S311 - no secret

    def _well(self) -> None:
        if self._trouble:
            log.info("%s: receiving", self.account)
        self._trouble = ""

    def _answered(self) -> None:
        self._answered_at = time.monotonic()

    # --- sending -----------------------------------------------------------------------------------------------------

    def split(self, text: str) -> tuple[str, ...]:
        """A mail has room for all of it."""
        return (text,) if text.strip() else ()

    async def send(self, route: Route, text: str, key: str) -> None:
        """One mail, to one person. The same `key` makes the same Message-ID."""
        await self.send_files(route, text, (), key)

    async def react(self, route: Route, emoji: str, key: str) -> None:
        raise Rejected("a mail takes no emoji")

    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None:
        """As `send`, with attachments."""
        writing = partial(letter.letter, self._account, route, text, key, self._now(), files)
        long = len(text) > LONG_CHARACTERS
        written = await asyncio.to_thread(writing) if files or long else writing()
        smtp = await asyncio.to_thread(importlib.import_module, "mediums.email.smtp")
        try:
            await smtp.hand_over(self._account, written, self._pace.call_seconds)
        except smtp.ServerTrouble as error:
            if str(error) != self._send_trouble:
                log.warning("%s: %s", self.account, error)
            self._send_trouble = str(error)
            raise
        except (SurelyNotSent, Rejected):  # of this mail alone
            self._send_trouble = ""
            raise
        self._send_trouble = ""

    async def show_card(self, route: Route, card: Card, message: str | None) -> str:
        raise Rejected("a mail cannot be edited, and one for each step would be spam")

    async def show(self, signal: LiveSignal) -> None:
        """Nothing: whoever writes a mail does not watch for signs, and a mail for each would be one too many."""

    # --- health ------------------------------------------------------------------------------------------------------

    def health(self) -> Health:
        now = time.monotonic()
        since, silent = self._publishing_since, now - self._answered_at
        if since is not None and now - since > self._pace.publishing_seconds:
            return Health(well=False, text=f"a mail waits since {now - since:.0f} s to be stored: look at the broker")
        if self._trouble or self._send_trouble:
            return Health(well=False, text=self._trouble or self._send_trouble)
        if silent > self._pace.idle_seconds + 2 * self._pace.call_seconds:
            return Health(well=False, text=f"the mailbox has not answered for {silent:.0f} s")
        return Health(well=True)
