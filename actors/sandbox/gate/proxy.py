"""The proxy of one sandbox: HTTP and CONNECT on a unix socket in the host (RFC 9112, 9110 section 9.3.6).

Names are looked up here, and the address that was checked is the one that is connected to: a name that leads elsewhere
a moment later changes nothing, and each hop of a redirect is a request of its own. A tunnel carries TLS, which must
name the host that the tunnel is to; what is inside is not looked into.

Where the operator has granted a secret for a host, a tunnel to it ends here, under an authority that this sandbox alone
trusts, and each request goes on by TLS with the header that the code never sees; `http://` there goes the same way.
"""

import asyncio
import contextlib
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import h11
import msgspec

from actors.sandbox.gate import trust
from actors.sandbox.gate.exchange import BYTES_MAX, Line, Wanted, exchange, signed, wanted, within
from actors.sandbox.gate.hello import UNRECOGNIZED_NAME, named
from actors.sandbox.gate.outside import Internet, Outside, Streams
from actors.sandbox.gate.pipes import FAREWELL_SECONDS, READ_BYTES, accepted, door, end, pump
from actors.sandbox.gate.policy import Grant, Policy, Refused

if TYPE_CHECKING:
    from actors.sandbox.gate.authority import Authority

HEAD_SECONDS, CONNECT_SECONDS, TOTAL_SECONDS = 15.0, 15.0, 1800.0
CONNECTIONS_MAX = 64
LOG_BYTES, LINE_CHARACTERS = 1 << 20, 500
HTTPS = 443
INTERNET = Internet()


class Proxy:
    """Opened and closed with the host's hold on the sandbox. `log` is a file with a line for each request."""

    def __init__(
        self, policy: Policy, log: Path, *, key: Path, outside: Outside = INTERNET, bytes_max: int = BYTES_MAX
    ) -> None:
        """`key`: where the sandbox's authority is kept, out of its reach. `bytes_max`: what one connection may pass."""
        self._policy, self._log, self._key, self._outside = policy, log, key, outside
        self._bytes_max = bytes_max
        self._authority: Authority | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self, path: Path, trusted: Path) -> None:
        """Listens there, and writes whom programs inside trust; what an earlier gateway has left is replaced."""
        if self._server is None:
            await asyncio.to_thread(self._prepare, trusted)
            self._server = await asyncio.start_unix_server(self._met, sock=door(path))

    def _prepare(self, trusted: Path) -> None:
        if self._policy.grants:
            from actors.sandbox.gate import authority

            self._authority = authority.kept(self._key)
        trust.write(trusted, b"" if self._authority is None else self._authority.certificate)

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
        near = Line(h11.SERVER, (reader, writer), self._bytes_max)
        try:
            if len(self._open) > CONNECTIONS_MAX:
                await near.refuse(503, f"{CONNECTIONS_MAX} connections are open already")
            else:
                async with asyncio.timeout(TOTAL_SECONDS):
                    await self._serve(near)
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # either side is gone, takes for ever, or does not speak HTTP
        finally:
            self._open.discard(task)
            await end(writer)

    async def _serve(self, near: Line) -> None:
        what = ""
        try:
            request = await near.hear(HEAD_SECONDS)
            if not isinstance(request, h11.Request):
                return
            what = f"{request.method.decode()} {request.target.decode('latin-1')[:200]}"
            asked = self._allowed(wanted(request))
            if asked.method == "CONNECT":
                await self._tunnel(near, asked)
            else:
                await self._plain(near, request, asked)
        except Refused as why:
            self._note("refused", f"{what}: {why}")
            await near.refuse(403, str(why))
        except h11.RemoteProtocolError as why:
            await near.refuse(why.error_status_hint, "this is no request to a proxy")

    def _allowed(self, asked: Wanted) -> Wanted:
        """With the host's name as it is looked up. Raises Refused."""
        host = self._policy.host(asked.host)
        return msgspec.structs.replace(asked, host=host, port=self._policy.port(asked.port, tls=asked.tls))

    async def _plain(self, near: Line, request: h11.Request, asked: Wanted) -> None:
        """Over this socket and no network so far; where there is a secret for its host, it goes on by TLS."""
        if (grant := self._policy.grant(asked.host)) is not None:
            asked = msgspec.structs.replace(asked, tls=True, port=HTTPS)
        onward = signed(request, asked, grant, last=True)
        far = await self._far(asked.host, asked.port, tls=asked.tls)
        self._note("passed", f"{asked.method} {asked.host}:{asked.port} at {_name(far)}{_with(grant)}")
        try:
            await exchange(near, Line(h11.CLIENT, far, self._bytes_max), onward, last=True)
        finally:
            await end(far[1])

    async def _far(self, host: str, port: int, *, tls: bool) -> Streams:
        """A connection to one of its addresses, if all of them are allowed. Raises Refused."""
        for address in self._policy.addresses(host, await self._outside.resolve(host, port)):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    if tls:
                        return await self._outside.connect_tls(address, port, host)
                    return await self._outside.connect(address, port)
        raise Refused(f"{host} cannot be reached")

    async def _tunnel(self, near: Line, asked: Wanted) -> None:
        host, grant = asked.host, self._policy.grant(asked.host)
        far = None if grant else await self._far(host, asked.port, tls=False)
        try:
            await near.say(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
            if (hello := await self._hello(near, host)) is None:
                return
            if far is None:
                await self._ended(near, hello, host)
                return
            self._note("passed", f"CONNECT {host}:{asked.port} at {_name(far)}")
            far[1].write(hello)
            left = [self._bytes_max]
            await asyncio.gather(
                pump(near.reader, far[1], left), pump(far[0], near.writer, left), return_exceptions=True
            )
        finally:
            if far is not None:
                await end(far[1])

    async def _hello(self, near: Line, host: str) -> bytes | None:
        """What the program has said so far, once that names the host of its tunnel; None if it names another."""
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                return await _naming(near, host)
        except Refused as why:
            self._note("refused", f"TLS to {host}: {why}")
            near.writer.write(UNRECOGNIZED_NAME)
            await near.writer.drain()
            return None

    async def _ended(self, near: Line, hello: bytes, host: str) -> None:
        """The TLS of the tunnel ends at one end of a pair of sockets, whose other end is the tunnel's."""
        assert self._authority is not None
        ours, theirs = socket.socketpair()
        outer = await asyncio.open_connection(sock=theirs)
        outer[1].write(hello)
        left = [self._bytes_max]
        inward = asyncio.create_task(pump(near.reader, outer[1], left))
        outward = asyncio.create_task(pump(outer[0], near.writer, left))
        try:
            inner = Line(h11.SERVER, await accepted(ours, self._authority.serving(host)), self._bytes_max)
            try:
                await self._requests(inner, host)
            finally:
                await end(inner.writer)
                await asyncio.wait([outward], timeout=FAREWELL_SECONDS)
        finally:
            inward.cancel()
            outward.cancel()
            await asyncio.gather(inward, outward, return_exceptions=True)
            await end(outer[1])

    async def _requests(self, near: Line, host: str) -> None:
        """One after the other, each judged and signed by itself, as long as both sides want."""
        grant = self._policy.grant(host)
        far: Line | None = None
        goes_on = True
        try:
            while goes_on:
                request = await near.hear()
                if not isinstance(request, h11.Request):
                    return
                asked = within(request, host)
                onward = signed(request, asked, grant, last=False)
                if far is None or far.reader.at_eof():
                    far, old = Line(h11.CLIENT, await self._far(host, HTTPS, tls=True), self._bytes_max), far
                    if old is not None:
                        await end(old.writer)
                self._note("passed", f"{asked.method} https://{host}{asked.path.partition('?')[0]}{_with(grant)}")
                goes_on = await exchange(near, far, onward, last=False)
        except Refused as why:
            self._note("refused", f"TLS to {host}: {why}")
            await near.refuse(403, str(why))
        except h11.RemoteProtocolError as why:
            await near.refuse(why.error_status_hint, "this is no request")
        finally:
            if far is not None:
                await end(far.writer)

    def _note(self, outcome: str, text: str) -> None:
        words = "".join(one if one.isprintable() else "?" for one in " ".join(text.split()))[:LINE_CHARACTERS]
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {outcome} {words}\n"
        with contextlib.suppress(OSError):
            if not self._log.exists() or self._log.stat().st_size < LOG_BYTES:
                with self._log.open("a") as log:
                    log.write(line)


async def _naming(near: Line, host: str) -> bytes | None:
    """All that is there once it names a host; None if the program ends before. Raises Refused for another host."""
    said, _ = near.http.trailing_data
    while (name := named(said)) is None:
        if not (more := await near.reader.read(READ_BYTES)):
            return None
        said += more
    if name != host:
        raise Refused(f"the tunnel is to {host}, the TLS inside to {name}")
    return said


def _name(far: Streams) -> str:
    return str(far[1].get_extra_info("peername"))


def _with(grant: Grant | None) -> str:
    return "" if grant is None else f" with {grant.name}"
