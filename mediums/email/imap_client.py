"""aioimaplib with what it lacks, below its surface (so its version is exact). Importing it costs 0.06 s.

Added are STARTTLS; the end of a connection, and a goodbye, wake whoever waits; and the news of a mail that comes with
another command's answer is kept. Without the last a mail that arrives between the search and the IDLE is not seen until
the next round, as the server has already told of it. https://www.rfc-editor.org/rfc/rfc3501#section-7
"""

import asyncio
import logging
import re
import ssl
from typing import Any

from aioimaplib import IMAP4, AioImapException, aioimaplib  # type: ignore[import-untyped]

from mediums.email import failures

_UNTAGGED_NEWS = re.compile(rb"^\* \d+ (EXISTS|RECENT)\b", re.IGNORECASE)

if logging.getLogger("aioimaplib").level == logging.NOTSET:
    logging.getLogger("aioimaplib").setLevel(logging.WARNING)  # at DEBUG it logs all that is said


class Protocol(aioimaplib.IMAP4ClientProtocol):  # type: ignore[misc]
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.news, self.lost = asyncio.Event(), asyncio.Event()
        self.why_lost = "the server ended the connection"
        super().__init__(loop, self._connection_lost)

    def _connection_lost(self, error: Exception | None) -> None:
        self.why_lost = str(error) if error else self.why_lost
        self.lost.set()
        self.news.set()

    def _untagged_response(self, line: bytes) -> Any:
        if _UNTAGGED_NEWS.match(line):
            self.news.set()
        if line.upper().startswith(b"* BYE"):
            self._goodbye(line)
        return super()._untagged_response(line)

    def _handle_line(self, line: bytes, current_cmd: Any) -> Any:
        if self.state == aioimaplib.CONNECTED and line and not line.upper().startswith((b"* OK", b"* PREAUTH")):
            self._goodbye(line)  # instead of a greeting
            return None
        return super()._handle_line(line, current_cmd)

    def _goodbye(self, line: bytes) -> None:
        """Some servers say so and leave the connection open."""
        self.why_lost = f"the server says: {failures.one_line(line[2:].decode('utf-8', 'replace'))}"
        self.lost.set()
        self.news.set()


class Client(IMAP4):  # type: ignore[misc]
    """Takes a TLS context, or None."""

    def create_client(
        self, host: str, port: int, loop: Any, conn_lost_cb: Any = None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        running = asyncio.get_running_loop()
        self.protocol = Protocol(running)
        self.connecting = self._client_task = running.create_task(
            running.create_connection(lambda: self.protocol, host, port, ssl=ssl_context)
        )

    async def start_tls(self, host: str, context: ssl.SSLContext) -> None:
        """What was said in the clear is forgotten: https://www.rfc-editor.org/rfc/rfc3501#section-6.2.1"""
        protocol = self.protocol
        response = await protocol.execute(aioimaplib.Command("STARTTLS", protocol.new_tag(), loop=protocol.loop))
        if response.result != "OK" or protocol.incomplete_line:
            raise ssl.SSLError("the server does not offer STARTTLS")
        protocol.transport = await protocol.loop.start_tls(protocol.transport, protocol, context, server_hostname=host)
        await protocol.capability()


__all__ = ["AioImapException", "Client", "aioimaplib"]
