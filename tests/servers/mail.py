"""Mail on real servers (Dovecot, Exim), with the people who write it and the mailboxes where they read.

    async with Mail() as mail:
        ana = mail.person("ana@example.org")
        sent = ana.sends("When is the office closed?", subject="Holidays")   # in the assistant's INBOX when it returns
        ...                                                                  # EmailMedium(mail.account())
        answer = await mail.sees("ana@example.org", "On Friday")
        assert answer["in-reply-to"] == sent.id
        ana.sends("And Monday?", thread=answer)

What a person sends is delivered as the receiving server would do it: below its own Authentication-Results and Received
lines, which say that DMARC passed unless `verified=False`. The processes are started once and shared by all tests of a
run; each test begins with empty mailboxes. Between the assistant and the servers are lines that can be cut:

    mail.smtp.script("RCPT", Refuse(451, "later"));  mail.smtp.script(END, LOST_ANSWER);  mail.imap.silent()
"""

import asyncio
import itertools
import re
import shutil
import smtplib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default
from pathlib import Path
from typing import Any, Self

import pytest

from gateway.written import Secret
from mediums.email import Account, Server
from tests.patience import PATIENCE_SECONDS
from tests.servers.mail_lines import DROPPED, END, LOST_ANSWER, Line, Refuse, SmtpLine
from tests.servers.mail_processes import HOST, PASSWORD, MailProcesses, missing

AUTHSERV_ID = f"mx.{HOST}"
LOOK_AGAIN_SECONDS = 0.005

__all__ = ["DROPPED", "END", "HOST", "LOST_ANSWER", "Mail", "Person", "Refuse", "Seen", "Sent", "end_processes"]

_processes: MailProcesses | None = None
_numbers = itertools.count(1)


def processes() -> MailProcesses:
    """Those of this run. Skips the test where they cannot run."""
    global _processes  # noqa: PLW0603 - one for the run, whoever asks first
    if why := missing():
        pytest.skip(why)
    if _processes is None:
        _processes = MailProcesses()
    return _processes


def end_processes() -> None:
    if _processes is not None:
        _processes.end()


@dataclass(frozen=True)
class Sent:
    """What a person has sent."""

    id: str
    subject: str
    references: tuple[str, ...] = ()


class Seen:
    """A mail in somebody's mailbox. `seen["subject"]` is a field as it is read; absent ones are empty."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.message: Message = message_from_bytes(raw, policy=default)

    def __getitem__(self, name: str) -> str:
        return str(self.message.get(name, ""))

    @property
    def id(self) -> str:
        return self["message-id"]

    @property
    def subject(self) -> str:
        return self["subject"]

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(self["references"].split())

    @property
    def text(self) -> str:
        """The plain part, as it is read."""
        return self._part("plain")

    @property
    def html(self) -> str:
        return self._part("html")

    def _part(self, kind: str) -> str:
        parts = [part for part in self.message.walk() if part.get_content_type() == f"text/{kind}"]
        return parts[0].get_content().replace("\r\n", "\n").strip() if parts else ""


class Mail:
    def __init__(self) -> None:
        self.processes = processes()
        self.address = f"desk{next(_numbers)}@{HOST}"  # a session on another's may not have ended yet
        self.imap, self.smtp = Line(self.processes.imap), SmtpLine(self.processes.smtp)

    async def __aenter__(self) -> Self:
        for mailbox in (self.processes.folder / "mail").iterdir():
            shutil.rmtree(mailbox)
        await self.comes_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.goes_down()

    def account(self, **changes: Any) -> Account:
        """The assistant's, over the lines."""
        given: dict[str, Any] = {
            "address": self.address,
            "imap": Server(host="127.0.0.1", port=self.imap.port, security="none"),
            "smtp": Server(host="127.0.0.1", port=self.smtp.port, security="none"),
            "username": self.address,
            "password": Secret(PASSWORD),
            "authserv_id": AUTHSERV_ID,
            "name": "Frontdesk",
        }
        return Account(**given | changes)

    def person(self, address: str, name: str = "") -> "Person":
        return Person(self, address, name)

    async def goes_down(self) -> None:
        """Both servers; what they have is kept."""
        await self.imap.down()
        await self.smtp.down()

    async def comes_back(self) -> None:
        await self.imap.up()
        await self.smtp.up()

    # --- the mailboxes -----------------------------------------------------------------------------------------------

    def deliver(self, raw: bytes, sender: str = "", to: str | None = None) -> None:
        """Any bytes at all, as they are; there when it returns. `sender` is the envelope's."""
        with smtplib.LMTP("127.0.0.1", self.processes.lmtp, local_hostname=AUTHSERV_ID) as lmtp:
            lmtp.sendmail(sender, [to or self.address], raw)

    def seen_by(self, address: str) -> list[Seen]:
        """All in that mailbox, in order, once all that was taken is delivered."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.processes.queue():
            assert time.monotonic() < deadline, self.processes.log()
            time.sleep(LOOK_AGAIN_SECONDS)
        return [Seen(path.read_bytes()) for path in self._files(address)]

    async def sees(
        self, address: str, wanted: str | Callable[[Seen], bool], within_seconds: float = PATIENCE_SECONDS
    ) -> Seen:
        """The first mail there whose text holds this, or that fulfils it; waits for it."""
        fulfils = wanted if callable(wanted) else lambda seen: wanted in seen.text
        deadline = time.monotonic() + within_seconds
        while True:
            for path in self._files(address):
                seen = Seen(path.read_bytes())
                if fulfils(seen):
                    return seen
            if time.monotonic() > deadline:
                texts = [Seen(path.read_bytes()).text for path in self._files(address)]
                raise AssertionError(f"not within {within_seconds} s; in the mailbox: {texts}\n{self.processes.log()}")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def untaken(self) -> int:
        """How many mails in the assistant's INBOX bear no mark."""
        return sum(not re.search(r":2,[A-Z]*[a-z]", path.name) for path in self._files(self.address))

    async def taken(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + within_seconds
        while self.untaken():
            assert time.monotonic() < deadline, [path.name for path in self._files(self.address)]
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def number_anew(self) -> None:
        """The INBOX gets another UIDVALIDITY, and its mails lose their marks: as after a restore from a backup."""
        maildir = self.processes.maildir(self.address)
        for path in [*maildir.glob("dovecot*"), *maildir.glob("maildirfolder")]:
            path.unlink()
        for path in (maildir / "cur").iterdir():
            path.rename(maildir / "new" / path.name.partition(":")[0])

    def _files(self, address: str) -> list[Path]:
        maildir = self.processes.maildir(address)
        found = [path for name in ("cur", "new") if (maildir / name).exists() for path in (maildir / name).iterdir()]
        return sorted(found, key=_arrival)


def _arrival(path: Path) -> tuple[int, int]:
    """`1795978916.M533931P31632.vm,…`: seconds and microseconds."""
    found = re.match(r"(\d+)\.M(\d+)P", path.name)
    assert found
    return int(found[1]), int(found[2])


class Person:
    """Somebody with a mailbox."""

    def __init__(self, mail: Mail, address: str, name: str = "") -> None:
        self.mail, self.address, self.name = mail, address, name

    def sends(
        self,
        text: str,
        subject: str = "",
        thread: Sent | Seen | None = None,
        *,
        to: str | None = None,
        cc: str | None = None,
        html: str | None = None,
        verified: bool = True,
        headers: Mapping[str, str] | None = None,
        files: Iterable[tuple[str, str, bytes]] = (),
    ) -> Sent:
        """In the assistant's mailbox when it returns. `thread` is the mail that it answers; a file is its name, media
        type and bytes."""
        sent = self._sent(subject, thread)
        message = EmailMessage()
        message["From"] = f"{self.name} <{self.address}>" if self.name else self.address
        message["To"] = self.mail.address if to is None else to
        fields = {"Cc": cc, "Subject": sent.subject, "Message-ID": sent.id, **(headers or {})}
        if thread is not None:
            fields |= {"In-Reply-To": thread.id, "References": " ".join(sent.references)}
        for name, value in fields.items():
            if value:
                message[name] = value
        message["Date"] = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime())
        message.set_content(text)
        if html is not None:
            message.add_alternative(html, subtype="html")
        for name, kind, data in files:
            main, _, sub = kind.partition("/")
            message.add_attachment(data, maintype=main, subtype=sub, filename=name)
        self.mail.deliver(self.received(message.as_bytes(), verified), self.address)
        return sent

    def received(self, raw: bytes, verified: bool = True) -> bytes:
        """As the receiving server stores it."""
        domain = self.address.rpartition("@")[2]
        passed = f"Authentication-Results: {AUTHSERV_ID}; spf=pass smtp.mailfrom={self.address};\r\n"
        passed += f"\tdmarc=pass (p=none) header.from={domain}\r\n"
        line = f"Received: from out.{domain} by {AUTHSERV_ID} with ESMTPS id x{next(_numbers)};\r\n\tnow\r\n"
        return (passed if verified else "").encode() + line.encode() + raw

    def _sent(self, subject: str, thread: Sent | Seen | None) -> Sent:
        own = f"<m{next(_numbers)}.{time.time_ns()}@{self.address.rpartition('@')[2]}>"
        if thread is None:
            return Sent(own, subject)
        again = thread.subject if re.match("re:", thread.subject, re.IGNORECASE) else f"Re: {thread.subject}"
        return Sent(own, subject or again if thread.subject else subject, (*thread.references, thread.id))
