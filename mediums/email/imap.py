"""One connection to the mailbox: what is in it, what is new, and the marks on what was taken.

Every call has a deadline of its own and ends when the connection does; a connection on which one has failed is of no
more use. https://www.rfc-editor.org/rfc/rfc3501 and https://www.rfc-editor.org/rfc/rfc2177
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from gateway.record import Record
from mediums.email import failures
from mediums.email.account import Account
from mediums.email.failures import MailboxFailed
from mediums.email.imap_client import AioImapException, Client, aioimaplib

T = TypeVar("T")

KEYWORD = "$FrontdeskTaken"
STORED_AT_ONCE = 200  # UIDs in one command
BYTES_A_SECOND = 50_000  # the slowest line on which a large mail still comes
GOODBYE_SECONDS = 1.0
LOGIN_CALLS = 3  # as long as so many others: Gmail takes half a minute where it does not know the machine
KEEP_ALIVE_SECONDS = 60

_UID_VALIDITY = re.compile(rb"\[UIDVALIDITY (\d+)\]", re.IGNORECASE)
_PERMANENT = re.compile(rb"\[PERMANENTFLAGS \(([^)]*)\)\]", re.IGNORECASE)
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)", re.IGNORECASE)
_ARRIVED = re.compile(rb'INTERNALDATE "([^"]+)"', re.IGNORECASE)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_BROKEN = (AioImapException, OSError, ValueError, IndexError, UnicodeError, asyncio.TimeoutError)


class Envelope(Record, frozen=True, kw_only=True):
    """`at` is when the mailbox got it."""

    size: int
    at: datetime


class Mailbox:
    """The INBOX. All calls raise MailboxFailed."""

    def __init__(self, client: Client, account: Account, call_seconds: float, answered: Callable[[], None]) -> None:
        self._client, self._account, self._call_seconds, self._answered = client, account, call_seconds, answered
        self._mark = KEYWORD
        self.uid_validity = 0

    @classmethod
    async def open(cls, account: Account, call_seconds: float, answered: Callable[[], None]) -> "Mailbox":
        """Connects, logs in, selects. `answered` is called at each word from the server that ends a call."""
        context = _context(account)
        server = account.imap
        tls = context if server.security == "tls" else None
        client = Client(server.host, server.port, None, LOGIN_CALLS * call_seconds, None, tls)  # `_call` is stricter
        mailbox = cls(client, account, call_seconds, answered)
        try:
            await mailbox._enter(context)
        except BaseException:
            mailbox._abort()
            raise
        return mailbox

    # --- mails -------------------------------------------------------------------------------------------------------

    async def untaken(self, since: datetime | None = None) -> list[int]:
        """UIDs of all that is not marked, in order; from that day on (a day of the server's own calendar)."""
        self._client.protocol.news.clear()  # what is news now, this search finds
        criteria = ["UNSEEN"] if self._mark == "\\Seen" else ["UNKEYWORD", self._mark]
        return await self._search(*criteria, "UNDELETED", *(("SINCE", _day(since)) if since else ()))

    async def before_us(self) -> bool:
        """Whether nobody has ever marked a mail here."""
        return not await self._search(*(["SEEN"] if self._mark == "\\Seen" else ["KEYWORD", self._mark]))

    async def envelope(self, uid: int) -> Envelope | None:
        """None when it is there no more."""
        lines = await self._fetch(uid, "(UID RFC822.SIZE INTERNALDATE)", self._call_seconds)
        text = b" ".join(bytes(line) for line in lines)
        size, arrived = _SIZE.search(text), _ARRIVED.search(text)
        return Envelope(size=int(size[1]), at=_moment(arrived[1] if arrived else b"")) if size else None

    async def raw(self, uid: int, size: int) -> bytes | None:
        """The whole mail as it came; \\Seen is not set. None when it is there no more."""
        return await self._literal(uid, "(UID BODY.PEEK[])", self._call_seconds + size / BYTES_A_SECOND)

    async def header(self, uid: int) -> bytes | None:
        return await self._literal(uid, "(UID BODY.PEEK[HEADER])", self._call_seconds)

    async def mark(self, uids: Sequence[int]) -> None:
        """Taken: it never comes again."""
        for at in range(0, len(uids), STORED_AT_ONCE):
            some = ",".join(str(uid) for uid in uids[at : at + STORED_AT_ONCE])
            storing = self._client.uid("store", some, "+FLAGS.SILENT", f"({self._mark})")
            _ok(await self._call(storing, self._call_seconds), "marking a mail")

    async def newest_headers(self, count: int) -> list[bytes]:
        uids = (await self._search("ALL"))[-count:]
        return [header for uid in uids if (header := await self.header(uid))]

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def news(self, within_seconds: float, poll_seconds: float) -> None:
        """Returns when a mail may have come, or after that time: by IDLE, or without it after `poll_seconds`."""
        protocol = self._client.protocol
        if "IDLE" not in {one.upper() for one in protocol.capabilities}:
            await _set_within(protocol.news, min(within_seconds, poll_seconds))
            return
        if protocol.news.is_set():
            return
        idle = asyncio.ensure_future(protocol.idle())
        try:
            await self._call(protocol.wait_for_idle_response(), self._call_seconds, unless=idle)
            await _set_within(protocol.news, within_seconds)
            protocol.idle_done()
            _ok(await self._call(idle, self._call_seconds), "ending IDLE")
        finally:
            idle.cancel()
            await asyncio.gather(idle, return_exceptions=True)

    async def close(self) -> None:
        """Says goodbye, if that is quick."""
        try:
            if not self._client.protocol.lost.is_set() and not self._client.has_pending_idle():
                await self._call(self._client.logout(), GOODBYE_SECONDS)
        except MailboxFailed:
            pass
        finally:
            self._abort()

    # --- the connection ----------------------------------------------------------------------------------------------

    async def _enter(self, context: ssl.SSLContext | None) -> None:
        account, client, server = self._account, self._client, self._account.imap
        try:
            await self._call(client.wait_hello_from_server(), self._call_seconds, connecting=True)
            if server.security == "starttls" and context is not None:
                await self._call(client.start_tls(server.host, context), self._call_seconds, connecting=True)
        except ssl.SSLCertVerificationError as error:
            raise MailboxFailed(failures.certificate("IMAP", server, error.verify_message), patience=True) from None
        except _BROKEN as error:
            raise MailboxFailed(failures.unreachable("IMAP", server, _why(error))) from None
        _keep_alive(client.protocol.transport)
        login = await self._call(
            client.login(aioimaplib.quoted(account.username), account.password.reveal()),
            LOGIN_CALLS * self._call_seconds,
        )
        if login.result != "OK":
            raise MailboxFailed(failures.login_refused("IMAP", server, _words(login)), patience=True)
        if "ID" in {one.upper() for one in client.protocol.capabilities}:  # RFC 2971; 163.com opens nothing without it
            await self._call(client.id(name="Frontdesk"), self._call_seconds)
        selected = _ok(await self._call(client.select("INBOX"), self._call_seconds), "opening the INBOX")
        text = b"\n".join(bytes(line) for line in selected.lines)
        validity, permanent = _UID_VALIDITY.search(text), _PERMANENT.search(text)
        self.uid_validity = int(validity[1]) if validity else 0
        flags = permanent[1].split() if permanent else [b"\\*"]
        if b"\\*" not in flags and KEYWORD.encode() not in flags:
            self._mark = "\\Seen"
        if permanent and not flags:
            raise MailboxFailed("the INBOX can only be read: its mails cannot be marked as taken", patience=True)

    async def _search(self, *criteria: str) -> list[int]:
        found = _ok(await self._call(self._client.uid_search(*criteria, charset=None), self._call_seconds), "searching")
        words = b" ".join(bytes(line) for line in found.lines[:-1]).split()
        return sorted(int(word) for word in words if word.isdigit())

    async def _literal(self, uid: int, what: str, seconds: float) -> bytes | None:
        """None when it is there no more. One that is there without its text may be had later."""
        lines = await self._fetch(uid, what, seconds)
        text = next((bytes(line) for line in lines if isinstance(line, bytearray)), None)
        if text is None and any(re.search(rb"\bUID %d\b" % uid, line) for line in lines):
            raise MailboxFailed(f"the IMAP server {self._account.imap} gave mail {uid} without its text")
        return text

    async def _fetch(self, uid: int, what: str, seconds: float) -> list[bytes | bytearray]:
        fetched = _ok(await self._call(self._client.uid("fetch", str(uid), what), seconds), "fetching a mail")
        lines: list[bytes | bytearray] = fetched.lines[:-1]
        return lines

    async def _call(
        self,
        call: "Coroutine[Any, Any, T] | asyncio.Future[T]",
        seconds: float,
        *,
        unless: "asyncio.Future[Any] | None" = None,
        connecting: bool = False,
    ) -> T:
        """The library's own deadlines are not enough: a call that meets the end of the connection waits for ever."""
        protocol = self._client.protocol
        asked = asyncio.ensure_future(call)
        lost = asyncio.ensure_future(protocol.lost.wait())
        try:
            also = {unless} if unless is not None else set()
            await asyncio.wait({asked, lost, *also}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return self._result(asked, connecting)
            why = f"no answer within {seconds:g} s"
            if unless is not None and unless.done():
                why = "it refused to wait for news (IDLE)"
            server = self._account.imap
            if connecting and not lost.done():
                raise MailboxFailed(failures.unreachable("IMAP", server, why))
            raise MailboxFailed(f"the IMAP server {server}: {protocol.why_lost if lost.done() else why}")
        finally:
            for task in (asked, lost):
                task.cancel()
            await asyncio.wait({asked, lost})

    def _result(self, asked: "asyncio.Future[T]", connecting: bool) -> T:
        try:
            result = asked.result()
        except _BROKEN as error:
            if connecting:
                raise
            raise MailboxFailed(f"the IMAP server {self._account.imap}: {_why(error)}") from None
        self._answered()
        return result

    def _abort(self) -> None:
        connecting, transport = self._client.connecting, self._client.protocol.transport
        connecting.cancel()
        if connecting.done() and not connecting.cancelled():
            connecting.exception()  # looked at: else it is reported as never retrieved
        if transport is not None:
            transport.abort()


def _context(account: Account) -> ssl.SSLContext | None:
    try:
        return None if account.imap.security == "none" else account.tls()
    except OSError as error:
        raise MailboxFailed(f"mediums.email.ca_file cannot be used ({_why(error)})", patience=True) from None


def _ok(response: Any, doing: str) -> Any:
    if response.result != "OK":
        raise MailboxFailed(f"the IMAP server refused {doing}: {_words(response)}")
    return response


def _words(response: Any) -> str:
    return failures.one_line(bytes(response.lines[-1]).decode("utf-8", "replace")) if response.lines else "no reason"


def _why(error: BaseException) -> str:
    return failures.one_line(str(error)) or type(error).__name__


def _day(moment: datetime) -> str:
    return f"{moment.day:02d}-{_MONTHS[moment.month - 1]}-{moment.year}"


def _moment(internal_date: bytes) -> datetime:
    """` 6-Jan-2026 10:00:00 +0100`; without one that can be read, now."""
    try:
        at = parsedate_to_datetime(internal_date.decode("ascii", "replace").strip().replace("-", " ", 2))
        return at.astimezone(UTC)
    except (ValueError, TypeError, IndexError):
        return datetime.now(UTC)


def _keep_alive(transport: Any) -> None:
    """The system notices a dead peer that never said so, as far as the network lets it."""
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


__all__ = ["KEYWORD", "Envelope", "Mailbox", "MailboxFailed"]
