"""The rehearsal model's rules, where the tour does not lead."""

from frontdesk.rehearsal import worker
from gateway.llm.model import Request, said, tool_call


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


def test_figures_that_were_corrected_while_they_were_computed_are_computed_again() -> None:
    """Also where the code had ended before it could be interrupted."""
    messages = [
        {"role": "user", "content": "[task from Ana] total February by region"},
        said("", [tool_call("c1", "execute_code", '{"code": "x"}')]),
        {"role": "tool", "tool_call_id": "c1", "content": "cell1 still runs"},
        {"role": "user", "content": "[Ana on web, Mon 09:00 UTC] net, not gross"},
        said("", [tool_call("c2", "interrupt_code", '{"cell": "cell1"}')]),
        {"role": "tool", "tool_call_id": "c2", "content": "cell1 ended: ok.\nTotal gross for February by region:"},
    ]
    (again,) = worker.decide(Request(messages=messages), 0.0).calls
    assert again.name == "execute_code"
    assert "Total net for February" in again.arguments
