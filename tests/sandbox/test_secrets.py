"""A secret that the operator grants is used for the code, by real TLS, and in no case for anybody else."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from actors.sandbox.gate import authority
from actors.sandbox.gate.outside import Streams
from actors.sandbox.gate.policy import Grant, Policy
from actors.sandbox.gate.proxy import Proxy
from tests.sandbox.desk import Desk, hardened

KEYED, OPEN, PUBLIC = "keyed.test.example", "open.test.example", "93.184.216.34"
SECRET = "Bearer a-secret-of-the-operator"
POLICY = Policy(
    allow=("*.test.example",), grants=(Grant(name="key", host=KEYED, header="Authorization", value=SECRET),)
)


class Servers:
    """A server by TLS for each of the two hosts, of an authority that only the host trusts; and what each has heard."""

    def __init__(self, folder: Path) -> None:
        self.authority = authority.kept(folder / "of-the-world.pem")
        self.heard: dict[str, list[bytes]] = {KEYED: [], OPEN: []}
        self.ports: dict[str, int] = {}
        self.certificate_of = {KEYED: KEYED, OPEN: OPEN}

    async def serve(self, host: str) -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.heard[host].append(head)
                    size = next(
                        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")),
                        0,
                    )
                    body = await reader.readexactly(size)
                    away = b"Location: https://open.test.example/\r\n" if b" /away " in head else b""
                    said = b"signed " + body if SECRET.encode() in head else b"plain " + body
                    status = b"302 Found" if away else b"200 OK"
                    writer.write(
                        b"HTTP/1.1 " + status + b"\r\n" + away + b"Content-Length: %d\r\n\r\n" % len(said) + said
                    )
                    await writer.drain()
            except (asyncio.IncompleteReadError, OSError):
                writer.close()

        context = self.authority.serving(self.certificate_of[host])
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        self.ports[host] = server.sockets[0].getsockname()[1]
        return server

    async def resolve(self, name: str, port: int) -> list[str]:
        self.asked = name
        return [PUBLIC] if name in self.ports else []

    async def connect(self, address: str, port: int) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.ports[self.asked])

    async def connect_tls(self, address: str, port: int, name: str) -> Streams:
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        return await asyncio.open_connection("127.0.0.1", self.ports[name], ssl=context, server_hostname=name)


@pytest_asyncio.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    made = Servers(tmp_path)
    running = [await made.serve(host) for host in (KEYED, OPEN)]
    yield made
    for server in running:
        server.close()


CLIENTS = f"""
import subprocess, urllib.request
import httpx, requests
url = "https://{KEYED}/x"
with requests.Session() as session:
    answers = [session.post(url, data="1").text, session.post(url, data="23").text]
answers.append(httpx.get(url, headers={{"Authorization": "mine"}}).text)
answers.append(urllib.request.urlopen(url).read().decode())
answers.append(subprocess.run(["curl", "-sS", url], capture_output=True, text=True).stdout)
answers
"""
AWAY = f"""
import os, ssl, socket, urllib.error, urllib.request
def tried(act):
    try: return act()
    except OSError as error: return str(error)
def inside(tunnel, name, head):
    line = socket.create_connection(("127.0.0.1", 3128))
    line.sendall(f"CONNECT {{tunnel}} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
    if b" 200 " not in (said := line.recv(1000)): return said.decode()
    tls = ssl._create_unverified_context().wrap_socket(line, server_hostname=name)
    tls.sendall(head.encode()); return tls.recv(1000).decode()
get = "GET / HTTP/1.1\\r\\nHost: "
found = [
    tried(lambda: urllib.request.urlopen("https://{KEYED}/away").read().decode()),
    tried(lambda: inside("{KEYED}:443", "{OPEN}", get + "{OPEN}\\r\\n\\r\\n")),
    tried(lambda: inside("{OPEN}:443", "{KEYED}", get + "{KEYED}\\r\\n\\r\\n")),
    tried(lambda: inside("{KEYED}:443", "{KEYED}", get + "{OPEN}\\r\\n\\r\\n")),
    tried(lambda: inside("{KEYED}:443", "{KEYED}", "GET https://{OPEN}/ HTTP/1.1\\r\\nHost: {KEYED}\\r\\n\\r\\n")),
    tried(lambda: inside("{KEYED}:443", "{KEYED}", "TRACE / HTTP/1.1\\r\\nHost: {KEYED}\\r\\n\\r\\n")),
    tried(lambda: inside("{KEYED}:8443", "{KEYED}", "")),
]
[one.split("\\r\\n")[0] for one in found]
"""


def desk_of(folder: Path, servers: Servers, isolation: object) -> Desk:
    return Desk(folder / "box", isolation=isolation, policy=POLICY, outside=servers)


async def test_the_clients_of_python_and_curl_are_signed_for(tmp_path: Path, servers: Servers) -> None:
    desk = desk_of(tmp_path, servers, await hardened("proxy", python=sys.executable))
    try:
        ended = await desk.run(CLIENTS)
        assert ended.value == "['signed 1', 'signed 23', 'signed ', 'signed ', 'signed ']"
        assert b"mine" not in b"".join(servers.heard[KEYED])
        log = (tmp_path / "box" / "network.log").read_text()
        assert f"passed POST https://{KEYED}/x with key" in log
        assert SECRET not in log
    finally:
        await desk.sandbox.kill()


async def test_nothing_leads_the_secret_to_another_host(tmp_path: Path, servers: Servers) -> None:
    desk = desk_of(tmp_path, servers, await hardened("proxy"))
    try:
        redirected, *others = eval((await desk.run(AWAY)).value)
        found = "\n".join(others)
    finally:
        await desk.sandbox.kill()
    assert "CERTIFICATE_VERIFY_FAILED" in redirected  # the other host's tunnel is its own, and its server no public one
    assert servers.heard[OPEN] == []
    assert [head.split()[1] for head in servers.heard[KEYED]] == [b"/away"]
    assert found.count("UNRECOGNIZED_NAME") == 2, found
    assert found.count("HTTP/1.1 403 ") == 4, found


async def test_a_server_that_is_not_who_it_must_be_gets_nothing(tmp_path: Path, servers: Servers) -> None:
    servers.certificate_of[KEYED] = OPEN
    server = await servers.serve(KEYED)
    proxy = Proxy(POLICY, tmp_path / "network.log", key=tmp_path / "authority.pem", outside=servers)
    await proxy.open(tmp_path / "proxy", tmp_path / "trusted.pem")
    try:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        writer.write(f"GET http://{KEYED}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b"cannot be reached" in await reader.read()
        writer.close()
        await writer.wait_closed()
    finally:
        await proxy.close()
        server.close()
    assert servers.heard[KEYED] == []


async def test_the_authority_stays_for_what_trusts_it_and_is_the_hosts_alone(tmp_path: Path) -> None:
    first, second = authority.kept(tmp_path / "key.pem"), authority.kept(tmp_path / "key.pem")
    assert first.certificate == second.certificate
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    (tmp_path / "key.pem").write_text("broken")
    assert authority.kept(tmp_path / "key.pem").certificate != first.certificate


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_requests_in_one_breath_are_each_judged(tmp_path: Path, servers: Servers, method: str) -> None:
    proxy = Proxy(POLICY, tmp_path / "network.log", key=tmp_path / "authority.pem", outside=servers)
    await proxy.open(tmp_path / "proxy", tmp_path / "trusted.pem")
    try:
        reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy")
        writer.write(f"CONNECT {KEYED}:443 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(ssl.create_default_context(cafile=tmp_path / "trusted.pem"), server_hostname=KEYED)
        good = f"{method} / HTTP/1.1\r\nHost: {KEYED}\r\nContent-Length: 1\r\n\r\nx"
        writer.write((good * 2 + good.replace(f"Host: {KEYED}", f"Host: {OPEN}")).encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    finally:
        await proxy.close()
    assert answer.count(b"signed x") == 2
    assert answer.count(b"403 this connection is to") == 1
    assert len(servers.heard[KEYED]) == 2
