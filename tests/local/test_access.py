"""Who may in, and what the server does with those who misbehave."""

import asyncio
import socket

import aiohttp
import pytest
import pytest_asyncio

from mediums.local import wire
from mediums.local.access import Access
from mediums.local.hub import Hub
from mediums.local.server import MAX_SOCKETS, CannotListen
from mediums.local.socket import Socket
from tests.local.house import TOKEN, house
from tests.patience import PATIENCE_SECONDS

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest_asyncio.fixture(loop_scope="session")
async def http(home):
    async with aiohttp.ClientSession(home.medium.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def test_nothing_is_shown_without_the_token(http):
    for path in ("/", "/app.js", "/socket", "/?token=wrong", "/anything"):
        async with http.get(path) as answer:
            assert answer.status == 401
            assert "holds the token" in await answer.text()
    async with http.get("/", headers={"Authorization": "Bearer wrong"}) as answer:
        assert answer.status == 401


async def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address(http):
    async with http.get(f"/?token={TOKEN}", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
    async with http.get("/") as answer:
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert TOKEN not in await answer.text()


async def test_files_are_those_of_the_page_only(http):
    for path in ("/app.js", "/style.css", "/icon.svg"):
        async with http.get(path, headers=BEARER) as answer:
            assert answer.status == 200
    for path in ("/nothing.js", "/..%2fadapter.py", "/%2e%2e/adapter.py"):
        async with http.get(path, headers=BEARER) as answer:
            assert answer.status == 404


async def refused(http, headers):
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await http.ws_connect("/socket", headers=headers)
    return error.value.status


async def test_a_foreign_name_or_page_reaches_nothing(http):
    async with http.get("/", headers={**BEARER, "Host": "evil.example:80"}) as answer:
        assert answer.status == 403
    async with http.get(f"/?token={TOKEN}") as answer:
        assert answer.status == 200  # the cookie is there now
    assert await refused(http, {"Origin": "https://evil.example"}) == 403
    assert await refused(http, {"Origin": "null"}) == 403
    assert await refused(http, {}) == 401
    async with http.ws_connect("/socket", headers={"Origin": str(http._base_url).rstrip("/")}):
        pass


@pytest.mark.parametrize(
    ("listen", "host", "ours"),
    [
        ("127.0.0.1", "127.0.0.1:8765", True),
        ("127.0.0.1", "localhost:8765", True),
        ("127.0.0.1", "[::1]:8765", True),
        ("127.0.0.1", "LOCALHOST:8765", True),
        ("127.0.0.1", "127.0.0.1:8766", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "192.168.1.5:8765", False),
        ("127.0.0.1", "localhost.evil.example:8765", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[", False),
        ("127.0.0.1", "a:b", False),
        ("0.0.0.0", "192.168.1.5:8765", True),
        ("0.0.0.0", "evil.example:8765", False),
        ("desk.example.org", "desk.example.org:8765", True),
    ],
)
def test_only_names_that_nobody_else_can_make_point_here_are_ours(listen, host, ours):
    assert (Access(listen, 8765, "t").misplaced({"Host": host}) is None) == ours


def test_there_is_no_room_without_a_token():
    with pytest.raises(ValueError, match=r"mediums\.web\.token"):
        Access("127.0.0.1", 8765, "")


async def test_who_says_no_hello_is_shown_out(http):
    for first in ("{}", '{"type": "say", "id": "aaaaaaaa", "text": "x"}', "not json", '{"type":"hello","after":-1}'):
        async with http.ws_connect("/socket", headers=BEARER) as ws:
            await ws.send_str(first)
            assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_nonsense_is_refused_and_the_connection_goes_on(http):
    async with http.ws_connect("/socket", headers=BEARER) as ws:
        await ws.send_str('{"type": "hello"}')
        await ws.send_str('{"type": "press", "id": "aaaaaaaa", "verb": "explode", "action": "a1"}')
        await ws.send_str("]")
        assert isinstance(wire.read_server((await ws.receive()).data), wire.Hello)
        first, second = [wire.read_server((await ws.receive()).data) for _ in range(2)]
        assert (first.id, second.id) == ("aaaaaaaa", "")


async def test_too_much_at_once_is_cut_off(http):
    async with http.ws_connect("/socket", headers=BEARER) as ws:
        await ws.send_str('{"type": "hello"}')
        await ws.receive()
        await ws.send_str("x" * (wire.MAX_FRAME_BYTES + 1))
        assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE
        assert ws.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_there_are_only_so_many_windows(http):
    opened = [await http.ws_connect("/socket", headers=BEARER) for _ in range(MAX_SOCKETS)]
    assert await refused(http, BEARER) == 503
    for ws in opened:
        await ws.close()


class StuckWs:
    """A client that says hello and never reads again."""

    def __init__(self):
        self.codes = []
        self.reading = asyncio.Event()

    async def receive_str(self, timeout):
        return '{"type": "hello"}'

    async def send_str(self, data):
        await asyncio.Event().wait()

    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.Event().wait()

    async def close(self, *, code, message):
        self.codes.append(code)


async def test_a_client_that_does_not_read_is_dropped():
    ws = StuckWs()
    await Socket(ws, Hub("Frontdesk", "Ana", ()), None, write_seconds=0.01).run()
    assert ws.codes == [aiohttp.WSCloseCode.GOING_AWAY]


async def test_an_address_in_use_says_which_key_mends_it(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotListen, match=r"mediums\.web\.listen"):
            async with house(tmp_path / "room.db", taken.getsockname()[1]):
                pass


async def test_an_open_page_does_not_hold_up_the_end(tmp_path):
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        house(tmp_path / "room.db") as home,
        aiohttp.ClientSession(home.medium.url) as http,
    ):
        ws = await http.ws_connect("/socket", headers=BEARER)
        await ws.send_str('{"type": "hello"}')
        await ws.receive()
