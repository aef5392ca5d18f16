"""Anthropic's and Gemini's own streams, through the real helper and litellm: what is made of them, and goes back."""

import pytest

from gateway.llm.model import Request, said, tool_call
from tests.llm.conftest import Make, asking, tool
from tests.llm.histories import result, user
from tests.llm.recorder import Recorder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ACT = tool("act")


def block(index: int, start: dict[str, object], *deltas: dict[str, object]) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "claude-sonnet-4-5",
            "usage": {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 900},
        },
    },
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "They want "},
        {"type": "thinking_delta", "thinking": "Rome."},
        {"type": "signature_delta", "signature": "signed"},
    ),
    *block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "I am "},
        {"type": "text_delta", "text": "on it."},
    ),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "act", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"query": "bo'},
        {"type": "input_json_delta", "partial_json": 'ok Rome"}'},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 50}},
    {"type": "message_stop"},
]


async def test_anthropic_thinking_is_hidden_kept_and_sent_back(make: Make) -> None:
    async with Recorder(ANTHROPIC, named=True) as recorder:
        model = make("anthropic/claude-sonnet-4-5", api_base=recorder.base_url)
        answer = await model.generate(asking("book Rome", tools=[ACT]))
        (made,) = answer.calls
        calls = [tool_call("c00000001", made.name, made.arguments, made.fields)]
        history = [user("book Rome"), said(answer.text, calls, answer.fields), result("c00000001")]
        await model.generate(Request(messages=history, tools=[ACT]))
    assert (answer.text, answer.finish, answer.cut) == ("I am on it.", "tool_calls", False)
    assert made.parsed() == {"query": "book Rome"}
    assert answer.fields == {
        "thinking_blocks": [{"type": "thinking", "thinking": "They want Rome.", "signature": "signed"}]
    }
    sent = recorder.bodies[1]["messages"][1]["content"]
    assert [b["type"] for b in sent] == ["thinking", "text", "tool_use"]
    assert sent[0]["signature"] == "signed"


async def test_anthropic_counts_what_came_from_its_cache(make: Make) -> None:
    async with Recorder(ANTHROPIC, named=True) as recorder:
        answer = await make("anthropic/claude-sonnet-4-5", api_base=recorder.base_url).generate(asking(tools=[ACT]))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1000, 50)
    assert answer.usage.usd == pytest.approx(100 * 3e-6 + 900 * 0.3e-6 + 50 * 15e-6)


async def test_anthropic_cut_by_length_runs_no_call(make: Make) -> None:
    cut = [e if e["type"] != "message_delta" else {**e, "delta": {"stop_reason": "max_tokens"}} for e in ANTHROPIC]
    async with Recorder(cut, named=True) as recorder:
        answer = await make("anthropic/claude-sonnet-4-5", api_base=recorder.base_url).generate(asking(tools=[ACT]))
    assert answer.cut
    assert [c.parsed() for c in answer.calls] == [None]


async def test_gemini_thought_signatures_are_kept_and_sent_back(make: Make) -> None:
    call = {"functionCall": {"name": "act", "args": {"query": "book Rome"}}, "thoughtSignature": "c2lnbmVk"}
    events = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}]},
        {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}},
    ]
    async with Recorder(events) as recorder:
        model = make("gemini/gemini-2.5-flash", api_base=recorder.base_url)
        answer = await model.generate(asking("book Rome", tools=[ACT]))
        (made,) = answer.calls
        calls = [tool_call("c00000001", made.name, made.arguments, made.fields)]
        history = [user("book Rome"), said(answer.text, calls, answer.fields), result("c00000001")]
        await model.generate(Request(messages=history, tools=[ACT]))
    assert made.parsed() == {"query": "book Rome"}
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (10, 5)
    assert "c2lnbmVk" in str(recorder.bodies[1]["contents"][1])
