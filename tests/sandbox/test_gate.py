"""SE05: what leaves a sandbox is what the operator allows, to the addresses that were checked."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import h11
import pytest
import pytest_asyncio

from actors.sandbox.gate.exchange import wanted
from actors.sandbox.gate.outside import Streams
from actors.sandbox.gate.policy import Grant, Policy, Refused, is_public
from actors.sandbox.gate.proxy import Proxy
from tests.patience import PATIENCE_SECONDS
from tests.sandbox.test_hello import hello

BYTES_MAX = 1 << 20
PUBLIC = "93.184.216.34"
GRANT = Grant(name="key", host="keyed.test.example", header="Authorization", value="Bearer a-secret")
INSIDE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fc00::1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "ff02::1",
    "2001:db8::1",
    "nonsense",
]


@pytest.mark.parametrize("address", INSIDE)
def test_se05_an_address_that_is_not_public_is_known_however_it_is_written(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946"])
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(address)


class Net:
    """The names of a test, a server behind every public address, and what was connected to."""

    def __init__(self) -> None:
        self.names = {
            "ok.test.example": [[PUBLIC]],
            "keyed.test.example": [[PUBLIC]],
            "inside.test.example": [["127.0.0.1"]],
            "xn--mnchen-3ya.test.example": [["10.0.0.1"]],
            "mixed.test.example": [[PUBLIC, "10.0.0.1", "93.184.216.35"]],
            "rebind.test.example": [[PUBLIC], ["127.0.0.1"]],
        }
        self.connected: list[tuple[str, int]] = []
        self.looked_up: list[str] = []
        self.heard: list[bytes] = []
        self.port = 0

    async def resolve(self, name: str, port: int) -> list[str]:
        self.looked_up.append(name)
        answers = self.names.get(name, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, address: str, port: int) -> Streams:
        self.connected.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def connect_tls(self, address: str, port: int, name: str) -> Streams:
        return await self.connect(address, port)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # a tunnel that nothing came through
            head = b""
        else:
            self.heard.append(head)
        if b" /endless " in head:
            with contextlib.suppress(OSError):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    writer.write(b"x" * 10_000)
                    await writer.drain()
        if b" /broken " in head:
            writer.write(b"SSH-2.0-something\r\n\r\n")
        elif b" /gone " in head:
            pass
        elif b" /redirect " in head:
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest_asyncio.fixture
async def net() -> AsyncIterator[Net]:
    net = Net()
    server = await asyncio.start_server(net.answer, "127.0.0.1", 0)
    net.port = server.sockets[0].getsockname()[1]
    yield net
    server.close()


@pytest_asyncio.fixture
async def proxy(net: Net, tmp_path: Path) -> AsyncIterator[Path]:
    made = Proxy(
        Policy(allow=("*.test.example",), grants=(GRANT,)),
        tmp_path / "network.log",
        key=tmp_path / "authority.pem",
        outside=net,
    )
    await made.open(tmp_path / "proxy", tmp_path / "trusted.pem")
    yield tmp_path / "proxy"
    await made.close()


async def said(proxy: Path, head: str) -> bytes:
    reader, writer = await asyncio.open_unix_connection(proxy)
    writer.write(head.encode())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def get(url: str) -> str:
    return f"GET {url} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic x\r\n\r\n"


async def test_an_allowed_host_is_reached_by_the_address_that_was_checked(proxy: Path, net: Net) -> None:
    assert (await said(proxy, get("http://ok.test.example/a?b"))).endswith(b"hello")
    assert net.connected == [(PUBLIC, 80)]
    assert net.heard == [b"GET /a?b HTTP/1.1\r\nHost: ok.test.example\r\nConnection: close\r\n\r\n"]
    assert "passed GET ok.test.example:80" in (proxy.parent / "network.log").read_text()


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:8080/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://localhost./",
        "http://user@10.0.0.1/",
        "http://user:word@ok.test.example/",
        "http://ok.test.example:22/",
        "http://elsewhere.example/",
        "http://test.example/",
        "http://inside.test.example/",
        "http://mixed.test.example/",
        "http://unknown.test.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "https://ok.test.example/",
        "http:///ok.test.example/",
        "//ok.test.example/",
        "/",
        "http://0251.0376.0251.0376/",
        "http://0xa9fea9fe/",
        "http://[fe80::1%25eth0]/",
        "http://10.0.0.1#.test.example/",
        "http://10.0.0.1%2f.test.example/",
        "http://ok.test.example\\@10.0.0.1/",
        "http://ok.test.example%00.elsewhere.example/",
        "http://ok.test.example:4300000000/",
        "http://xn--mnchen-3ya.test.example/",
    ],
)
async def test_se05_everything_else_is_refused_without_a_connection(proxy: Path, net: Net, url: str) -> None:
    assert (await said(proxy, get(url))).startswith(b"HTTP/1.1 403 ")
    assert net.connected == []
    assert " refused " in (proxy.parent / "network.log").read_text()


@pytest.mark.parametrize("line", ["GET http://{}/", "CONNECT {}:443", "GET http://ok.test.example@{}/"])
async def test_a_name_that_is_not_allowed_is_not_even_looked_up(proxy: Path, net: Net, line: str) -> None:
    """Or data would leave in it."""
    head = f"{line.format('data.elsewhere.example')} HTTP/1.1\r\nHost: x\r\n\r\n"
    assert (await said(proxy, head)).startswith(b"HTTP/1.1 403 ")
    assert net.looked_up == []


async def test_se05_a_redirect_is_a_request_of_its_own(proxy: Path, net: Net) -> None:
    assert b"302 Found" in await said(proxy, get("http://ok.test.example/redirect"))
    assert (await said(proxy, get("http://169.254.169.254/"))).startswith(b"HTTP/1.1 403 ")
    assert net.connected == [(PUBLIC, 80)]


async def test_se05_a_body_without_an_end_is_cut_off(net: Net, tmp_path: Path) -> None:
    made = Proxy(
        Policy(allow=("*.test.example",)), tmp_path / "log", key=tmp_path / "key", outside=net, bytes_max=BYTES_MAX
    )
    await made.open(tmp_path / "proxy", tmp_path / "trusted.pem")
    try:
        answer = await said(tmp_path / "proxy", get("http://ok.test.example/endless"))
        assert BYTES_MAX / 2 < len(answer) < BYTES_MAX * 2
    finally:
        await made.close()


@pytest.mark.parametrize("path", ["broken", "gone"])
async def test_a_server_that_does_not_answer_is_told(proxy: Path, path: str) -> None:
    assert b"the server broke off" in await said(proxy, get(f"http://ok.test.example/{path}"))


async def test_se05_a_name_that_leads_elsewhere_the_second_time(proxy: Path, net: Net) -> None:
    assert (await said(proxy, get("http://rebind.test.example/"))).endswith(b"hello")
    assert (await said(proxy, get("http://rebind.test.example/"))).startswith(b"HTTP/1.1 403 ")
    assert net.connected == [(PUBLIC, 80)]


@pytest.mark.parametrize("target", ["127.0.0.1:443", "ok.test.example:22", "inside.test.example:443", "[::1]:443"])
async def test_se05_a_tunnel_is_held_to_the_same(proxy: Path, net: Net, target: str) -> None:
    assert (await said(proxy, f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    assert net.connected == []


@pytest.mark.parametrize(
    "head",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"a b HTTP/1.1 c\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT ok.test.example:443\r\nX: y HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://ok.test.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST http://ok.test.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST http://ok.test.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
    ],
)
async def test_what_is_no_request_is_refused(proxy: Path, net: Net, head: bytes) -> None:
    assert (await said(proxy, head.decode("latin-1"))).startswith(b"HTTP/1.1 40")
    assert net.connected == []


@pytest.mark.parametrize("target", ["a.example:443/x", "a.example:443?x", "user@a.example:443", "/", "a.example:x"])
def test_a_tunnel_is_to_a_host_and_a_port(target: str) -> None:
    with pytest.raises(Refused):
        wanted(h11.Request(method="CONNECT", target=target, headers=[("Host", "x")]))


async def test_what_goes_on_is_for_the_host_that_was_checked_and_stays_http(proxy: Path, net: Net) -> None:
    """Whatever `Host` says, and no other protocol by `Upgrade`."""
    head = (
        "GET http://ok.test.example./ HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    )
    assert (await said(proxy, head)).endswith(b"hello")
    assert net.heard == [b"GET / HTTP/1.1\r\nHost: ok.test.example\r\nConnection: close\r\n\r\n"]


async def test_the_log_holds_nothing_that_a_terminal_would_obey(proxy: Path, net: Net) -> None:
    reader, writer = await asyncio.open_unix_connection(proxy)
    writer.write(
        b"CONNECT ok.test.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"
        + hello("xx2J.test.example").replace(b"xx2J", b"\x1b[2J")
    )
    await reader.read()
    writer.close()
    await writer.wait_closed()
    log = (proxy.parent / "network.log").read_text()
    assert "the TLS inside to ?[2j.test.example" in log
    assert log.replace("\n", "").isprintable()


async def test_a_second_request_behind_the_first_goes_nowhere(proxy: Path, net: Net) -> None:
    second = "GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
    await said(proxy, get("http://ok.test.example/a") + second)
    smuggled = (
        "POST http://ok.test.example/b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    await said(proxy, f"{smuggled}0\r\n\r\n{second}")
    assert [head.split(b"\r\n")[0] for head in net.heard] == [b"GET /a HTTP/1.1", b"POST /b HTTP/1.1"]
    assert b"content-length" not in net.heard[1].lower()


async def test_a_granted_secret_is_added_on_the_way_and_never_handed_over(proxy: Path, net: Net) -> None:
    request = "GET http://keyed.test.example/ HTTP/1.1\r\nHost: x\r\nAuthorization: mine\r\nAccept: */*\r\n\r\n"
    answer = await said(proxy, request)
    assert answer.endswith(b"hello")
    assert b"a-secret" not in answer
    assert net.connected == [(PUBLIC, 443)]
    head = b"GET / HTTP/1.1\r\nHost: keyed.test.example\r\nAuthorization: Bearer a-secret\r\nAccept: */*\r\n"
    assert net.heard == [head + b"Connection: close\r\n\r\n"]
    assert "a-secret" not in (proxy.parent / "network.log").read_text() + repr(GRANT)


@pytest.mark.parametrize("request_line", ["GET http://keyed.test.example:8080/", "TRACE http://keyed.test.example/"])
async def test_a_secret_is_for_one_port_and_for_no_echo(proxy: Path, net: Net, request_line: str) -> None:
    assert (await said(proxy, f"{request_line} HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    assert net.heard == []
