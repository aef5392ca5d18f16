"""What servers write that is not as it should be: understood where it is clear, an error that says so where not."""

import asyncio
import json
import time
from typing import Any

import msgspec
import pytest

from brain.meant import found_in_text
from gateway.llm.assembly import Assembler, Delta
from gateway.llm.attempt import ANSWER_SECONDS_MAX, Attempt, meant
from gateway.llm.in_text import understood
from gateway.llm.model import Endpoint, Generation, ModelError, Usage, parsed_arguments
from gateway.llm.provider_openai import OpenAIProvider
from gateway.llm.thoughts import shown
from tests.llm.conftest import DIRECT, KEY, Make, asking, tool
from tests.patience import PATIENCE_SECONDS
from tests.servers.openai import Error, Raw, Reply, ScriptedOpenAI, call

pytestmark = pytest.mark.asyncio(loop_scope="session")


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return (
        b"data: %b\n\n"
        % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}, ensure_ascii=False).encode()
    )


SAID = event({"content": "Grüße"}) + event({}, "stop")
STREAMS = {
    "a byte order mark": [b"\xef\xbb\xbf", SAID],
    "in the middle of a letter": [SAID[: SAID.index(b"\xc3") + 1], SAID[SAID.index(b"\xc3") + 1 :]],
    "CRLF": [SAID.replace(b"\n", b"\r\n")],
    "byte by byte": [SAID[n : n + 1] for n in range(len(SAID))],
    "signs of life": [b": ping\n\ndata:\n\n", b'event: ping\ndata: {"type": "ping"}\n\n', SAID],
    "no space, no blank line": [SAID.replace(b"data: ", b"data:").replace(b"\n\n", b"\n")],
    "no choices": [b'data: {"choices": []}\n\ndata: {"choices": null, "usage": {}}\n\n', SAID],
    "instead of an answer": [event({"content": None, "refusal": "Grüße"}) + event({}, "stop")],
}


async def test_an_emoji_that_was_cut_in_two_is_one(make: Make, server: ScriptedOpenAI) -> None:
    halves = [b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % half for half in (rb"\ud83d", rb"\ude00")]
    server.script([Raw([*halves, event({}, "stop")]), Raw([halves[0], event({}, "stop")])])
    assert [(await make(DIRECT).generate(asking())).text for _ in range(2)] == ["😀", "�"]


HALF = "half \ud83d"
HALVES: dict[str, list[dict[str, Any]]] = {
    "a name": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": HALF, "arguments": "{}"}}]}}],
    "a field": [
        {"delta": {"tool_calls": [{"index": 0, "function": {"name": "act"}, "extra_content": {"signature": HALF}}]}}
    ],
    "a token": [{"delta": {"content": "Hi"}, "logprobs": {"content": [{"token": HALF, "logprob": -0.1}]}}],
    "a finish": [{"delta": {"content": "Hi"}, "finish_reason": HALF}],
    "an error": [{"error": {"message": HALF}}],
}


@pytest.mark.parametrize("name", HALVES)
async def test_half_a_surrogate_pair_anywhere_is_no_answer_that_never_comes(
    name: str, make: Make, server: ScriptedOpenAI
) -> None:
    pieces = [b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode() for choice in HALVES[name]]
    server.script([Raw([*pieces, event({}, "stop")])])
    async with asyncio.timeout(PATIENCE_SECONDS):
        if name == "an error":
            with pytest.raises(ModelError, match=r"half \?"):
                await make(DIRECT).generate(asking(logprobs=True))
        else:
            msgspec.json.encode(await make(DIRECT).generate(asking(logprobs=True)))


@pytest.mark.parametrize(
    "usage",
    [
        [],
        "none",
        {"prompt_tokens": 12.5, "completion_tokens": 1},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 10**30},
    ],
)
async def test_a_count_that_cannot_be_spoils_no_answer(usage: Any, make: Make, server: ScriptedOpenAI) -> None:
    counted = b"data: %b\n\n" % json.dumps({"choices": [], "usage": usage}).encode()
    server.script([Raw([SAID, counted, b"data: [DONE]\n\n"])])
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await make(DIRECT).generate(asking())
    assert (answer.text, answer.usage.estimated) == ("Grüße", True)


async def test_a_count_without_its_details_counts(make: Make, server: ScriptedOpenAI) -> None:
    counted = b'data: {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": []}}\n\n'
    server.script([Raw([SAID, counted, b"data: [DONE]\n\n"])])
    usage = (await make(DIRECT).generate(asking())).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated) == (7, 3, False)


async def test_events_under_another_name_are_events(make: Make, server: ScriptedOpenAI) -> None:
    server.script([Raw([SAID, b"data: [DONE]\n\n"], "application/json")])
    assert (await make(DIRECT).generate(asking())).text == "Grüße"


@pytest.mark.parametrize("name", STREAMS)
async def test_an_odd_stream_is_read(name: str, make: Make, server: ScriptedOpenAI) -> None:
    server.script([Raw([*STREAMS[name], b"data: [DONE]\n\n"])])
    answer = await make(DIRECT).generate(asking())
    assert (answer.text, answer.cut) == ("Grüße", False)


TOO_LONG = {"object": "error", "code": 400, "message": "This model's maximum context length is 4096 tokens"}
FAILURES = {
    "an error for an answer": (Raw([json.dumps(TOO_LONG).encode()], "application/json"), "context_too_long"),
    "an error as an event": (Raw([b"data: %b\n\n" % json.dumps(TOO_LONG).encode()]), "context_too_long"),
    "an error as a line": (Raw([b"error: %b\n\n" % json.dumps(TOO_LONG).encode()]), "context_too_long"),
    "an error where events should be": (Raw([json.dumps({"error": TOO_LONG}).encode()]), "context_too_long"),
    "an error in the choice": (
        Raw([b'{"choices": [{"error": {"code": 502, "message": "upstream"}}]}'], "application/json"),
        "overloaded",
    ),
    "a failure for a reason": (Raw([event({"content": "Hal"}), event({}, "error")]), "stream_cut"),
    "nothing in it": (Raw([b'{"id": "x"}'], "application/json"), "stream_cut"),
    "a key, in the stream": (
        Raw([b'data: {"error": {"message": "no", "type": "invalid_api_key"}}\n\n']),
        "key_refused",
    ),
    "a web page": (Raw([b"<html><b>Sign in</b></html>"], "text/html"), "unreachable"),
    "a guard": (Raw([b"<html><style>b{}</style><b>Just a moment</b></html>"], "text/html", 403), "unreachable"),
    "more than it may take in a minute": (Error(429, "Request too large for x on tokens per min"), "context_too_long"),
    "withheld": (Reply(text="", finish="SAFETY"), "content_filtered"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_that_looks_like_an_answer_is_one(name: str, make: Make, server: ScriptedOpenAI) -> None:
    step, kind = FAILURES[name]
    server.script([step])
    with pytest.raises(ModelError) as failed:
        await make(DIRECT).generate(asking())
    assert failed.value.kind == kind
    assert "<" not in failed.value.for_operator


@pytest.mark.parametrize("finish", ["length", "MAX_TOKENS", "model_length", "malformed_function_call"])
async def test_lm03_what_broke_off_stays_so_whatever_is_said_afterwards(
    finish: str, make: Make, server: ScriptedOpenAI
) -> None:
    pieces = [event({"content": "Half of"}, finish), event({}, "stop")]
    server.script([Raw([*pieces, b"data: [DONE]\n\n"])])
    assert (await make(DIRECT).generate(asking())).cut


async def test_signs_of_life_alone_are_no_answer(server: ScriptedOpenAI) -> None:
    server.script([Raw([event({"content": "Well,"})], stays=True)])
    provider = OpenAIProvider(silence_seconds=0.1)
    attempt = Attempt(Endpoint(name=DIRECT, api_base=server.base_url, api_key=KEY), asking())
    try:
        with pytest.raises(ModelError) as failed:
            await asyncio.wait_for(provider.generate(attempt), PATIENCE_SECONDS)
    finally:
        await provider.close()
    assert failed.value.kind == "stream_cut"


async def test_a_model_that_never_stops_is_stopped(make: Make, server: ScriptedOpenAI) -> None:
    server.script([Raw([event({"content": "the " * 10_000})] * 30, stays=True)])
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await make(DIRECT).generate(asking())
    assert answer.cut
    assert len(answer.text) < 1_100_000
    await server.requests[-1].over.wait()
    assert server.requests[-1].finished_at is None


async def test_a_model_that_is_slow_without_end_is_stopped() -> None:
    now = [0.0]
    attempt = Attempt(Endpoint(name=DIRECT), asking(), clock=lambda: now[0])
    attempt.assembler.add(Delta(content="Well,"))
    assert not attempt.ends_here()
    now[0] = ANSWER_SECONDS_MAX + 1
    assert attempt.ends_here()
    assert attempt.generation().cut


# --- calls in pieces -------------------------------------------------------------------------------------------------


def piece(name: str | None = None, arguments: Any = "", **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


A, B = ("act", {"query": "a"}), ("act", {"query": "b"})
CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, Any]]]] = {
    "two in a chunk, nothing to tell them by": ([[piece("act", {"query": "a"}), piece("act", {"query": "b"})]], [A, B]),
    "the same in two chunks": ([[piece("act", '{"query":"a"}')], [piece("act", '{"query":"b"}')]], [A, B]),
    "one index, no ids": (
        [
            [piece("act", '{"query":"a"}', index=0)],
            [piece("act", '{"query":', index=0)],
            [piece(None, '"b"}', index=0)],
        ],
        [A, B],
    ),
    "an index that rises with each piece": (
        [[piece("act", index=0, id="x")], [piece(None, '{"query":', index=1)], [piece(None, '"a"}', index=2)]],
        [A],
    ),
    "an id that changes with each piece": (
        [[piece("act", index=0, id="x")], [piece(None, '{"query":', index=0, id="y")], [piece(None, '"a"}', index=0)]],
        [A],
    ),
    "a name that is said again": (
        [[piece("act", '{"query":', index=0)], [piece("act", '"a"}', index=0)], [piece("act", "", index=0)]],
        [A],
    ),
    "a call that is said again": (
        [[piece("act", '{"query":"a"}', index=0, id="x")], [piece("act", '{"query":"a"}', index=1, id="x")]],
        [A],
    ),
    "the same, with its name first": (
        [
            [piece("act", index=0, id="x")],
            [piece(None, '{"query":"a"}', index=0)],
            [piece("act", index=1, id="x")],
            [piece(None, '{"query":"a"}', index=1)],
        ],
        [A],
    ),
    "two under one id": (
        [[piece("act", '{"query":"a"}', index=0, id="x")], [piece("act", '{"query":"b"}', index=1, id="x")]],
        [A, B],
    ),
    "two under one id, in pieces": (
        [
            [piece("act", index=0, id="x")],
            [piece(None, '{"query":"a"}', index=0, id="x")],
            [piece("act", index=1, id="x")],
            [piece(None, '{"query":"b"}', index=1, id="x")],
        ],
        [A, B],
    ),
    "two under one id, no index": (
        [[piece("act", '{"query":"a"}', id="x")], [piece("wait", '{"reason":"b"}', id="x")]],
        [A, ("wait", {"reason": "b"})],
    ),
    "a name in pieces": ([[piece("a", index=0, id="x")], [piece("ct", '{"query":"a"}', index=0)]], [A]),
    "both begun before either goes on": (
        [
            [piece("act", index=0, id="x"), piece("act", index=1, id="y")],
            [piece(None, '{"query":"a"}', index=0), piece(None, '{"query":"b"}', index=1)],
        ],
        [A, B],
    ),
    "words for numbers": ([[piece("act", '{"query":"a"}', index="0", id=7)]], [A]),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_in_odd_pieces_is_put_together(name: str) -> None:
    chunks, calls = CALLS[name]
    assembler = Assembler()
    for chunk in chunks:
        assembler.add(msgspec.convert({"tool_calls": chunk}, Delta))
    assembler.end("tool_calls")
    made = assembler.generation(usage=Usage(), model="", keeps_reasoning=False).calls
    assert [(one.name, one.parsed()) for one in made] == calls


@pytest.mark.parametrize(
    "name",
    ["functions.stop_rome__a1", "default_api:Stop_Rome__a1", "stop_rome__a1<|channel|>commentary", " stop-rome__a1"],
)
async def test_a_tool_is_known_by_its_name_in_other_clothes(name: str) -> None:
    assert meant(name, ["stop_oslo__a1", "stop_rome__a1"]) == "stop_rome__a1"


async def test_a_name_that_may_mean_two_means_none(make: Make, server: ScriptedOpenAI) -> None:
    assert meant("ACT", ["act", "Act"]) == "ACT"
    server.script([Reply(calls=[call("functions.Act", query="a"), call("run", x=1)])])
    answer = await make(DIRECT).generate(asking(tools=[tool("act")]))
    assert [one.name for one in answer.calls] == ["act", "run"]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
async def test_a_number_that_json_cannot_say_is_never_sent_back(number: str) -> None:
    safe, arguments = parsed_arguments(f'{{"seconds": {number}}}')
    assert arguments is None
    assert msgspec.json.decode(safe) == {"unparsed": f'{{"seconds": {number}}}'}


async def test_arguments_hold_only_what_every_store_and_wire_can_carry() -> None:
    sound = {"code": "print('a\ufffd\ufffdb')"}
    assert parsed_arguments('{"code": "print(\'a\\ud83d\\udc92\\ud83db\')"}')[1] == {"code": "print('a💒\ufffdb')"}
    assert parsed_arguments('{"code": "print(\'a\\ud83d\\ud83db\')"}') == (json.dumps(sound, ensure_ascii=False), sound)
    assert json.loads(parsed_arguments("half \ud83d")[0]) == {"unparsed": "half \ufffd"}


async def test_arguments_that_were_encoded_twice_are_the_arguments() -> None:
    assert parsed_arguments(json.dumps(json.dumps({"query": "a"}))) == ('{"query": "a"}', {"query": "a"})
    assert parsed_arguments(json.dumps('{"query": "a'))[1] is None


# --- a model that repeats itself -------------------------------------------------------------------------------------

ENDLESS = [
    "<tool_call>",
    "<function=act>",
    "<invoke name=act>",
    "```json\n{",
    "```",
    '"""',
    "analysis",
    "<think>",
    "[TOOL_CALLS]",
]


@pytest.mark.parametrize("mark", ENDLESS)
async def test_marks_without_end_are_read_in_no_time(mark: str) -> None:
    """Each was looked for to the end of the text, once for each that stood before: minutes, for everybody."""
    text = mark * (200_000 // len(mark))
    began = time.monotonic()
    for one in (text, f"Well, {text}", f"<tool_call>{text}"):
        found_in_text(shown(one), {}, whole=False)
        understood(Generation(text=one))
    assert time.monotonic() - began < 40  # under one second


# --- thoughts in other marks -----------------------------------------------------------------------------------------

CALL = '<tool_call>{"name": "act", "arguments": {"query": "a"}}</tool_call>'
THOUGHTS = {
    "[THINK]hm[/THINK]Hello": "Hello",
    "◁think▷hm◁/think▷Hello": "Hello",
    "<Think>hm</Think>\nHello": "Hello",
    "<seed:think>hm": "",
    "<reasoning>hm</reasoning>\n\nHello": "Hello",
    "Wrap it in <reasoning> and [think] twice": "Wrap it in <reasoning> and [think] twice",
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>": "Hello",
    "<|channel|>analysis<|message|>hm": "",
    '<|channel|>commentary to=functions.act <|constrain|>json<|message|>{"query": "a"}<|call|>': CALL,
    "analysisThey greet.assistantfinalHello": "Hello",
    "analysis of it: fine": "analysis of it: fine",
    "Hello<|im_end|>\n<|im_start|>user\nThanks": "Hello",
    "Hello</s>": "Hello",
    "Write `<|im_end|>` and `</s>`": "Write `<|im_end|>` and `</s>`",
}


@pytest.mark.parametrize("text", THOUGHTS)
async def test_lm05_thoughts_are_not_for_people_in_whatever_marks(text: str) -> None:
    assert shown(text) == THOUGHTS[text]
