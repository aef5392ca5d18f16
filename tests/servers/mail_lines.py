"""The wires between a program and its mail servers, which can be cut, go silent, or answer for the server.

What passes is otherwise untouched, so that TLS may be inside; faults of single commands are for lines in the clear.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from dataclasses import dataclass


@dataclass(frozen=True)
class Refuse:
    """An answer other than "ok" to a command; the server does not hear of it."""

    code: int
    text: str


@dataclass(frozen=True)
class Fault:
    name: str


DROPPED = Fault("the connection ends, and the server has not heard the command")
LOST_ANSWER = Fault("the server does it, and the connection ends instead of an answer")

END = "END"  # the line that ends a mail, as a command


class Line:
    """From `port` here to a server's. Before `up`, nothing listens."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.connections = 0  # ever made
        self._server_port = server_port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent: set[asyncio.StreamWriter] = set()
        self._replaced: tuple[bytes, bytes] = (b"", b"")

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Connections are refused, and open ones end."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silent(self) -> None:
        """On the open connections no byte passes any more, and nobody is told: as when a router has forgotten them."""
        self._silent |= self._open

    def says(self, data: bytes) -> None:
        """To each client, as if its server had."""
        for writer in self._clients:
            writer.write(data)

    def replaces(self, said: bytes, by: bytes) -> None:
        """In what the server says, where it comes in one piece."""
        self._replaced = (said, by)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        self._clients.add(writer)
        self.connections += 1
        try:
            there, here = await asyncio.open_connection("127.0.0.1", self._server_port, limit=2**20)
            self._open.add(here)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._talk(reader, here, there, writer)
            here.transport.abort()
            self._open.discard(here)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._open.discard(writer)
            self._clients.discard(writer)
            self._tasks.discard(task)

    async def _talk(
        self,
        client: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
    ) -> None:
        ways = [
            asyncio.ensure_future(self._pump(client, to_server)),
            asyncio.ensure_future(self._pump(server, to_client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if writer not in self._silent:
                said, by = self._replaced
                writer.write(data.replace(said, by) if said and writer in self._clients else data)
                await writer.drain()


class SmtpLine(Line):
    """Knows SMTP in the clear: `script` makes the next commands of a kind meet a fault, one each."""

    def __init__(self, server_port: int) -> None:
        super().__init__(server_port)
        self.commands: list[str] = []
        self._scripts: dict[str, deque[Refuse | Fault]] = defaultdict(deque)

    def script(self, verb: str, *faults: Refuse | Fault) -> None:
        self._scripts[verb].extend(faults)

    async def _talk(
        self,
        client: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
    ) -> None:
        to_client.write(await _reply(server))
        in_mail = False
        while line := await client.readline():
            if in_mail and line != b".\r\n":
                to_server.write(line)
                continue
            verb = END if in_mail else line.split()[0].decode("ascii", "replace").upper()
            self.commands.append(verb)
            fault = self._scripts[verb].popleft() if self._scripts[verb] else None
            if fault == DROPPED:
                return
            if isinstance(fault, Refuse):
                answer = f"{fault.code} {fault.text}\r\n".encode()
            else:
                to_server.write(line)
                answer = await _reply(server)
            if fault == LOST_ANSWER:
                return
            to_client.write(answer)
            if isinstance(fault, Refuse) and verb == END:
                return  # the server still waits for the end
            in_mail = verb == "DATA" and answer.startswith(b"354")


async def _reply(server: asyncio.StreamReader) -> bytes:
    """All lines of it; the last has a space after the code."""
    reply = b""
    while line := await server.readline():
        reply += line
        if line[3:4] != b"-":
            return reply
    raise OSError("the server has ended the connection")
