"""The rehearsal model's rules, where the tour does not lead."""

from frontdesk.rehearsal import desk, worker
from gateway.llm.model import Request, said, tool_call

STATE = {"role": "user", "content": "(State at Mon 30 Nov 2026 08:05)\nIn flight:\na1 sales · awaiting_input, 2 s"}


def test_a_result_is_told_also_where_thanks_came_with_it() -> None:
    events = "[a1 sales responded · Mon 30 Nov 08:05] North: 42\n[m2 · web · Mon 30 Nov 08:05 · Ana] thanks!"
    told = desk.decide(Request(messages=[{"role": "user", "content": events}, STATE]))
    assert (told.text, told.calls) == ("North: 42", ())


def test_work_without_the_demos_figures_says_where_they_are() -> None:
    ended = "cell1 ended: error.\nPrimitiveError: there is no primitives.files.read; there are: act, notify"
    messages = [
        {"role": "user", "content": "[task from Ana] total February by region"},
        said("", [tool_call("c1", "execute_code", '{"code": "x"}')]),
        {"role": "tool", "tool_call_id": "c1", "content": ended},
    ]
    text = worker.decide(Request(messages=messages), 0.0).text
    assert "come with the demo (`make demo`)" in text
    assert "primitives" not in text
