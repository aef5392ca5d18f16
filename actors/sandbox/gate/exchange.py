"""Requests and their answers between a program in the sandbox and the server it may reach (RFC 9112), by h11.

Each request is read whole, judged, and written anew: what follows it on the connection is a request of its own or
nothing, whatever its lengths pretend. A secret is put in here and nowhere else.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast
from urllib.parse import urlsplit

import h11
import msgspec

from actors.sandbox.gate.outside import Streams
from actors.sandbox.gate.pipes import IDLE_SECONDS, READ_BYTES
from actors.sandbox.gate.policy import Grant, Refused

HEAD_BYTES = 32 << 10
BYTES_MAX = 1 << 30  # of one connection, both ways
OF_ONE_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    )
)

Heard = h11.Event | type[h11.PAUSED]


class Line:
    """One side's connection: events of HTTP in and out. Raises OSError when too much has passed."""

    def __init__(self, role: type[h11.CLIENT] | type[h11.SERVER], streams: Streams, bytes_max: int = BYTES_MAX) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES)
        self.reader, self.writer = streams
        self._left = bytes_max

    async def hear(self, seconds: float = IDLE_SECONDS) -> Heard:
        """Raises h11.RemoteProtocolError for what is none, TimeoutError when nothing comes."""
        async with asyncio.timeout(seconds) as patience:
            while (event := self.http.next_event()) is h11.NEED_DATA:
                data = await self.reader.read(READ_BYTES)
                self._left -= len(data)
                if self._left < 0:
                    raise OSError("too much has passed on one connection")
                self.http.receive_data(data)
                if self.http.our_state is not h11.IDLE:  # a head must be whole in time, a body may go on and on
                    patience.reschedule(asyncio.get_running_loop().time() + seconds)
        return cast("Heard", event)

    async def say(self, event: h11.Event) -> None:
        if data := self.http.send(event):
            self.writer.write(data)
            await self.writer.drain()

    async def refuse(self, status: int, why: str) -> None:
        """In place of an answer, if there is still room for one."""
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = f"Frontdesk: {why}\n".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Connection", "close")]
        reason = "".join(one if " " <= one <= "~" else "?" for one in why)[:200].encode()
        await self.say(h11.Response(status_code=status, headers=headers, reason=reason))
        await self.say(h11.Data(data=body))
        await self.say(h11.EndOfMessage())


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a request to a proxy asks for; `path` of what."""

    method: str
    host: str
    port: int
    tls: bool
    path: str


def wanted(request: h11.Request) -> Wanted:
    """Raises Refused for what no client of a proxy says."""
    method, target = request.method.decode(), request.target.decode("latin-1")
    try:
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = url.hostname, url.port
    except ValueError:
        raise Refused("this is no request to a proxy") from None
    if url.username is not None or url.password is not None:
        raise Refused("a name or a password in an address is not passed on")
    if method != "CONNECT" and url.scheme != "http":
        hint = "https goes by CONNECT" if url.scheme == "https" else "only http and https are allowed"
        raise Refused(f"{url.scheme or 'no scheme'}: {hint}")
    if not host or (method == "CONNECT" and (url.path or url.query or url.fragment)):
        raise Refused("this is no request to a proxy")
    tls = method == "CONNECT"
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return Wanted(method=method, host=host, port=port or (443 if tls else 80), tls=tls, path=path)


def within(request: h11.Request, host: str) -> Wanted:
    """What a request asks for that came by TLS to `host`. Raises Refused if it is for anybody else."""
    target = request.target.decode("latin-1")
    if not target.startswith("/"):
        raise Refused("inside of TLS a request names a path, nothing else")
    for name, value in request.headers:
        named = value.decode("latin-1").lower().removesuffix(":443").removesuffix(".")
        if name == b"host" and named != host:
            raise Refused(f"this connection is to {host}, not to {named}")
    return Wanted(method=request.method.decode(), host=host, port=443, tls=True, path=target)


def signed(request: h11.Request, asked: Wanted, grant: Grant | None, *, last: bool) -> h11.Request:
    """As it goes on: to this host, with the secret in place of any header of its name, and nothing of this hop.

    Raises Refused for a method whose answer would show the secret, or that opens a tunnel.
    """
    if asked.method in ("CONNECT", "TRACE"):
        raise Refused(f"{asked.method} is not passed on")
    port = "" if asked.port == (443 if asked.tls else 80) else f":{asked.port}"
    headers = [(b"Host", f"{asked.host}{port}".encode())]
    kept = _of_more_hops(request.headers.raw_items())
    if grant is not None:
        kept = [(name, value) for name, value in kept if name.lower() != grant.header.lower().encode()]
        headers.append((grant.header.encode(), grant.value.encode("latin-1")))
    headers += [(name, value) for name, value in kept if name.lower() != b"host"]
    if last:
        headers.append((b"Connection", b"close"))
    return h11.Request(method=request.method, target=asked.path.encode("latin-1"), headers=headers)


def _of_more_hops(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name.lower() for name, _ in headers}
    left_out = OF_ONE_HOP | (_listed(headers) - {b"transfer-encoding", b"content-length"})
    if b"transfer-encoding" in names:  # which counts (RFC 9112 section 6.3); both together is a way to smuggle
        left_out |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in left_out]


def _listed(headers: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
    """What a connection's options name, in lower case."""
    return {
        one.strip().lower() for name, value in headers if name.lower() == b"connection" for one in value.split(b",")
    }


async def exchange(near: Line, far: Line, request: h11.Request, *, last: bool) -> bool:
    """One request, as it goes on, and its answer. Whether there may be another one on both connections.

    Raises Refused when the server does not answer, h11.RemoteProtocolError when the request breaks off.
    """
    await far.say(request)
    sending = asyncio.create_task(_pass(near, far, lambda event: event))
    answering = asyncio.create_task(_answer(far, near, last=last))
    try:
        await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
        await answering
    finally:
        for task in (sending, answering):
            task.cancel()
        await asyncio.gather(sending, answering, return_exceptions=True)
    states = {state for line in (near, far) for state in (line.http.our_state, line.http.their_state)}
    if states != {h11.DONE}:
        return False
    near.http.start_next_cycle()
    far.http.start_next_cycle()
    return True


async def _answer(far: Line, near: Line, *, last: bool) -> None:
    try:
        await _pass(far, near, lambda event: _onward(event, last=last))
    except h11.RemoteProtocolError as why:
        raise Refused("the server broke off, or what it says is no HTTP") from why


def _onward(event: h11.Event, *, last: bool) -> h11.Event:
    match event:
        case h11.Response():
            headers = event.headers
            ends = last or event.http_version < b"1.1" or b"close" in _listed(headers)
            kept = _of_more_hops(headers.raw_items()) + ([(b"Connection", b"close")] if ends else [])
            return h11.Response(status_code=event.status_code, headers=kept, reason=event.reason)
        case h11.EndOfMessage():
            return h11.EndOfMessage()  # its trailing headers are of one hop
    return event


async def _pass(source: Line, target: Line, changed: Callable[[h11.Event], h11.Event]) -> None:
    """Until the message ends, or the source does."""
    while True:
        event = await source.hear()
        if isinstance(event, type | h11.ConnectionClosed):
            return
        await target.say(changed(event))
        if isinstance(event, h11.EndOfMessage):
            return
