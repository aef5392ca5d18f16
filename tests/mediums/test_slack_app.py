"""Slack in the whole gateway, from settings to what people see, with a model that follows a script; and the doctor."""

import asyncio
import contextlib
import re
from pathlib import Path

import pytest

from brain.hold import Pace
from frontdesk import doctor
from frontdesk.app import App, Parts
from gateway.config import load
from gateway.llm.model import Generation, RawCall
from mediums.slack.wire import BOT_EVENTS, MORE_SCOPES, NEEDED_SCOPES, THREAD_SCOPES
from tests.servers.slack import Refuse, SlackServer

ROOT = Path(__file__).parents[2]

CONFIG = """\
[model]
name = "rehearsal"

[store]
path = "frontdesk.db"

[mediums.slack]
bot_token = "{bot_token}"
app_token = "{app_token}"
api_base = "{api_base}"

[[contacts]]
name = "Ana"
role = "owner"
addresses = ["slack:T1/UANA"]

[[contacts]]
name = "Bo"
addresses = ["slack:T1/UBO"]
"""


class Echo:
    """Answers each turn with the last words that it was told, and remembers what it was asked."""

    name = "echo"

    def __init__(self):
        self.asked = []

    async def generate(self, request, on_spent=None):
        contents = [str(message.get("content", "")) for message in request.messages if message["role"] == "user"]
        self.asked.append("\n".join(contents))
        told = [line for content in contents for line in re.findall(r"say “(.*?)”", content)]
        return Generation(text=f"{told[-1]} & **done**" if told else "Hm?", finish="stop")


@pytest.fixture
async def server():
    async with SlackServer() as opened:
        yield opened


@pytest.fixture
def settings(server, tmp_path):
    config = tmp_path / "config.toml"
    tokens = {"bot_token": server.bot_token, "app_token": server.app_token}
    config.write_text(CONFIG.format(**tokens, api_base=server.api_base))
    return load(config, {})


@contextlib.asynccontextmanager
async def running(settings, model):
    parts = Parts(brain_model=model, actor_model=model, operator=lambda text: None, pace=Pace(quiet_seconds=0.05))
    app = App(settings, parts)
    task = asyncio.create_task(app.run())
    try:
        yield app
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_people_are_answered_where_they_asked(server, settings):
    ana, bo, general, model = server.person("Ana"), server.person("Bo"), server.channel("general"), Echo()
    async with running(settings, model) as app:
        ana.says("say “in private”")
        private = await server.sees(ana, "in private & done")
        root = bo.says(f"{server.mention} say “in public”", general)
        public = await server.sees(general, "in public & done")
        bo.says("say “once more”", general, thread=root)
        again = await server.sees(general, "once more & done")
        bo.says("say “nothing”, it is not for you", general)
        await server.until(lambda: not server.unconfirmed)
        assert app.mediums["slack-T1"].health().well
    assert private.thread is None
    assert public.thread == again.thread == root["ts"]
    assert len(server.shown) == 3
    assert not any("in private" in asked for asked in model.asked[1:]), "nothing private is in a shared place's prompt"


async def test_commands_without_a_model_work_on_slack(server, settings):
    ana, model = server.person("Ana"), Echo()
    async with running(settings, model):
        ana.says(f"{server.mention} /help")  # Slack keeps what begins with a slash for itself
        await server.sees(ana, "/status")
    assert model.asked == []


class Acting(Echo):
    """Hands the first message on as work, without a word; the worker never answers."""

    async def generate(self, request, on_spent=None):
        await super().generate(request, on_spent)
        names = {tool["function"]["name"] for tool in request.tools or ()}
        if {"act", "send_message"} <= names:
            return Generation(calls=(RawCall(name="act", arguments='{"name": "rome", "query": "Book Rome"}'),))
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_card_in_a_channel_is_for_whoever_may_and_needs_no_model(server, settings):
    ana, bo, general, model = server.person("Ana"), server.person("Bo"), server.channel("general"), Acting()
    async with running(settings, model):
        root = bo.says(f"{server.mention} Book Rome.", general)
        card = await server.sees(general, "rome · working since")
        assert (card.thread, card.buttons) == (root["ts"], ("Pause", "Stop"))
        ana.presses(card, "Pause")  # the owner may stop others' work, and no more
        await server.until(lambda: server.whispers)
        assert server.whispers == [(ana.id, general.id, "You may not do that: “rome” is Bo's.", root["ts"])]
        bo.presses(card, "Pause")
        card = await server.sees(general, "rome · paused")
        assert card.buttons == ("Resume", "Stop")
        bo.says("resume", general, thread=root)
        await server.sees(general, "Resumed: rome.")
        ana.presses(card, "Stop")
        await server.sees(general, "Stopped “rome”.")
        await server.sees(general, "rome · stopped")
    assert sum("rome ·" in one.text for one in server.shown) == 1, "one card, edited in place"


async def test_sl11_strangers_cause_no_model_call(server, settings):
    ana, shared, model = server.person("Ana"), server.channel("shared", external=True), Echo()
    eve = server.person("Eve", id="UBO", team="T9")
    async with running(settings, model):
        eve.says(f"{server.mention} say “all customers”", shared, user_team="T9")
        ana.says("say “mine”")
        await server.sees(ana, "mine")
        await server.until(lambda: not server.unconfirmed)
    assert server.seen_by(shared) == []
    assert len(model.asked) == 1


async def test_a_restart_answers_what_came_meanwhile_and_nothing_twice(server, settings):
    ana = server.person("Ana")
    for n in (1, 2):
        ana.says(f"say “round {n}”")
        async with running(settings, Echo()):
            await server.sees(ana, f"round {n}")
            await server.until(lambda: not server.unconfirmed)
    assert server.seen_by(ana) == ["round 1 & done", "round 2 & done"]


async def test_while_slack_does_not_say_whose_token_it_is_the_rest_runs(server, settings, caplog):
    ana = server.person("Ana")
    server.script("auth.test", Refuse("", 502))
    async with running(settings, Echo()):
        ana.says("say “at last”")
        await server.sees(ana, "at last")
    assert "slack: Slack answered auth.test with HTTP 502" in caplog.text


# --- the doctor ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scopes", "well", "text"),
    [
        (None, True, "this is @helper in Test Ltd (T1)"),
        (
            "chat:write,im:history,users:read,app_mentions:read",
            True,
            "this is @helper in Test Ltd (T1); without channels:history, groups:history, mpim:history it does not hear "
            "what follows in a thread; without im:write it cannot write first to somebody who has not written to it; "
            "without files:read it cannot take the files that people send; without files:write it cannot send files; "
            "without reactions:read it cannot see the emojis that people put to messages; without reactions:write it "
            "cannot put emojis to messages",
        ),
        (
            "chat:write",
            False,
            "this is @helper in Test Ltd (T1), without the scopes app_mentions:read, im:history, users:read: add them "
            "under OAuth & Permissions and reinstall the app",
        ),
    ],
)
async def test_the_doctor_looks_at_the_scopes(server, settings, scopes, well, text):
    server.scopes = scopes or server.scopes
    found = await doctor._slack(settings)
    assert (found.part, found.well, found.text) == ("slack", well, text)
    assert server.most_connected == 0


@pytest.mark.parametrize("key", ["bot_token", "app_token"])
async def test_the_doctor_tries_both_tokens(server, settings, key):
    setattr(server, key, "replaced")
    found = await doctor._slack(settings)
    assert not found.well
    assert f"(invalid_auth): set mediums.slack.{key}" in found.text


# --- the guide -------------------------------------------------------------------------------------------------------


def test_the_manifest_of_the_guide_asks_for_what_is_needed():
    guide = (ROOT / "docs/slack.md").read_text()
    manifest = guide.partition("```yaml")[2].partition("```")[0]
    scopes, events = (manifest.partition(f"{key}:\n")[2] for key in ("    bot", "bot_events"))
    listed = [re.findall(r"^ +- (\S+)$", part.partition("\nsettings")[0], re.MULTILINE) for part in (scopes, events)]
    assert listed == [sorted((*NEEDED_SCOPES, *THREAD_SCOPES, *MORE_SCOPES)), sorted(BOT_EVENTS)]
