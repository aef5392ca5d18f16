"""Tools called by a JSON schema, for a model that knows no calls."""

import itertools
import json

import pytest

from actors.tools import TOOLS
from gateway.llm.by_schema import BySchema
from gateway.llm.model import Generation, Message, Request, said, tool_call


class Answering:
    name = "small"

    def __init__(self, text: str, cut: bool = False) -> None:
        self._answer = Generation(text=text, finish="stop", cut=cut)

    async def generate(self, request: Request, on_spent: object = None) -> Generation:
        self.asked = request
        return self._answer


START: list[Message] = [{"role": "system", "content": "You work."}, {"role": "user", "content": "Total February"}]
CODE = tool_call("c1", "execute_code", json.dumps({"code": "print(1)"}))
RAN: list[Message] = [*START, said("I'll look.", [CODE]), {"role": "tool", "tool_call_id": "c1", "content": "1"}]


async def test_an_answer_of_the_schema_is_a_call() -> None:
    model = Answering('{"tool": "execute_code", "code": "print(\\"ü\\")", "stateful": true}')
    made = await BySchema(model).generate(Request(messages=START, tools=TOOLS))
    (call,) = made.calls
    assert (call.name, call.parsed(), made.text) == ("execute_code", {"code": 'print("ü")', "stateful": True}, "")
    assert model.asked.tools == []
    assert model.asked.response_schema is not None
    names = [one["properties"]["tool"]["const"] for one in model.asked.response_schema["anyOf"]]
    assert names == ["execute_code", "notify", "request_clarification", "act", "respond"], (
        "nothing runs that has a name"
    )
    assert "execute_code" in model.asked.messages[0]["content"]


async def test_only_what_has_been_named_can_be_called_by_name() -> None:
    model = Answering('{"tool": "continue_code", "cell": "cell1"}')
    running = {"role": "tool", "tool_call_id": "c1", "content": "cell1 still runs. Output so far:\n(none)"}
    await BySchema(model).generate(Request(messages=[*RAN[:-1], running], tools=TOOLS))
    assert model.asked.response_schema is not None
    shapes = {one["properties"]["tool"]["const"]: one["properties"] for one in model.asked.response_schema["anyOf"]}
    assert shapes["continue_code"]["cell"] == {"enum": ["cell1"]}
    assert "steer" not in shapes


@pytest.mark.parametrize("text", ["It is 5.", "[]", '{"code": "x"}', '{"tool": "execute_code", "code": "pri'])
async def test_anything_else_stays_a_text(text: str) -> None:
    made = await BySchema(Answering(text)).generate(Request(messages=START, tools=TOOLS))
    assert (made.text, made.calls) == (text, ())


async def test_a_call_that_was_cut_off_does_not_run() -> None:
    made = await BySchema(Answering('{"tool": "respond", "text": "5"}', cut=True)).generate(
        Request(messages=START, tools=TOOLS)
    )
    assert made.calls[0].parsed() is None


async def test_earlier_calls_are_written_as_the_model_would_and_each_request_extends_the_last() -> None:
    model = Answering('{"tool": "respond", "text": "1"}')
    shown = []
    for messages in (START, RAN, [*RAN, {"role": "user", "content": "net, not gross"}]):
        await BySchema(model).generate(Request(messages=messages, tools=TOOLS))
        shown.append(model.asked.messages)
    for before, after in itertools.pairwise(shown):
        assert after[: len(before)] == before
    assert [message["role"] for message in shown[1]] == ["system", "user", "assistant", "assistant", "user"]
    assert json.loads(shown[1][3]["content"]) == {"tool": "execute_code", "code": "print(1)"}
    assert not any("tool_calls" in message for message in shown[-1])


async def test_where_no_tool_may_be_called_the_answer_is_free() -> None:
    model = Answering("I am half way.")
    made = await BySchema(model).generate(Request(messages=RAN, tools=TOOLS, tool_choice="none"))
    assert made.text == "I am half way."
    assert model.asked.response_schema is None
    assert model.asked.tools == []
