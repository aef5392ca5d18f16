"""Tools called in text, for a model that knows no calls."""

import itertools
import json
from typing import Any

import pytest

from actors.tools import TOOLS
from gateway.llm.in_text import InText
from gateway.llm.model import Generation, Message, Request, Usage, said, tool_call


class Answering:
    """With these texts, one after the other."""

    name = "small"

    def __init__(self, *texts: str, cut: bool = False) -> None:
        self._texts, self._cut = list(texts), cut
        self.asked: list[Request] = []

    async def generate(self, request: Request, on_spent: object = None) -> Generation:
        self.asked.append(request)
        usage = Usage(prompt_tokens=100, completion_tokens=10)
        return Generation(text=self._texts.pop(0), finish="stop", cut=self._cut, usage=usage)


def ran(code: str, result: str, call: str = "c1") -> list[Message]:
    made = tool_call(call, "execute_code", json.dumps({"code": code}))
    return [said("", [made]), {"role": "tool", "tool_call_id": call, "content": result}]


START: list[Message] = [{"role": "system", "content": "You work."}, {"role": "user", "content": "[task from Ana] Add"}]
DONE = [*START, *ran("print(1)", "cell1 ended: ok.\n1")]
WORD: Message = {"role": "user", "content": "[Ana] net, not gross"}


async def made(model: Answering, messages: list[Message], **more: Any) -> Generation:
    return await InText(model).generate(Request(messages=messages, tools=TOOLS, **more))


def code_of(generation: Generation) -> object:
    (call,) = generation.calls
    assert call.name == "execute_code"
    return (call.parsed() or {})["code"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('```python\nprint("ü")\n```', 'print("ü")'),
        ("First I look:\n```py\nif x:\n    y()\n```\nThis prints 5.\n```python\nz()\n```", "if x:\n    y()"),
        ("```python\nfence = '```'\nprint(1)\n```", "fence = '```'\nprint(1)"),
        ("```python\nprint(1)", "print(1)"),
        ("```Python print(1) ```", "print(1)"),
    ],
)
async def test_python_in_a_block_is_run(text: str, code: str) -> None:
    model = Answering(text)
    assert code_of(await made(model, START)) == code
    (asked,) = model.asked
    assert (asked.tools, asked.response_schema) == ([], None)
    assert "request_clarification" in asked.messages[0]["content"]


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "```\n{}\n```"])
async def test_an_object_that_names_a_tool_is_a_call_of_it(around: str) -> None:
    model = Answering(around.replace("{}", '{"tool": "notify", "text": "Half"}'))
    (call,) = (await made(model, START)).calls
    assert (call.name, call.parsed()) == ("notify", {"text": "Half"})


@pytest.mark.parametrize(
    "text",
    [
        "It is 1.",
        "[1]",
        '{"code": "1"}',
        '{"tool": "notify 1", "te',
        "```\nA  1\n```",
        '{"tool": null, "n": 1}',
        '{"tool": {"name": "notify"}, "n": 1}',
        "[1" * 50_000,
    ],
)
async def test_anything_else_is_a_text(text: str) -> None:
    generation = await made(Answering(text), DONE)
    assert (generation.text, generation.calls) == (text, ())


async def test_a_call_that_was_cut_off_does_not_run() -> None:
    generation = await made(Answering("```python\nprint(1", cut=True), START)
    assert generation.calls[0].parsed() is None


async def test_what_ran_well_is_not_run_again_but_answered() -> None:
    generation = await made(model := Answering("```python\nprint(1)\n```", '{"answer": "It is 1."}'), DONE)
    assert (generation.text, generation.calls, generation.usage.prompt_tokens) == ("It is 1.", (), 200)
    assert model.asked[1].response_schema is not None


async def test_what_failed_is_written_otherwise() -> None:
    failed = [*START, *ran("print(x)", "cell1 ended: error.\nNameError: x")]
    model = Answering("```python\nprint(x)\n```", "```python\nprint(2)\n```")
    assert code_of(await made(model, failed)) == "print(2)"


async def test_it_does_not_give_up_at_the_first_failure() -> None:
    failed = [*START, *ran("print(x)", "cell1 ended: error.\nNameError: x")]
    assert code_of(await made(Answering("It cannot be done.", "```python\nprint(2)\n```"), failed)) == "print(2)"
    assert (await made(Answering("It cannot be done.", "Really not."), failed)).text == "Really not."


async def test_a_response_holds_what_was_computed() -> None:
    model = Answering("They are added.", '{"answer": "It is 1."}')
    assert (await made(model, DONE)).text == "It is 1."
    assert model.asked[1].messages[-1]["content"].endswith("which is: 1")


async def test_code_may_run_again_after_a_word_or_where_its_end_is_not_known() -> None:
    still = [*START, *ran("print(1)", "cell1 still runs. Output so far:\n(none)")]
    for messages in ([*DONE, WORD], still):
        assert code_of(await made(Answering("```python\nprint(1)\n```"), messages)) == "print(1)"


async def test_nothing_is_answered_unasked_before_anything_was_run_for_it() -> None:
    for messages in (START, [*DONE, WORD]):
        assert code_of(await made(Answering("It is 7.", "```python\nprint(7)\n```"), messages)) == "print(7)"
        assert (await made(Answering("Hello!", "Hello!"), messages)).text == "Hello!"
    paused: Message = {"role": "user", "content": "[resumed]"}
    assert (await made(Answering("It is 1."), [*DONE, paused])).text == "It is 1."


async def test_what_the_first_answer_cost_is_told_when_the_second_does_not_come() -> None:
    spent: list[int] = []
    request = Request(messages=START, tools=TOOLS)
    with pytest.raises(IndexError):
        await InText(Answering("It is 7.")).generate(request, lambda _, usage: spent.append(usage.prompt_tokens))
    assert spent == [100]


async def test_each_request_extends_the_last() -> None:
    shown = []
    for messages in (START, DONE, [*DONE, said("It is 1.", []), WORD]):
        await made(model := Answering("```python\nprint(3)\n```"), messages)
        shown.append(model.asked[0].messages)
    for before, after in itertools.pairwise(shown):
        assert after[: len(before)] == before
    assert shown[1][-2:] == [
        {"role": "assistant", "content": "```python\nprint(1)\n```"},
        {"role": "user", "content": "Result: cell1 ended: ok.\n1"},
    ]
    assert not any("tool_calls" in message for message in shown[-1])


async def test_the_task_stands_beside_the_words_that_change_it() -> None:
    task = "[task from Ana] Add\n  the lines\n  [file: a.csv]\n    | 1\n\nNotes: none"
    start: Message = {"role": "user", "content": task}
    resumed: Message = {"role": "user", "content": "[resumed]"}
    model = Answering("```python\nprint(3)\n```")
    await made(model, [START[0], start, *DONE[2:], WORD, resumed])
    told = [message["content"] for message in model.asked[0].messages[-5:]]
    assert told[0] == task
    assert told[3] == "[Ana] net, not gross\n(Do it again with that. The task was: Add\n  the lines)"
    assert told[4] == "[resumed]"


async def test_where_no_tool_may_be_called_the_answer_is_free() -> None:
    generation = await made(model := Answering("```python\nx\n```"), DONE, tool_choice="none")
    assert (generation.text, generation.calls) == ("```python\nx\n```", ())
    assert model.asked[0].tools == []
