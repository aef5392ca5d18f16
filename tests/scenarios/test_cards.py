"""A status card on Telegram, in the whole gateway: it follows the work, and its buttons steer without a model."""

from actors.entries import Stopped
from tests.servers.openai import Error
from tests.servers.telegram import LOST_ANSWER, Refuse
from tests.staging.models import call

SPIN = """
from pathlib import Path
import time
print('begun', flush=True)
while not Path('go').exists(): time.sleep(0.01)
print('42 rows')
"""


def card(stage, words=""):
    """The newest card in Ana's chat that says this."""
    shown = [one for one in stage.telegram.shown if one.chat == stage.ana.phone.id and one.silent]
    return next((one for one in reversed(shown) if words in one.text), None)


async def shows(stage, words, *buttons):
    await stage.telegram.until(lambda: (one := card(stage, words)) and [text for text, _ in one.buttons] == [*buttons])
    return card(stage, words)


def let_go(stage):
    (stage.workspace("count") / "go").touch()


async def begin(stage):
    stage.desk.on("Count").acts("count", "Count the rows")
    stage.worker.on("Count the rows").runs(SPIN)
    said = stage.ana.telegram("Count.")
    await stage.until(lambda: stage.output("count", "cell1"))
    return said, await shows(stage, "count · working since", "Pause", "Stop")


async def test_a_card_is_pressed_and_follows_without_a_model(stage):
    said, one = await begin(stage)
    stage.ana.phone.presses(one, "Pause")
    one = await shows(stage, "count · paused", "Resume", "Stop")
    await stage.phase("count", "paused")
    stage.ana.phone.presses(one, "Resume")
    one = await shows(stage, "count · working", "Pause", "Stop")
    let_go(stage)
    await said.sees("42 rows")
    await shows(stage, "count · done")
    assert [shown.text for shown in stage.telegram.shown if shown.silent] == ["count · done\nCount the rows"]
    toasts = list(stage.telegram.toasts.values())
    assert toasts == ["paused", "resumed"]
    assert len(stage.desk.requests) == 2


async def test_two_presses_of_stop_are_one_stop(stage):
    said, one = await begin(stage)
    queries = [stage.ana.phone.presses(one, "Stop") for _ in range(2)]
    await said.sees("Stopped “count”.")
    await shows(stage, "count · stopped")
    late = stage.telegram.press(stage.ana.phone.user, one, one.buttons[0][1], {})
    await stage.telegram.until(lambda: late["id"] in stage.telegram.toasts)
    assert stage.telegram.toasts[late["id"]] == "That task has ended already."
    assert [query["id"] in stage.telegram.toasts for query in queries] == [True, True]
    assert len(stage.journals.action_entries(stage.view("count").key, lambda entry: isinstance(entry, Stopped))) == 1
    assert sum("Stopped “count”" in text for text in said.after()) == 1


async def test_somebody_elses_press_is_refused_politely(stage):
    said, one = await begin(stage)
    for who in (stage.ben, stage.gus):
        query = stage.telegram.press(who.phone.user, one, one.buttons[1][1], {})
        await stage.telegram.until(lambda query=query: query["id"] in stage.telegram.toasts)
        assert stage.telegram.toasts[query["id"]] == "That task is not known here any more."
    await stage.phase("count", "running")
    let_go(stage)
    await said.sees("42 rows")


async def test_an_option_is_pressed_and_the_work_goes_on(stage):
    stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
    question = call("request_clarification", question="Which Sarah?", options=["Lind", "Okafor"])
    stage.worker.on("Mail Sarah").calls(question)
    stage.worker.on("answered by Ana: Okafor").responds("Sent to Sarah Okafor")
    said = stage.ana.telegram("Mail Sarah.")
    one = await shows(stage, "mail · waits for an answer", "Lind", "Okafor", "Pause", "Stop")
    stage.ana.phone.presses(one, "Okafor")
    await said.sees("Sent to Sarah Okafor")
    await shows(stage, "mail · done")


async def test_a_flood_of_edits_is_one_edit_after_the_rest(stage):
    _, one = await begin(stage)
    stage.telegram.script("editMessageText", Refuse(429, "Too Many Requests: retry after 1", retry_after=1))
    stage.ana.phone.presses(one, "Pause")
    await stage.telegram.until(lambda: stage.telegram.called("editMessageText"))
    stage.ana.phone.presses(one, "Stop")
    await shows(stage, "count · stopped")
    tried = stage.telegram.called("editMessageText")
    assert tried[1].at - tried[0].at >= 0.99
    assert "paused" in tried[0].parameters["text"]
    assert card(stage).before == (one.text,)


async def test_a_card_whose_answer_is_lost_is_never_doubled(stage):
    stage.telegram.script("sendMessage", LOST_ANSWER)
    stage.desk.on("Count").acts("count", "Count the rows")
    stage.worker.on("Count the rows").responds("42 rows")
    await stage.ana.telegram("Count.").sees("42 rows")
    assert len([one for one in stage.telegram.shown if one.silent]) == 1


async def test_buttons_and_commands_work_while_the_model_is_down(stage):
    _, one = await begin(stage)
    stage.desk.server.script(lambda received: Error(500))
    await stage.ana.telegram("/status").sees("count")
    stage.ana.phone.presses(one, "Pause")
    one = await shows(stage, "count · paused", "Resume", "Stop")
    await stage.ana.telegram("resume").sees("Resumed: count.")
    await stage.ana.telegram("Pause.").sees("Paused: count.")
    await stage.ana.telegram("STOP").sees("Stopped “count”.")
    await stage.ana.telegram("help").sees("/status")


async def test_a_restart_edits_the_same_card(stage):
    stage.desk.on("Count").acts("count", "Count the rows")
    held = stage.worker.on("Count the rows").responds("42 rows").held()
    said = stage.ana.telegram("Count.")
    one = await shows(stage, "count · working since", "Pause", "Stop")
    await held.streaming()
    await stage.stop()
    stage.ana.phone.presses(one, "Pause")
    await stage.start()
    one = await shows(stage, "count · paused", "Resume", "Stop")
    held.release()
    stage.ana.phone.presses(one, "Resume")
    await said.sees("42 rows")
    await shows(stage, "count · done")
    assert len([shown for shown in stage.telegram.shown if shown.silent]) == 1
