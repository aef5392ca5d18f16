"""LM01: a history with a broken pair of call and result must not kill the conversation."""

import copy
import json

import pytest

from gateway.llm.fitting import Fitting
from gateway.llm.history import OUTCOME_UNKNOWN, healed
from gateway.llm.model import Request
from tests.llm.conftest import DIRECT, Make
from tests.llm.histories import Message, made, result, said, spoiled_history, user, valid_history
from tests.servers.openai import Reply, ScriptedOpenAI
from tests.servers.openai_rules import broken_rule

pytestmark = pytest.mark.asyncio(loop_scope="session")

INTERRUPTED = [
    user("check both"),
    said(made("c1"), made("c2", arguments='{"h": "b"}')),
    result("c1"),
    user("never mind, what time is it?"),
]
BROKEN: dict[str, list[Message]] = {
    "cancelled before the second result": INTERRUPTED,
    "a result without a call in front": [result("c0"), *INTERRUPTED],
    "two results for one call": [*INTERRUPTED[:3], result("c1", "again"), INTERRUPTED[3]],
    "the result after the next user message": [*INTERRUPTED, result("c2", "late")],
    "one id used in two turns": [*INTERRUPTED, said(made("c1")), result("c1", "second"), user("thanks")],
    "one id twice in one message": [user("go"), said(made("c1"), made("c1")), result("c1"), user("on")],
    "blank assistant text": [user("go"), said(text=""), user("on"), said(text=" \n"), user("hello?")],
    "an empty list of calls": [user("go"), {"role": "assistant", "content": "ok", "tool_calls": []}, user("on")],
    "an empty result": [user("go"), said(made("c1")), result("c1", "")],
    "arguments cut": [user("go"), said(made("c1", arguments='{"cmd": "rm -rf /srv')), result("c1")],
    "arguments that are no object": [user("go"), said(made("c1", arguments="[1]")), result("c1")],
    "a call without an id, a name, or a text of arguments": [
        user("go"),
        {"role": "assistant", "tool_calls": [{"function": {"name": None, "arguments": {"h": "a"}}}]},
        {"role": "tool", "content": "ok"},
    ],
    "streamed a little, then cancelled": [
        user("go"),
        said(text="Let me look at the forty invoices that"),
        user("stop"),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
async def test_lm01_a_broken_history_is_accepted_by_a_strict_provider(
    name: str, make: Make, server: ScriptedOpenAI
) -> None:
    stored = BROKEN[name]
    before = copy.deepcopy(stored)
    server.script([Reply(text="It is noon.")])
    answer = await Fitting(make(DIRECT), budget_tokens=10_000).generate(Request(messages=stored))
    assert answer.text == "It is noon."
    assert server.complaints == []
    sent = server.requests[0].messages
    assert [m["content"] for m in sent if m["role"] == "user"] == [m["content"] for m in stored if m["role"] == "user"]
    assert stored == before


async def test_lm01_the_real_result_is_kept_and_the_missing_one_does_not_claim_that_it_did_not_run() -> None:
    assert healed(INTERRUPTED)[2:4] == [result("c1"), result("c2", OUTCOME_UNKNOWN)]


async def test_lm01_a_late_result_is_moved_to_its_call() -> None:
    assert healed(BROKEN["the result after the next user message"])[3] == result("c2", "late")


async def test_lm01_each_of_two_equal_ids_keeps_its_own_result() -> None:
    contents = [m["content"] for m in healed(BROKEN["one id used in two turns"]) if m["role"] == "tool"]
    assert contents == ["ok", OUTCOME_UNKNOWN, "second"]


async def test_lm01_a_result_is_never_given_to_a_call_that_it_cannot_belong_to() -> None:
    again = [user("go"), said(made("c1")), user("again"), said(made("c1")), result("c1", "of the second")]
    assert [m["content"] for m in healed(again) if m["role"] == "tool"] == [OUTCOME_UNKNOWN, "of the second"]
    in_front = [user("go"), result("c1", "of nothing"), said(made("c1")), user("on")]
    assert [m["content"] for m in healed(in_front) if m["role"] == "tool"] == [OUTCOME_UNKNOWN]


async def test_lm01_any_spoiled_history_heals_and_any_valid_one_is_left_alone() -> None:
    for seed in range(400):
        valid, spoiled = valid_history(seed), spoiled_history(seed)
        assert healed(valid) == valid
        mended = healed(spoiled)
        assert broken_rule({"messages": mended}) is None, (seed, json.dumps(spoiled))
        assert healed(mended) == mended
