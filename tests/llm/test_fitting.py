"""LM02 and LM07: what is left out so that a history fits, and what never is."""

import time

import pytest

from gateway.llm.fitting import Fitting
from gateway.llm.history import SHORTENED_CHARS_MIN, estimated_tokens, fitted, shortened
from gateway.llm.model import ModelError, Request
from tests.llm.conftest import DIRECT, KEY, Make
from tests.llm.histories import SYSTEM, Message, made, result, said, user, valid_history
from tests.servers.openai import CONTEXT_TOO_LONG, Reply, ScriptedOpenAI
from tests.servers.openai_rules import broken_rule

pytestmark = pytest.mark.asyncio(loop_scope="session")

CYCLE = [
    SYSTEM,
    user("u" * 1600),
    said(made("c1", arguments='{"q": "' + "a" * 230 + '"}')),
    result("c1", "r" * 120),
    user("next question"),
]


def total(messages: list[Message]) -> int:
    return sum(estimated_tokens(m) for m in messages)


@pytest.mark.parametrize("budget", [30, 45, 55, 70, 90, 150, 10_000])
async def test_lm02_no_budget_splits_a_call_from_its_result(budget: int) -> None:
    kept = fitted(CYCLE, budget)
    assert broken_rule({"messages": kept}) is None
    assert kept[0] == SYSTEM
    assert kept[-1] == user("next question")
    assert total(kept) <= budget
    assert kept[1]["role"] == "user"


async def test_lm02_any_history_at_any_budget_keeps_the_rules_and_what_must_survive() -> None:
    for seed in range(200):
        history = valid_history(seed)
        latest = next(m for m in reversed(history) if m["role"] == "user")
        for budget in (0, 30, 100, 300, 1000, 3000, 10**6):
            kept = fitted(history, budget)
            assert broken_rule({"messages": kept}) is None, (seed, budget)
            assert kept[0] == SYSTEM
            survivor = next(m for m in reversed(kept) if m["role"] == "user")
            assert survivor["content"][:100] == latest["content"][:100]
            assert kept == history or total(kept) < total(history)


async def test_lm02_a_cycle_larger_than_the_budget_is_shortened_with_a_marker() -> None:
    calls = [made(f"c{n}") for n in range(3)]
    history = [SYSTEM, user("read all"), said(*calls), *(result(c["id"], "line\n" * 9000) for c in calls)]
    kept = fitted(history, 2000)
    assert total(kept) <= 2000
    assert [m["role"] for m in kept] == [m["role"] for m in history]
    assert all("characters left out" in m["content"] for m in kept if m["role"] == "tool")


async def test_lm02_the_newest_work_outlives_the_oldest() -> None:
    work = [m for n in range(50) for m in (said(made(f"c{n}")), result(f"c{n}", f"step {n} " + "x" * 400))]
    kept = fitted([SYSTEM, user("the brief"), *work], 1500)
    assert kept[:2] == [SYSTEM, user("the brief")]
    assert kept[-1] == work[-1]
    assert total(kept) <= 1500


HUGE: dict[str, list[Message]] = {
    "one result of two million characters": [
        user("read it"),
        said(made("c1")),
        result("c1", '{"rows": [' + "1.25," * 388_000 + "1]}"),
    ],
    "three of 220,000 in one turn": [
        user("read them"),
        said(made("c1"), made("c2"), made("c3")),
        *(result(f"c{n}", "é" * 220_000) for n in (1, 2, 3)),
    ],
    "binary with NULs": [user("cat it"), said(made("c1")), result("c1", "\x00\x01\ud83d" * 400_000)],
    "a paste of 90,000 characters": [user("first"), said(text="yes?"), user("look: " + "paste " * 15_000)],
}


@pytest.mark.parametrize("name", HUGE)
async def test_lm07_the_turn_completes_and_so_does_the_next_one(name: str, make: Make) -> None:
    async with ScriptedOpenAI(api_key=KEY, context_tokens=8_000) as small:
        asked = Fitting(make(DIRECT, api_base=small.base_url), budget_tokens=20_000)  # more than it really takes
        history = [SYSTEM, *HUGE[name]]
        assert (await asked.generate(Request(messages=history))).text == "ok"
        history += [said(text="ok"), user("and what else?")]
        assert (await asked.generate(Request(messages=history))).text == "ok"
        assert small.complaints == []
        assert small.requests[-1].last_user == "and what else?"


async def test_lm07_a_context_error_is_never_answered_with_the_same_request(make: Make, server: ScriptedOpenAI) -> None:
    server.script([CONTEXT_TOO_LONG, CONTEXT_TOO_LONG, Reply(text="enough")])
    history = [SYSTEM, *(user(f"{n} " + "x" * 2000) for n in range(40))]
    answer = await Fitting(make(DIRECT), budget_tokens=50_000).generate(Request(messages=history))
    assert answer.text == "enough"
    sizes = [len(r.text) for r in server.requests]
    assert sizes[0] > sizes[1] > sizes[2]


async def test_lm07_what_cannot_be_shortened_further_is_an_error_not_a_loop(make: Make, server: ScriptedOpenAI) -> None:
    server.script(lambda request: CONTEXT_TOO_LONG)
    with pytest.raises(ModelError) as failed:
        await Fitting(make(DIRECT), budget_tokens=50_000).generate(Request(messages=[SYSTEM, user("hi")]))
    assert failed.value.kind == "context_too_long"
    assert len(server.requests) == 1


async def test_lm07_shortening_says_how_much_and_where_the_rest_is() -> None:
    text = shortened("a" * 5000 + "the end", 1000, where="blob 1f3c")
    assert len(text) <= 1000
    assert "characters left out; all of it: blob 1f3c" in text
    assert text.endswith("the end")
    assert shortened("short", SHORTENED_CHARS_MIN) == "short"


async def test_fitting_a_long_history_does_not_stall_the_loop() -> None:
    history = [SYSTEM, *(m for n in range(2000) for m in (user("я" * 500), said(text="y" * 500)))]
    started = time.perf_counter()
    fitted(history, 50_000)
    assert time.perf_counter() - started < 2.0  # some ms; a wide bound for a busy machine
