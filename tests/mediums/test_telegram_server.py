"""That the Bot API of these tests is as strict as the real one, where mistakes would otherwise pass."""

import aiohttp
import pytest

from tests.servers.telegram import BotApi
from tests.servers.telegram_entities import BadEntities, parsed


@pytest.fixture
async def call(telegram):
    async with aiohttp.ClientSession() as session:

        async def call(method, **parameters):
            url = f"{telegram.server.base_url}/bot{telegram.server.token}/{method}"
            async with session.post(url, data=parameters) as answer:
                return await answer.json()

        yield call


@pytest.mark.parametrize(
    ("html", "description"),
    [
        ("ä <b>x", 'Can\'t find end tag corresponding to start tag "b" at byte offset 3'),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
        ("<p>x</p>", 'Unsupported start tag "p" at byte offset 0'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
    ],
)
def test_entities_that_cannot_be_parsed(html, description):
    with pytest.raises(BadEntities) as error:
        parsed(html)
    assert str(error.value) == description


def test_entities_are_taken_out():
    assert parsed('<b>a</b> <a href="x">&lt;&amp;&#33;</a> &nbsp;') == "a <&! &nbsp;"


@pytest.mark.parametrize(
    ("text", "ok"), [("😀" * 2048, True), ("😀" * 2048 + "a", False), (" \n ", False), ("a" * 4096 + "  ", True)]
)
async def test_lengths(telegram, call, text, ok):
    assert (await call("sendMessage", chat_id=telegram.ana.id, text=text))["ok"] is ok


async def test_an_update_stays_until_a_later_offset(telegram, call):
    telegram.ana.says("one")
    telegram.ana.says("two")
    first, second = (await call("getUpdates"))["result"]
    assert (await call("getUpdates", offset=first["update_id"]))["result"] == [first, second]
    assert (await call("getUpdates", offset=second["update_id"]))["result"] == [second]
    assert (await call("getUpdates"))["result"] == [second]


async def test_nothing_is_sent_to_strangers(call):
    assert (await call("sendMessage", chat_id=5, text="x"))["description"] == "Bad Request: chat not found"


async def test_waiting_for_what_never_comes_says_what_was_seen(telegram, call):
    await call("sendMessage", chat_id=telegram.ana.id, text="something else")
    with pytest.raises(AssertionError, match="something else"):
        await telegram.server.sees(telegram.ana, "hello", within_seconds=0.01)


async def test_two_servers_do_not_meet():
    async with BotApi() as one, BotApi() as other:
        assert one.port != other.port
