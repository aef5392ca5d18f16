"""The process ends in the middle: everything is answered or explained, once, and a crash loop costs little."""

import asyncio
import os
import signal
import time
from contextlib import suppress

import pytest

from gateway.broker.sqlite import SqliteBroker
from gateway.llm.model import Generation
from mediums.local import wire
from tests.servers.openai import Hold, Reply, ScriptedOpenAI, call
from tests.store.conftest import eventually
from tests.store.gateway import PATIENCE_SECONDS, gateway, heard, is_actor, told
from tests.store.stage import FakePlatform, said, stage

STOP_SECONDS = 30.0  # 2 on a quiet machine


@pytest.fixture
async def server():
    async with ScriptedOpenAI() as made:
        yield made


async def test_a_kill_during_a_generation_costs_one_more_and_no_answer(tmp_path, server):
    forever = asyncio.Event()
    server.script(lambda request: Hold(forever) if len(server.requests) == 1 else Reply(text="Four."))
    async with gateway(tmp_path, server) as g, g.client() as client:
        await g.start()
        client.say("What is two and two?")
        await server.arrived(1)
        await g.kill()
        await g.start()
        assert await told(client, lambda text: True) == "Four."
    assert len(server.requests) == 2


async def test_a_message_that_kills_the_process_is_put_aside_and_does_not_burn_money(tmp_path, server):
    async with gateway(tmp_path, server) as g, g.client() as client:

        def script(request):
            if "poison" in heard(request):
                g.shoot()
                return Hold(asyncio.Event())
            return Reply(text="Well.")

        server.script(script)
        await g.start()
        client.say("poison")
        for _ in range(3):
            await g.died()
            await g.start()
        text = await told(client, lambda text: True)
        assert text.startswith("I could not deal with your last message (“poison”)")
        client.say("How are you?")
        assert await told(client, lambda text: "aside" not in text) == "Well."
        assert "set aside after 3 unclean ends" in g.errors
    assert sum("poison" in heard(request) for request in server.requests) == 3


@pytest.fixture
async def mute():
    """A platform that takes every connection and says nothing; its port."""
    connections = []

    async def taken(reader, writer):
        connections.append(writer)
        await reader.read()

    listening = await asyncio.start_server(taken, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    for writer in connections:
        writer.close()
    listening.close()


@pytest.mark.parametrize("what", ["model", "sandbox", "medium"])
async def test_sigterm_ends_it_within_its_bound_and_cleanly(tmp_path, server, mute, what):
    forever = asyncio.Event()
    more = f'[mediums.telegram]\ntoken = "8123:abc"\napi_base = "http://127.0.0.1:{mute}"' if what == "medium" else ""

    def script(request):
        if what == "model":
            return Hold(forever)
        if not is_actor(request):
            return Reply(calls=[call("act", query="wait", name="wait")])
        return Reply(
            calls=[call("execute_code", code="import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(1)")]
        )

    server.script(script)
    async with gateway(tmp_path, server, more) as g, g.client() as client:
        await g.start()
        if what != "medium":
            client.say("Do it.")
            await server.arrived(1 if what == "model" else 2)
            await asyncio.sleep(0.5 if what == "sandbox" else 0)
        assert await g.stop() < STOP_SECONDS
        assert g.exit_code == 0
        assert "Traceback" not in g.errors


async def test_a_lost_sandbox_is_named_to_the_model_and_the_work_goes_on(tmp_path, server):
    def script(request):
        if not is_actor(request):
            return (
                Reply(calls=[call("act", query="count", name="count")])
                if "Count" in heard(request)
                else Reply(text=heard(request))
            )
        if "lost with its sandbox" in request.text:
            return Reply(text="The sandbox was lost while it counted; it counts anew.")
        code = "total = 7\nopen('begun', 'w').close()\nimport time\ntime.sleep(600)"
        return Reply(calls=[call("execute_code", code=code, stateful=True)])

    server.script(script)
    async with gateway(tmp_path, server) as g, g.client() as client:
        await g.start()
        client.say("Count.")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not list(tmp_path.glob("store.db.actions/*/workspace/begun")):
                await asyncio.sleep(0.02)
        await g.kill()
        for process in g.sandboxes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await g.start()
        said = await told(client, lambda text: "counts anew" in text)
        assert said.count("counts anew") == 1
    work = [request for request in server.requests if is_actor(request)]
    assert "variables of the stateful session are gone" in work[-1].text
    assert server.complaints == []


async def test_a_send_that_nobody_knows_the_end_of_is_told_once_where_it_belongs(tmp_path):
    """The platform took the request, and the process was gone before it answered."""
    broker = SqliteBroker(tmp_path / "s.db")
    platform, model = FakePlatform(), Teller()
    platform.script["42"] = [asyncio.Event().wait]
    async with stage(tmp_path / "s.db", model, ["42", "43"], [platform], broker=broker) as s:
        await s.hears(said("42", "hello.", 1))
        await eventually(lambda: platform.tried)
        broker.kill()
    await broker.close()
    for number in (1, 2):  # and another restart: it is not told again
        async with stage(tmp_path / "s.db", model, ["42", "43"], [platform]) as s:
            await s.hears(said("43", "marker.", number))
            await eventually(lambda number=number: platform.texts("42") and len(platform.texts("43")) == number)
            assert not any(lane.journal.state.undecided for lane in s.manager.lanes())
            await eventually(lambda s=s: not any(outcomes(lane).count(None) for lane in s.manager.lanes()))
    assert platform.texts("42") == ["I do not know whether “answer” reached you."]
    assert model.reported == 1


def outcomes(lane):
    return [send.outcome for send in lane.journal.state.sends.values()]


class Teller:
    name = "teller"
    reported = 0

    async def generate(self, request, on_spent=None):
        unknown = "[a send unknown" in request.messages[-2]["content"]
        self.reported += unknown
        return Generation(text="I do not know whether “answer” reached you." if unknown else "answer", finish="stop")


# --- kill -9, anywhere -----------------------------------------------------------------------------------------------


def conversation(server):
    """Work that takes a while, and a desk that passes on what it hears: each answer names what it answers."""

    def script(request):
        if is_actor(request):
            if any(message["role"] == "tool" for message in request.messages):
                return Reply(text="The total is 42.", delay_seconds=0.05)
            return Reply(
                calls=[call("execute_code", code="import time\ntime.sleep(0.2)\nprint(6 * 7)")], delay_seconds=0.05
            )
        events = heard(request)
        words = [word for word in ("hello", "add it up", "42", "lost", "could not go on") if word in events]
        calls = [call("act", query="add it up", name="sum")] if "add it up" in words else []
        return Reply(text=f"heard {', '.join(words) or 'something'}", calls=calls, delay_seconds=0.05)

    server.script(script)


async def killed_once(tmp_path, server, number, after_seconds):
    conversation(server)
    folder = tmp_path / str(number)
    folder.mkdir()
    async with gateway(folder, server) as g, g.client() as client:
        await g.start()
        client.say("hello.")
        client.say("add it up.")
        await asyncio.sleep(after_seconds)
        await g.kill()
        await g.start()
        texts = await everything_told(client, ("hello", "add it up", "42"))
        took = time.monotonic() - g.started_at
        client.say("hello again.")
        texts += await everything_told(client, ("hello",))
        await g.stop()
    assert server.complaints == []
    assert len(texts) == len({key for key, _ in texts}), texts
    assert sum("42" in text for _, text in texts) == 1, texts
    return took


async def everything_told(client, words):
    """What the assistant posted until all of these words were in it."""
    texts = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in client:
            if isinstance(event, wire.Post) and event.author == "assistant":
                texts.append((event.id, event.text))
                if all(any(word in text for _, text in texts) for word in words):
                    return texts
    raise AssertionError(texts)


@pytest.mark.parametrize("number", range(3))
async def test_a_kill_in_a_task_loses_and_doubles_nothing(tmp_path, server, number):
    await killed_once(tmp_path, server, number, 0.12 * number)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(100))
async def test_a_hundred_kills_lose_and_double_nothing_and_are_over_in_three_seconds(tmp_path, server, number):
    """From the start of the new process to the last answer, the rest of the work included."""
    assert await killed_once(tmp_path, server, number, 0.01 * number) < 3.0
