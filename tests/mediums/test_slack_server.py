"""That Slack's server of these tests is as strict as the real one, where mistakes would otherwise pass."""

import aiohttp
import pytest

from tests.servers.slack import Refuse, SlackServer
from tests.servers.slack_mrkdwn import notified, shown


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
async def call(slack, session):
    async def call(method, token=None, **parameters):
        headers = {"Authorization": f"Bearer {token or slack.server.bot_token}"}
        async with session.post(f"{slack.server.api_base}/{method}", json=parameters, headers=headers) as answer:
            return await answer.json()

    return call


@pytest.mark.parametrize(
    ("written", "read", "called"),
    [
        ("*a* _b_ ~c~ `d`", "a b c d", ()),
        ("2*3*4 snake_case_name", "2*3*4 snake_case_name", ()),
        ("*not\nbold*", "*not\nbold*", ()),
        ("<https://x.example|the doc> <https://y.example>", "the doc https://y.example", ()),
        ("hi <@U1> <!here> <!subteam^S1|@ops>", "hi @U1 !here @ops", ("U1", "here", "S1")),
        ("&amp;lt; &lt;@U1&gt; &copy;", "&lt; <@U1> &copy;", ()),
        ("```\n*a* <b\n```", "*a* <b", ()),
    ],
)
def test_how_a_text_is_read(written, read, called):
    assert shown(written) == read
    assert notified(written) == called


@pytest.mark.parametrize(
    ("method", "token", "error"),
    [
        ("auth.test", "xoxb-other", "invalid_auth"),
        ("auth.test", "app", "not_allowed_token_type"),
        ("apps.connections.open", None, "not_allowed_token_type"),
        ("chat.nothing", None, "unknown_method"),
    ],
)
async def test_tokens_and_methods(slack, call, method, token, error):
    token = slack.server.app_token if token == "app" else token
    assert (await call(method, token))["error"] == error


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"channel": "C404", "text": "x"}, "channel_not_found"),
        ({"channel": "DUANA", "text": " "}, "no_text"),
        ({"channel": "DUANA", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "DUANA", "text": "x", "thread_ts": 1767600010.0001}, "invalid_thread_ts"),
    ],
)
async def test_what_is_not_posted(slack, call, parameters, error):
    assert (await call("chat.postMessage", **parameters))["error"] == error
    assert slack.seen() == []


async def test_a_long_text_is_cut_anywhere(slack, call):
    await call("chat.postMessage", channel="DUANA", text="x" * 4001)
    assert [len(text) for text in slack.seen()] == [4000, 1]


async def test_an_envelope_comes_again_until_it_is_acknowledged(slack, session, call):
    slack.server.ack_seconds = 0.02
    opened = await call("apps.connections.open", slack.server.app_token)
    slack.ana.says("hello")
    async with session.ws_connect(opened["url"]) as socket:
        assert (await socket.receive_json())["type"] == "hello"
        first, second = await socket.receive_json(), await socket.receive_json()
        assert (first["retry_attempt"], second["retry_attempt"]) == (0, 1)
        assert first["payload"] == second["payload"]
        await socket.send_json({"envelope_id": second["envelope_id"]})
        await slack.settled()
    assert list(slack.server.acknowledged.values()) == [1]


async def test_a_ticket_lets_in_once_and_the_eleventh_is_sent_away(slack, session, call):
    sockets = []
    for _ in range(11):
        opened = await call("apps.connections.open", slack.server.app_token)
        sockets.append(await session.ws_connect(opened["url"]))
    greetings = [await socket.receive_json() for socket in sockets]
    assert [greeting["type"] for greeting in greetings] == ["hello"] * 10 + ["disconnect"]
    assert greetings[-1]["reason"] == "too_many_websockets"
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await session.ws_connect(opened["url"])
    for socket in sockets:
        await socket.close()


async def test_the_bots_own_messages_come_back_as_events(slack, call):
    await call("chat.postMessage", channel="DUANA", text="hello")
    assert [payload["event"]["bot_id"] for payload in slack.server.unconfirmed] == ["BBOT"]


async def test_scripted_answers_are_used_up(slack, call):
    slack.server.script("users.info", Refuse("fatal_error"))
    assert (await call("users.info", user="UANA"))["error"] == "fatal_error"
    assert (await call("users.info", user="UANA"))["user"]["profile"]["display_name"] == "Ana"
    assert (await call("conversations.info", channel="DUANA"))["channel"]["is_im"]


async def test_waiting_for_what_never_comes_says_what_was_seen(slack, call):
    await call("chat.postMessage", channel="DUANA", text="something else")
    with pytest.raises(AssertionError, match="something else"):
        await slack.server.sees(slack.ana, "hello", within_seconds=0.01)


async def test_two_servers_do_not_meet():
    async with SlackServer() as one, SlackServer() as other:
        assert one.port != other.port
