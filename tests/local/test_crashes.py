"""The gateway is killed in the middle: what a person said arrives, and arrives once."""

import asyncio
import socket
import sys
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect

from mediums.local import wire
from mediums.local.client import LocalClient
from tests.local.house import TOKEN
from tests.local.test_page import say, words
from tests.local.test_room import is_post, posts, until

POINTS = ("before it is published", "published", "posted")


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@asynccontextmanager
async def gateway(tmp_path, port):
    """A process of its own, killed at the end if it has not killed itself."""
    arguments = ["-m", "tests.local.house", str(tmp_path / "room.db"), str(port)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert await process.stdout.readline() == b"open\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("point", POINTS)
async def test_a_message_said_into_a_crash_arrives_once(tmp_path, port, point):
    text = f"die {point}"
    async with LocalClient(f"http://127.0.0.1:{port}", TOKEN) as client:
        async with gateway(tmp_path, port) as first:
            client.say(text)
            assert await first.wait() < 0
        async with gateway(tmp_path, port):
            seen = await until(client, is_post(text, "assistant"))
            client.say("after")
            seen += await until(client, is_post("after", "assistant"))
    expected = [("you", text), ("assistant", text), ("you", "after"), ("assistant", "after")]
    assert sorted(posts(seen)) == sorted(expected)
    assert client.unsent == ()


async def test_the_page_says_it_again_and_shows_it_once(tmp_path, port, browser):
    page = await browser.new_page()
    said = [f"die {point}" for point in POINTS]
    for text in said:
        async with gateway(tmp_path, port) as process:
            if page.url == "about:blank":
                await page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
            await expect(page.locator("#connection")).to_have_text("connected")
            await say(page, text)
            assert await process.wait() < 0
    await expect(page.locator("#connection")).to_have_text("reconnecting…")
    async with gateway(tmp_path, port):
        for _ in range(2):
            for author in ("you", "assistant"):
                await expect(words(page, author)).to_have_count(len(said))
                assert sorted(await words(page, author).all_inner_texts()) == sorted(said)
            await expect(page.locator(".pending")).to_have_count(0)
            await page.reload()


async def test_what_was_said_while_it_was_away_survives_the_page_too(tmp_path, port, browser):
    context = await browser.new_context()
    page = await context.new_page()
    async with gateway(tmp_path, port):
        await page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
        await expect(page.locator("#connection")).to_have_text("connected")
    await expect(page.locator("#connection")).to_have_text("reconnecting…")
    await say(page, "into the void")
    await expect(page.locator(".pending .mark")).to_have_text("waits for the connection")
    await page.close()
    async with gateway(tmp_path, port):
        page = await context.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        await expect(words(page, "you")).to_have_text(["into the void"])
        await expect(words(page, "assistant")).to_have_text(["into the void"])
        assert await page.evaluate("Object.keys(localStorage).length") == 0


async def test_a_cut_connection_is_made_again_and_nothing_is_shown_twice(home, client, page):
    client.say("one")
    seen = await until(client, is_post("one", "assistant"))
    await expect(words(page, "assistant")).to_have_text(["one"])
    for connection in home.medium._server._runner.server.connections:
        connection.transport.abort()
    client.say("two")
    seen += await until(client, is_post("two", "assistant"))
    assert posts(seen) == [("you", "one"), ("assistant", "one"), ("you", "two"), ("assistant", "two")]
    assert sum(isinstance(event, wire.Hello) for event in seen) == 2
    await expect(words(page, "assistant")).to_have_text(["one", "two"])
