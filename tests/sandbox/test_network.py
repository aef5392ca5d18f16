"""Three ways out of a sandbox: none, by the proxy, and whatever the host has."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from actors.sandbox.gate.policy import Policy
from actors.sandbox.isolation.words import Network
from tests.sandbox.desk import Desk, hardened

ASK = """
import urllib.request, urllib.error
def ask(url):
    try: return urllib.request.urlopen(url, timeout=10).read().decode()
    except urllib.error.HTTPError as error: return error.read().decode()
    except OSError as error: return repr(error)
ask({!r})
"""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    made = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield made.sockets[0].getsockname()[1]
    made.close()


async def answer(tmp_path: Path, network: Network, url: str) -> str:
    desk = Desk(tmp_path / network, isolation=await hardened(network=network), policy=Policy(allow=("*.example.org",)))
    try:
        return (await desk.run(ASK.format(url))).value
    finally:
        await desk.sandbox.kill()


async def test_without_a_network_nothing_is_reached(tmp_path: Path, server: int) -> None:
    assert "refused" in await answer(tmp_path, "none", f"http://127.0.0.1:{server}/")


async def test_the_proxy_is_found_by_programs_and_refuses_what_is_not_allowed(tmp_path: Path) -> None:
    assert "elsewhere.example is not allowed here" in await answer(tmp_path, "proxy", "http://elsewhere.example/")
    assert "refused GET http://elsewhere.example/" in (tmp_path / "proxy" / "network.log").read_text()


async def test_a_tunnel_goes_by_the_proxy_too(tmp_path: Path) -> None:
    assert "403" in await answer(tmp_path, "proxy", "https://elsewhere.example/")


async def test_with_the_network_of_the_host_its_own_services_are_reached(tmp_path: Path, server: int) -> None:
    assert await answer(tmp_path, "host", f"http://127.0.0.1:{server}/") == "'hello'"


async def test_the_proxy_is_there_again_after_an_attach(tmp_path: Path) -> None:
    isolation = await hardened(network="proxy")
    first = Desk(tmp_path / "x", isolation=isolation)
    await first.run("1", stateful=True)
    await first.sandbox.close()
    desk = Desk(tmp_path / "x", isolation=isolation)
    try:
        await desk.sandbox.attach()
        ended = await desk.end(await desk.begin(ASK.format("http://elsewhere.example/"), cell="later"))
        assert "is not allowed here" in getattr(ended, "value", "")
    finally:
        await desk.sandbox.kill()
