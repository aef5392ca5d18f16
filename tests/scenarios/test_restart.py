"""The gateway is killed, or stopped, in the middle of anything: the conversation goes on, nothing lost or doubled."""

import asyncio
import os
import signal
import sys
import time

import pytest

from frontdesk.demo import outbox
from gateway.events import ActionFact, ActionResponded, MessageReceived
from gateway.journal import Released
from tests.servers.telegram import SILENCE
from tests.stage import open_stage
from tests.staging.houses import Apart, processes_in
from tests.staging.models import call

SPIN = """\
import time
from pathlib import Path
Path({began!r}).touch()
while not Path({go!r}).exists():
    time.sleep(0.01)
print("42 rows")
"""


@pytest.fixture
def counting(apart):
    apart.desk.on("Count").acts("count", "Count the rows", saying="On it")
    apart.worker.on("Count the rows").runs(SPIN.format(began="began", go="go"))
    return apart


async def begin(stage):
    count = stage.ana.telegram("Count.")
    await count.sees("On it")
    await stage.until(lambda: (stage.workspace("count") / "began").exists())  # noqa: PLW0108 - there is none at first
    return count


async def test_running_code_is_joined_after_a_kill_and_its_result_told_once(counting):
    stage = counting
    count = await begin(stage)
    await stage.kill()
    (stage.workspace("count") / "go").touch()
    await stage.start()
    await count.sees("42 rows")
    stage.desk.on("Anything else").replies("No, that was all")
    await stage.ana.telegram("Anything else?").sees("No, that was all")
    assert count.after() == ["On it", "42 rows", "No, that was all"]
    assert len(stage.worker.requests) == 2


async def test_code_that_died_with_the_gateway_is_reported_as_lost(counting):
    stage = counting
    lost = stage.worker.on("is lost").responds("I lost the count")
    count = await begin(stage)
    await stage.kill()
    for pid in processes_in(stage.folder):
        os.kill(pid, signal.SIGKILL)
    await stage.start()
    await count.sees("I lost the count")
    assert "What it had done by then is not known" in (await lost.asked()).text


async def test_a_message_that_was_being_decided_is_answered_once_after_a_kill(apart):
    first = apart.desk.on("Hello").replies("Good morning").held().replies("Good morning")
    hello = apart.ana.telegram("Hello.")
    await first.streaming()
    await apart.kill()
    await apart.start()
    await hello.sees("Good morning")
    assert hello.after() == ["Good morning"]


async def test_a_page_that_is_open_hears_on_after_a_kill(apart):
    first = apart.desk.on("Hello").replies("Good morning").held().replies("Good morning")
    hello = apart.ana.web("Hello.")
    await first.streaming()
    await apart.kill()
    apart.ana.web("And goodbye.")
    apart.desk.on("Hello", "goodbye").replies("Good day")
    apart.desk.on("goodbye").replies("Bye")
    await apart.start()
    await apart.page.until(lambda: hello.after() in (["Good day"], ["Good morning", "Bye"]))
    assert apart.page.connections == 2


async def test_what_is_said_while_it_is_away_is_answered_when_it_is_back(apart):
    apart.desk.on("Hello").replies("Good morning")
    await apart.kill()
    hello = apart.ana.telegram("Hello.")
    await apart.start()
    await hello.sees("Good morning")
    assert hello.after() == ["Good morning"]


async def test_a_streaming_worker_is_asked_again_after_a_kill_and_responds_once(apart):
    apart.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    stream = apart.worker.on("Book Rome").responds("Booked").held().responds("Booked")
    book = apart.ana.telegram("Book Rome.")
    await book.sees("On it")
    await stream.streaming()
    await apart.kill()
    await apart.start()
    await book.sees("Booked")
    assert book.after() == ["On it", "Booked"]
    assert stream.requests[0].body == stream.requests[1].body
    facts = apart.journals.words(f"evt.act.{apart.view('booking').key}", ActionFact)
    assert len([fact for fact in facts if isinstance(fact, ActionResponded)]) == 1


MAIL = """\
name = await primitives.request_clarification("Which Sarah?")
print(await primitives.mail.send(to=f"{name}@example.org", subject="Rome", text="Booked."))
"""


async def test_an_answer_goes_on_from_the_open_question_after_a_kill_and_its_effect_happens_once(tmp_path, helper):
    command = (sys.executable, "-m", "frontdesk.demo.gateway", str(tmp_path), "0")
    (tmp_path / "files").mkdir()
    async with open_stage(tmp_path, None, start=False) as stage:
        stage.house = Apart(tmp_path / "config.toml", command)
        await stage.start()
        stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
        stage.desk.on("lind").answers("mail", "lind")
        stage.worker.on("Mail Sarah").runs(MAIL, stateful=True)
        mail = stage.ana.telegram("Mail Sarah.")
        await mail.sees("Which Sarah?")
        await stage.kill()
        await stage.start()
        assert list(stage.view("mail").questions) == ["question2"]
        await stage.ana.telegram("lind.").sees("In the demo's outbox: a mail to lind@example.org.")
        await stage.kill()
        await stage.start()
        stage.desk.on("Anything else").replies("No, that was all")
        await stage.ana.telegram("Anything else?").sees("No, that was all")
        assert [letter["to"] for letter in outbox.letters(tmp_path / outbox.NAME)] == ["lind@example.org"]
        assert mail.after().count("Which Sarah?") == 1


async def test_kills_again_and_again_lose_and_double_nothing(apart):
    perhaps = "it may not have reached you"  # for a kill in the middle of a send
    apart.desk.told("a send unknown").replies(perhaps)
    for n in range(3):
        apart.desk.on(f"number {n}").replies(f"answer {n}")
        said = apart.ana.telegram(f"number {n}.")
        await apart.until(lambda n=n: len(apart.journals.words("evt.medium.telegram%", MessageReceived)) > n)
        await apart.kill()
        await apart.start()
        await apart.until(said.after)
        assert said.after()[0] in (f"answer {n}", perhaps)
    shown = apart.ana.on_telegram()
    assert all(shown.count(f"answer {n}") <= 1 for n in range(3))


async def test_sigterm_stops_cleanly_and_soon(counting):
    stage = counting
    await begin(stage)
    await stage.until(lambda: all_told(stage))
    began = time.monotonic()
    await stage.stop()
    assert time.monotonic() - began < 30  # 2 on a quiet machine
    assert stage.house.process.returncode == 0
    assert "Traceback" not in stage.house.log.read_text()
    for subject in stage.journals.subjects("log.%"):
        assert type_of(stage.journals.stored(subject)[-1].data) == Released.__name__, subject
    await stage.start()
    (stage.workspace("count") / "go").touch()
    await stage.ana.sees("42 rows")


def all_told(stage) -> bool:
    """Nothing is being written any more."""
    lane, (outbox_log,) = stage.lane(), stage.journals.subjects("log.out.telegram%")
    sent = all(send.outcome for send in lane.sends.values())
    emitted = type_of(stage.journals.stored(outbox_log)[-1].data) == "Emitted"
    return sent and emitted and not lane.outgoing and not stage.action("count").outgoing


def type_of(data: bytes) -> str:
    return data.decode().rpartition('"type":"')[2].partition('"')[0]


async def test_a_reminder_outlives_a_kill_and_comes_once(apart):
    reminder = call("remind", text="Call Eva", at="1s")
    apart.desk.on("Remind me").calls(reminder, saying="I will")
    apart.desk.told("the reminder that Ana asked for").replies("It is time: call Eva")
    asked = apart.ana.telegram("Remind me to call Eva.")
    await asked.sees("I will")
    await apart.kill()
    await apart.start()
    await asked.sees("call Eva")
    apart.desk.on("Thanks").replies("Gladly")
    await apart.ana.telegram("Thanks.").sees("Gladly")
    assert asked.after() == ["I will", "It is time: call Eva", "Gladly"]


async def test_a_message_that_was_on_its_way_at_a_kill_is_not_sent_again_blindly(apart):
    apart.desk.on("Hello").replies("Good morning")
    apart.desk.told("a send unknown").replies("My last answer may not have reached you")
    apart.telegram.script("sendMessage", SILENCE)
    hello = apart.ana.telegram("Hello.")
    await apart.telegram.until(lambda: apart.telegram.called("sendMessage"))
    await apart.kill()
    await apart.start()
    await hello.sees("may not have reached you")
    assert hello.after() == ["My last answer may not have reached you"]


async def test_the_command_line_looks_into_the_running_gateway(apart):
    apart.desk.on("Count").acts("count", "Count the rows", saying="On it")
    apart.worker.on("Count the rows").responds("42 rows")
    await apart.ana.telegram("Count.").sees("42 rows")
    assert "**count** (a1), ready for more" in await frontdesk(apart, "actions")
    trace = await frontdesk(apart, "trace", "m1")
    assert "**started** count for Ana: Count the rows" in trace
    assert "**said** on telegram, sent: On it" in trace


async def frontdesk(stage, *words: str) -> str:
    command = (sys.executable, "-m", "frontdesk", words[0], "--config", str(stage.folder / "config.toml"), *words[1:])
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode()
