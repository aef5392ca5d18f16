"""LM03 and LM05: which calls may run, and what of an answer is for people; over real HTTP, directly and by litellm."""

import pytest

from gateway.llm.client import HelperModel
from gateway.llm.model import ModelError, Token, Usage, parsed_arguments, said, tool_call
from tests.llm.conftest import BY_LITELLM, DIRECT, Make, asking, tool
from tests.servers.openai import Call, Cut, Error, Reply, ScriptedOpenAI, call
from tests.servers.openai_rules import broken_rule

pytestmark = pytest.mark.asyncio(loop_scope="session")

HALF = Call("run_shell", '{"cmd": "rm -rf /srv/app/tmp')
WHOLE = Call("run_shell", '{"path": "n.txt"}')
SHELL = asking("tidy up", tools=[tool("run_shell"), tool("act")])


async def test_an_answer_comes_whole_with_what_it_cost(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="Hello, Ana. It is noon.", chunks=5, usage=(120, 7))])
    answer = await model.generate(asking("what time is it?", temperature=0.2, max_tokens=50))
    assert answer.text == "Hello, Ana. It is noon."
    assert (answer.finish, answer.cut, answer.calls, answer.model) == ("stop", False, (), model.name)
    assert answer.usage == Usage(prompt_tokens=120, completion_tokens=7, usd=None, estimated=False)
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["stream"]) == (0.2, 50, True)
    assert "tools" not in body
    assert "tool_choice" not in body


async def test_how_likely_its_tokens_were_is_told_where_the_server_knows(make: Make, server: ScriptedOpenAI) -> None:
    told = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]}
    old = {"tokens": ["a"], "token_logprobs": [-0.5]}
    for logprobs, tokens in ((told, (Token("a", -0.5),)), (old, ()), (None, ())):
        choice = {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop", "logprobs": logprobs}
        server.script([Reply(whole={"choices": [choice]})])
        answer = await make(DIRECT).generate(asking(logprobs=True))
        assert (answer.text, answer.tokens) == ("a", tokens)
    assert server.requests[0].body["logprobs"] is True


async def test_a_server_that_refuses_to_tell_is_asked_without(make: Make, server: ScriptedOpenAI) -> None:
    refused = Error(400, "logprobs is not supported")
    server.script(lambda request: refused if "logprobs" in request.body else Reply(text="hi"))
    model = make("openai/untold")
    for _ in range(2):
        assert (await model.generate(asking(logprobs=True))).text == "hi"
    assert ["logprobs" in request.body for request in server.requests] == [True, False, False]


async def test_a_known_model_has_a_price(make: Make, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="hi", usage=(1000, 100), cached_tokens=400)])
    answer = await make("openai/gpt-4o").generate(asking())
    assert answer.usage.usd == pytest.approx(600 * 2.5e-6 + 400 * 1.25e-6 + 100 * 1e-5)


async def test_a_server_that_does_not_count_gets_an_estimate(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="four" * 10, usage=None)])
    usage = (await model.generate(asking("x" * 400))).usage
    assert 90 <= usage.prompt_tokens <= 130
    assert 8 <= usage.completion_tokens <= 12


@pytest.mark.parametrize("one_index", [False, True], ids=["two indices", "one index"])
async def test_parallel_calls_stay_two(one_index: bool, model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="Both.", calls=[call("act", query="a"), call("act", query="b")], one_index=one_index)])
    answer = await model.generate(SHELL)
    assert [(c.name, c.parsed()) for c in answer.calls] == [("act", {"query": "a"}), ("act", {"query": "b"})]
    assert (answer.text, answer.finish) == ("Both.", "tool_calls")


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
async def test_lm03_half_arguments_never_run(finish: str, model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(calls=[HALF], finish=finish)])
    (made,) = (await model.generate(SHELL)).calls
    assert made.parsed() is None
    assert made.arguments == HALF.arguments


async def test_lm03_valid_arguments_of_a_cut_answer_never_run(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(calls=[call("act", query="a"), WHOLE], finish="length")])
    answer = await model.generate(SHELL)
    assert answer.cut
    assert [c.parsed() for c in answer.calls] == [None, None]


async def test_lm03_no_finish_reason_is_a_cut_answer(make: Make, server: ScriptedOpenAI) -> None:
    server.script([Reply(calls=[WHOLE], finish=None)])
    answer = await make(DIRECT).generate(SHELL)
    assert answer.cut
    assert [c.parsed() for c in answer.calls] == [None]


@pytest.mark.parametrize(
    "broken",
    [Cut(after=2, reply=Reply(calls=[HALF])), Reply(calls=[WHOLE], finish=None, done=False)],
    ids=["reset", "the body just ends"],
)
async def test_lm03_a_connection_that_ends_without_a_finish_reason_is_an_error(
    broken: Cut | Reply, model: HelperModel, server: ScriptedOpenAI
) -> None:
    server.script([broken])
    with pytest.raises(ModelError) as failed:
        await model.generate(SHELL)
    assert (failed.value.kind, failed.value.retryable) == ("stream_cut", True)


async def test_lm03_the_good_call_runs_beside_the_bad_one(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(calls=[HALF, call("act", query="a")])])
    answer = await model.generate(SHELL)
    assert [c.parsed() for c in answer.calls] == [None, {"query": "a"}]


@pytest.mark.parametrize(
    "arguments", ["null", "[]", '"x"', '{"a":1}{"a":1}', '{"a": 1}\n```', '{"a": NaN}', '{"a": 1', "[" * 100_000]
)
async def test_lm03_what_is_no_object_is_no_arguments_but_stays_sendable(arguments: str) -> None:
    sendable, parsed = parsed_arguments(arguments)
    assert parsed is None
    message = said("", [tool_call("c00000001", "act", arguments)])
    assert message["tool_calls"][0]["function"]["arguments"] == sendable
    assert broken_rule({"messages": [message, {"role": "tool", "tool_call_id": "c00000001", "content": "?"}]}) is None


async def test_lm03_no_arguments_are_an_empty_object() -> None:
    assert parsed_arguments("") == ("{}", {})


BLANK = {
    "null": Reply(text=None),
    "blank": Reply(text="  \n"),
    "only hidden reasoning": Reply(text=None, reasoning="long hidden thoughts"),
    "only a thought": Reply(text="<think>only thoughts</think>", chunks=7),
    "a thought that never ends": Reply(text="<think>only thoughts", chunks=3),
    "a thought that the prompt opened": Reply(text="only thoughts</think>\n"),
}


@pytest.mark.parametrize("name", BLANK)
async def test_lm05_hidden_reasoning_is_never_text(name: str, model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([BLANK[name]])
    answer = await model.generate(asking())
    assert answer.text.strip() == ""
    assert "thoughts" not in str(answer)


async def test_lm05_what_is_said_beside_a_thought_is_kept(model: HelperModel, server: ScriptedOpenAI) -> None:
    text = "<think>hm `x`</think>Close it with `</think>`:\n```\n<think>a</think>\n```\n<thinking>b</thinking>Done."
    server.script([Reply(text=text, chunks=20)])
    answer = await model.generate(asking())
    assert answer.text == "Close it with `</think>`:\n```\n<think>a</think>\n```\nDone."


async def test_lm05_a_filtered_answer_is_an_error_that_says_so(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="", finish="content_filter")])
    with pytest.raises(ModelError) as failed:
        await model.generate(asking())
    assert (failed.value.kind, failed.value.retryable) == ("content_filtered", False)


async def test_a_server_that_does_not_stream_is_understood(make: Make, server: ScriptedOpenAI) -> None:
    whole = {
        "choices": [{"message": {"content": "all at once", "tool_calls": None}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    server.script([Reply(whole=whole)])
    answer = await make(DIRECT).generate(asking())
    assert (answer.text, answer.usage.completion_tokens) == ("all at once", 4)


async def test_odd_but_clear_chunks_are_understood(make: Make, server: ScriptedOpenAI) -> None:
    signed = {"google": {"thought_signature": "abc"}}
    raw = [
        {"content": [{"type": "text", "text": "in parts"}]},
        {"tool_calls": [{"id": "x", "function": {"name": "act", "arguments": {"query": "an object"}}}]},
        {"tool_calls": [{"id": "y", "function": {"name": "act"}, "extra_content": signed}]},
        {"tool_calls": None},
    ]
    server.script([Reply(raw=raw, calls=[], finish="tool_calls")])
    answer = await make(DIRECT).generate(SHELL)
    assert answer.text == "in parts"
    assert [c.parsed() for c in answer.calls] == [{"query": "an object"}, {}]
    assert answer.calls[1].fields == {"extra_content": signed}


async def test_a_schema_is_asked_for_and_strict_only_if_it_is_closed(
    model: HelperModel, server: ScriptedOpenAI
) -> None:
    server.script([Reply(text="{}"), Reply(text="{}")])
    open_schema = {"type": "object", "properties": {"tool": {"type": "string"}}}
    closed = {**open_schema, "additionalProperties": False, "required": ["tool"]}
    for schema in (open_schema, closed):
        await model.generate(asking(response_schema=schema))
    formats = [r.body["response_format"]["json_schema"] for r in server.requests]
    assert [(f["schema"], f["strict"]) for f in formats] == [(open_schema, False), (closed, True)]


async def test_half_a_surrogate_pair_does_not_spoil_the_request(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([Reply(text="fine")])
    await model.generate(asking("cut in the middle: \ud83d"))
    assert server.requests[0].last_user == "cut in the middle: ?"


async def test_reasoning_goes_back_only_to_the_provider_that_wants_it(make: Make, server: ScriptedOpenAI) -> None:
    server.script([Reply(calls=[call("act", query="a")], reasoning="because")] * 2)
    kept = await make("deepseek/deepseek-reasoner").generate(SHELL)
    dropped = await make(BY_LITELLM).generate(SHELL)
    assert kept.fields == {"reasoning_content": "because"}
    assert dropped.fields is None
