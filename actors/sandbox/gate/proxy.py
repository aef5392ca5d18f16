"""The proxy of one sandbox: HTTP and CONNECT on a unix socket in the host (RFC 9112, 9110 section 9.3.6).

Names are looked up here, and the address that was checked is the one that is connected to: a name that leads elsewhere
a moment later changes nothing, and each hop of a redirect is a request of its own. What passes is not looked into.

Where the operator has granted a secret for a host, code asks for `http://` there, over this socket and no network; the
request goes on by TLS, with the header that the code never sees. A tunnel to that host is passed on as it is.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from actors.sandbox.gate.policy import Policy, Refused

HEAD_BYTES = 32 << 10
HEAD_SECONDS, CONNECT_SECONDS, IDLE_SECONDS, TOTAL_SECONDS = 15.0, 15.0, 120.0, 1800.0
BYTES_MAX = 1 << 30  # of one connection, both ways
CONNECTIONS_MAX = 64
LOG_BYTES = 1 << 20
READ_BYTES = 1 << 16
HTTPS = 443
HOP_BY_HOP = frozenset(("proxy-connection", "proxy-authorization", "connection", "keep-alive", "host", "te", "upgrade"))

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def resolve(name: str, port: int) -> list[str]:
    """By the host's own resolver."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def connect_tls(address: str, port: int, name: str) -> Streams:
    """To the address that was checked, whose certificate must be that of the name."""
    return await asyncio.open_connection(address, port, ssl=ssl.create_default_context(), server_hostname=name)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One request's head. `first` is what the far side gets of it: nothing of a CONNECT."""

    method: str
    host: str
    port: int
    tls: bool
    first: bytes

    def with_header(self, name: str, value: str) -> "Wanted":
        """In place of any of that name."""
        mark = f"{name.lower()}:".encode()
        lines = [line for line in self.first.split(b"\r\n") if not line.lower().startswith(mark)]
        lines.insert(1, f"{name}: {value}".encode("latin-1"))
        return msgspec.structs.replace(self, first=b"\r\n".join(lines))


class Proxy:
    """Opened and closed with the host's hold on the sandbox. `log` is a file with a line for each request."""

    def __init__(
        self,
        policy: Policy,
        log: Path,
        *,
        resolve: Callable[[str, int], Awaitable[list[str]]] = resolve,
        connect: Callable[[str, int], Awaitable[Streams]] = asyncio.open_connection,
        connect_tls: Callable[[str, int, str], Awaitable[Streams]] = connect_tls,
    ) -> None:
        self._policy, self._log, self._resolve = policy, log, resolve
        self._connect, self._connect_tls = connect, connect_tls
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self, path: Path) -> None:
        """Listens there; what an earlier gateway has left is replaced."""
        if self._server is None:
            self._server = await asyncio.start_unix_server(self._met, sock=_door(path), limit=HEAD_BYTES)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) > CONNECTIONS_MAX:
                await _refuse(writer, 503, f"{CONNECTIONS_MAX} connections are open already")
            else:
                async with asyncio.timeout(TOTAL_SECONDS):
                    await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # either side is gone, or takes for ever
        finally:
            self._open.discard(task)
            await _end(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        what = head.split(b"\r\n", 1)[0].decode("latin-1")[:200]
        try:
            wanted = read_head(head)
            host = self._policy.host(wanted.host)
            grant = None if wanted.tls else self._policy.grant(host)
            port = self._policy.port(wanted.port, tls=wanted.tls) if grant is None else HTTPS
            addresses = self._policy.addresses(host, await self._resolve(host, port))
            far = await self._reach(host, addresses, port, tls=grant is not None)
        except Refused as why:
            self._note("refused", f"{what}: {why}")
            return await _refuse(writer, 403, str(why))
        self._note("passed", f"{wanted.method} {host}:{port} at {far[1].get_extra_info('peername')}")
        try:
            if wanted.tls:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            far[1].write((wanted.with_header(grant.header, grant.value) if grant else wanted).first)
            left = [BYTES_MAX]
            await asyncio.gather(_pump(reader, far[1], left), _pump(far[0], writer, left), return_exceptions=True)
        finally:
            await _end(far[1])
        return None

    async def _reach(self, host: str, addresses: list[str], port: int, *, tls: bool) -> Streams:
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    if tls:
                        return await self._connect_tls(address, port, host)
                    return await self._connect(address, port)
        raise Refused(f"{host} cannot be reached")

    def _note(self, outcome: str, text: str) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {outcome} {' '.join(text.split())}\n"
        with contextlib.suppress(OSError):
            if not self._log.exists() or self._log.stat().st_size < LOG_BYTES:
                with self._log.open("a") as log:
                    log.write(line)


def _door(path: Path) -> socket.socket:
    """Bound by a name in an open folder: the whole path may be longer than the 107 bytes of a socket's address."""
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        door.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    path.parent.chmod(0o755)
    path.chmod(0o666)  # the sandbox may be another user, who has nothing else of this folder
    return door


def read_head(head: bytes) -> Wanted:
    """Raises Refused for what no client of a proxy says."""
    try:
        request, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = request.split(" ")
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = url.hostname, url.port
    except ValueError:
        raise Refused("this is no request to a proxy") from None
    if not version.startswith("HTTP/1.") or not host or any(":" not in line for line in lines):
        raise Refused("this is no request to a proxy")
    if url.username is not None or url.password is not None:
        raise Refused("a name or a password in an address is not passed on")
    if method == "CONNECT":
        return Wanted(method=method, host=host, port=port or 443, tls=True, first=b"")
    if url.scheme != "http":
        raise Refused(f"{url.scheme or 'no scheme'}: only http and https are allowed")
    kept = [line for line in lines if line.split(":", 1)[0].strip().lower() not in HOP_BY_HOP]
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    at = host if port in (None, 80) else f"{host}:{port}"
    first = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {at}", *kept, "Connection: close", "", ""])
    return Wanted(method=method, host=host, port=port or 80, tls=False, first=first.encode("latin-1"))


def _say_end(writer: asyncio.StreamWriter) -> None:
    """TLS has no half of an end: there the other side's answer is waited for, or its silence."""
    if writer.can_write_eof():
        writer.write_eof()


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _refuse(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    body = f"Frontdesk: {why}\n".encode()
    head = f"HTTP/1.1 {status} {why.encode('ascii', 'replace').decode()[:200]}\r\nContent-Type: text/plain\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int]) -> None:
    """Until this side ends, is silent for too long, or has used up what both may pass."""
    try:
        while left[0] > 0:
            async with asyncio.timeout(IDLE_SECONDS):
                data = await reader.read(READ_BYTES)
                if not data:
                    return _say_end(writer)
                left[0] -= len(data)
                writer.write(data)
                await writer.drain()
        writer.close()
    except (OSError, TimeoutError):
        writer.close()
