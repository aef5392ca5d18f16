"""Slack calling over HTTP: signed as Slack signs, stored before it is answered, and heard once."""

import asyncio
import json
import socket
import time
from urllib.parse import urlencode

import aiohttp
import pytest
import pytest_asyncio
from slack_sdk.signature import SignatureVerifier

from gateway import cards
from gateway.events import ControlPressed
from mediums.slack import SlackMedium
from mediums.slack.door import Door
from tests.mediums.stages.slack import QUICK
from tests.mediums.waiting import Inbox, eventually, receiving

SECRET = "synthetic-signing-secret"


class Caller:
    """Signs as Slack does: https://docs.slack.dev/authentication/verifying-requests-from-slack"""

    def __init__(self, port, session):
        self.url, self._session = f"http://127.0.0.1:{port}/slack/events", session

    async def events(self, payload, **more):
        return await self.send(json.dumps(payload), "application/json", **more)

    async def form(self, **fields):
        return await self.send(urlencode(fields), "application/x-www-form-urlencoded")

    async def send(self, body, kind, secret=SECRET, age=0, headers=None):
        at = str(int(time.time()) - age)
        signature = SignatureVerifier(secret).generate_signature(timestamp=at, body=body)
        signed = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature, "Content-Type": kind}
        async with self._session.post(self.url, data=body, headers=signed if headers is None else headers) as answer:
            return answer.status, await answer.text()


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def medium(slack, port):
    door = Door(host="127.0.0.1", port=port, signing_secret=SECRET)
    made = SlackMedium(slack.server.bot_token, door, slack.server.team, slack.server.api_base, QUICK)
    slack.made.append(made)
    return made


@pytest_asyncio.fixture
async def caller(port):
    async with aiohttp.ClientSession() as session:
        yield Caller(port, session)


def said(slack, text):
    slack.ana.says(text)
    return slack.server.unconfirmed[-1]


async def test_what_is_said_is_heard_and_answered_where_it_was_said(slack, medium, caller):
    inbox = Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        assert await caller.events(said(slack, "hello")) == (200, "")
        (fact,) = await inbox.has(1)
        await medium.send(fact.route, "hello Ana", "s/1/0")
    assert (fact.text, str(fact.author.address), fact.private) == ("hello", "slack:T1/UANA", True)
    assert slack.seen() == ["hello Ana"]


async def test_it_is_confirmed_when_it_is_stored_and_not_before(slack, medium, caller):
    stored = asyncio.Event()

    async def publish(fact):
        await stored.wait()

    async with receiving(medium, publish):
        await eventually(lambda: medium.health().well)
        answering = asyncio.create_task(caller.events(said(slack, "hello")))
        await eventually(lambda: medium._publishing_since is not None)
        assert not answering.done()
        stored.set()
        assert await answering == (200, "")


async def test_what_slack_sends_again_is_heard_once(slack, medium, caller):
    inbox, payload = Inbox(), said(slack, "hello")
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        for _ in range(2):
            assert (await caller.events(payload))[0] == 200
        assert (await caller.events(said(slack, "next")))[0] == 200
    assert inbox.texts == ["hello", "next"]


@pytest.mark.parametrize(
    "how", [{"secret": "another"}, {"age": 600}, {"headers": {"Content-Type": "application/json"}}]
)
async def test_who_cannot_sign_as_slack_is_refused(slack, medium, caller, how):
    inbox = Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        assert (await caller.events(said(slack, "hello"), **how))[0] == 401
        assert (await caller.events({"type": "url_verification", "challenge": "c"}, **how))[0] == 401
    assert inbox.facts == []


async def test_slack_finds_out_that_the_address_is_ours(medium, caller):
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        assert await caller.events({"type": "url_verification", "challenge": "3eZbrw1a"}) == (200, "3eZbrw1a")


async def test_a_press_comes_as_a_form(slack, medium, caller):
    inbox = Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await medium.send(slack.route, "count, running", "s/1/0")
        button = {"type": "button", "action_id": "pause", "value": cards.press("pause", "a1")}
        pressed = slack.server.press(slack.ana, slack.server.shown[-1], button)
        assert (await caller.form(payload=json.dumps(pressed)))[0] == 200
    (fact,) = inbox.facts
    assert isinstance(fact, ControlPressed)
    assert (fact.verb, fact.action, str(fact.author.address)) == ("pause", "a1", "slack:T1/UANA")


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"type": "url_verification"}'])
async def test_what_is_not_shaped_as_documented_is_refused(medium, caller, body):
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        assert (await caller.send(body, "application/json"))[0] == 400
        assert (await caller.form(command="/weather"))[0] == 200


async def test_an_address_that_is_taken_is_said_with_the_mend(medium, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        async with receiving(medium, Inbox()):
            await eventually(lambda: "Set mediums.slack.listen" in medium.health().text)
