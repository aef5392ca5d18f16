"""What can be looked up at the terminal and on the page; nothing of it enters the conversation."""

import pytest


@pytest.mark.parametrize("where", ["terminal", "page"])
async def test_the_code_that_ran_and_what_is_in_flight(stage, where):
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.worker.on("Count the rows").runs("rows = 40 + 2\nprint(rows)")
    await stage.ana.terminal("Count.").sees("42")
    screen = getattr(stage, where)
    assert "```python\nrows = 40 + 2\nprint(rows)\n```" in await screen.look("code")
    assert "**count** (a1)" in await screen.look("code", "count")
    assert "**count** (a1), ready for more" in await screen.look("actions")
    assert stage.lane().turns == 2


async def test_a_look_at_what_is_not_there_says_what_there_is(stage):
    stage.desk.on("Count").acts("count", "Count the rows", saying="On it")
    stage.worker.on("Count the rows").responds("42")
    assert await stage.terminal.look("trace") == "Nothing was decided yet."
    await stage.ana.terminal("Count.").sees("42")
    assert await stage.terminal.look("trace", "m99") == "No turn about m99."
    assert await stage.terminal.look("code", "a9") == "There is no action a9. There are: a1 count."
    assert await stage.terminal.look("code") == "**count** (a1) has not run any code."


async def test_the_panel_shows_an_action_as_it_stands(stage):
    stage.desk.on("Mail").acts("mail", "Mail Sarah", saying="On it")
    stage.worker.on("Mail Sarah").calls(stage.call("request_clarification", question="Which Sarah?", options=["Lind"]))
    stage.worker.on("answered by Ana").responds("Sent")
    await stage.ana.terminal("Mail Sarah.").sees("Which Sarah?")
    shown = await stage.page.until(lambda: [one for one in stage.page.actions if one.questions])
    assert (shown[0].name, shown[0].phase, shown[0].questions[0].options) == ("mail", "running", ("Lind",))
    stage.page.client.press("answer", shown[0].action, question=shown[0].questions[0].question, text="Lind")
    await stage.ana.sees("Sent")
    await stage.page.until(lambda: [one for one in stage.page.actions if one.phase == "awaiting_input"])
