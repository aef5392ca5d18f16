"""What each provider gets, through the real helper and litellm's own translation, held against its rules."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gateway.llm.history import healed
from gateway.llm.model import ModelError, Request
from gateway.llm.quirks import for_provider, provider_of
from tests.llm import rules
from tests.llm.conftest import DIRECT, Make, tool
from tests.llm.histories import Message, made, result, said, spoiled_history, user, valid_history
from tests.llm.recorder import Recorder
from tests.servers.openai import Error, Received, Reply, ScriptedOpenAI, call
from tests.servers.openai_rules import broken_rule

pytestmark = pytest.mark.asyncio(loop_scope="session")

A, B = "c00000001", "c00000002"
TOOLS = [tool("ping"), tool("notify")]
SEEDS = range(25)

HISTORIES: dict[str, list[Message]] = {
    "a result, then the user": [user("go"), said(made(A)), result(A), user("stop")],
    "equal calls in one message": [user("go"), said(made(A), made(B)), result(A), result(B)],
    "three users in a row": [user("a"), user("b"), user("c")],
    "the assistant speaks first": [said(text="Good morning!"), user("hello")],
    "a result that is JSON": [user("go"), said(made(A)), result(A, '{"a": 1}')],
    "a result that looks like an image": [user("go"), said(made(A)), result(A, "data:image/png;base64,aGk=")],
    **{f"random {seed}": valid_history(seed) for seed in SEEDS},
    **{f"healed {seed}": healed([*spoiled_history(seed), user("go on")]) for seed in SEEDS},
}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("anthropic/claude-sonnet-4-5", rules.anthropic),
        ("gemini/gemini-2.5-flash", rules.gemini),
        ("mistral/mistral-large-latest", lambda body: rules.mistral(body["messages"])),
    ],
    ids=["anthropic", "gemini", "mistral"],
)
async def test_the_provider_accepts_every_history(name: str, rule: Callable[[Any], None], make: Make) -> None:
    async with Recorder() as recorder:
        model = make(name, api_base=recorder.base_url)
        for history in HISTORIES.values():
            with pytest.raises(ModelError):  # the recorder answers nothing
                await model.generate(Request(messages=history, tools=TOOLS))
        assert len(recorder.bodies) == len(HISTORIES)
        for history_name, body in zip(HISTORIES, recorder.bodies, strict=True):
            _holds(history_name, rule, body)


async def test_gemini_reads_results_as_text(make: Make) -> None:
    async with Recorder() as recorder:
        model = make("gemini/gemini-2.5-flash", api_base=recorder.base_url)
        for name in ("a result that is JSON", "a result that looks like an image"):
            with pytest.raises(ModelError):
                await model.generate(Request(messages=HISTORIES[name], tools=TOOLS))
        for body in recorder.bodies:
            assert "result:" in str(body["contents"][-1]["parts"][0]["function_response"])


async def test_mistral_loses_no_words() -> None:
    for name, history in HISTORIES.items():
        mended = for_provider(history, "mistral")
        assert broken_rule({"messages": mended}) is None, name
        sent = "\n\n".join(str(m["content"]) for m in mended if m["role"] == "user")
        assert sent.endswith("\n\n".join(str(m["content"]) for m in history if m["role"] == "user"))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mistral"])
async def test_a_longer_history_extends_the_wire_form_of_the_shorter_one(provider: str) -> None:
    for history in HISTORIES.values():
        whole = for_provider(history, provider)
        for end, message in enumerate(history):
            if message["role"] == "assistant":
                shorter = for_provider(history[:end], provider)
                assert whole[: len(shorter)] == shorter


async def test_what_another_provider_left_is_not_sent_and_nothing_given_is_changed() -> None:
    signed = {**made(A), "provider_specific_fields": {"thought_signature": "abc"}}
    message = {**said(signed, text="so"), "thinking_blocks": [{"type": "thinking"}], "reasoning_content": "because"}
    history = [user("go"), message, result(A)]
    before = copy.deepcopy(history)
    assert for_provider(history, "openai") == [user("go"), said(made(A), text="so"), result(A)]
    assert for_provider(history, "anthropic")[1]["thinking_blocks"] == [{"type": "thinking"}]
    assert for_provider(history, "gemini")[1]["tool_calls"] == [signed]
    assert "reasoning_content" in for_provider(history, "deepseek")[1]
    assert history == before


async def test_users_with_pictures_are_merged_as_parts() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
    (only,) = for_provider([user("look"), picture], "mistral")
    assert [part["type"] for part in only["content"]] == ["text", "image_url"]


async def test_the_provider_is_read_from_the_name() -> None:
    names = ("mistral/mistral-large", "gpt-4o", "claude-sonnet-4-5", "openai/org/model")
    assert [provider_of(name) for name in names] == ["mistral", "openai", "anthropic", "openai"]


def _holds(name: str, rule: Callable[[Any], None], body: Any) -> None:
    try:
        rule(body)
    except AssertionError as broken:
        raise AssertionError(f"{name}: {broken}") from None


async def test_what_another_model_left_is_not_sent_to_one_that_refuses_it(make: Make, server: ScriptedOpenAI) -> None:
    """Two servers of one protocol: one signs its calls, and the other knows no such field."""

    def strict(request: Received) -> Reply | Error:
        signed = any("extra_content" in call for one in request.messages for call in one.get("tool_calls") or ())
        return Error(400, "property 'extra_content' is unsupported") if signed else Reply(text="ok")

    server.script(strict)
    call = {**made(A), "extra_content": {"google": {"thought_signature": "signed"}}}
    history = [user("go"), {**said(call), "reasoning_content": "hm"}, result(A), user("and?")]
    assert (await make(DIRECT).generate(Request(messages=history))).text == "ok"
    assert [len(one.messages) for one in server.requests] == [4, 4]
    server.script([Error(400, "no such tool")])
    with pytest.raises(ModelError):
        await make(DIRECT).generate(Request(messages=[user("go"), said(made(A)), result(A)]))
    assert len(server.requests) == 3


async def test_a_model_that_misses_its_reasoning_gets_it_back(make: Make, server: ScriptedOpenAI) -> None:
    """With the calls of others too; and it is remembered that it wants it."""

    def thinks(request: Received) -> Reply | Error:
        calls = [one for one in request.messages if one.get("tool_calls")]
        if not all(one.get("reasoning_content") for one in calls):
            return Error(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
        return Reply(calls=[call("ping", h="a")], reasoning="hm")

    server.knows.add("reasoning_content")
    server.script(thinks)
    model = make("openai/thinks")
    history = [user("go"), said(made(A)), result(A)]
    answer = await model.generate(Request(messages=history, tools=TOOLS))
    assert answer.fields == {"reasoning_content": "hm"}
    more = [*history, {**said(made(B)), **answer.fields}, result(B)]
    await model.generate(Request(messages=more, tools=TOOLS))
    assert len(server.requests) == 3
    assert [one.get("reasoning_content") for one in server.requests[-1].messages if one.get("tool_calls")] == [
        " ",
        "hm",
    ]
