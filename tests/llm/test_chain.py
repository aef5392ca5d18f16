"""LM06: retries and fallbacks, with models and a clock of our own; then once more over real HTTP."""

import asyncio

import pytest

from gateway.llm.chain import REST_SECONDS, TRIES_MAX, Chain
from gateway.llm.client import HelperModel
from gateway.llm.model import ErrorKind, Generation, ModelError, OnSpent, Request
from gateway.llm.refusals import RETRYABLE
from tests.llm.conftest import BY_LITELLM, DIRECT, KEY, Make, asking, tool
from tests.servers.openai import CONTEXT_TOO_LONG, Cut, Error, Reply, ScriptedOpenAI, call

pytestmark = pytest.mark.asyncio(loop_scope="session")


def failing(kind: ErrorKind, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, f"it failed ({kind})", retryable=kind in RETRYABLE, retry_after_seconds=retry_after)


class Scripted:
    """A model that fails with each of these errors in turn, and then answers."""

    def __init__(self, name: str, *errors: ModelError) -> None:
        self.name = name
        self.errors = list(errors)
        self.calls = 0

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return Generation(text=f"by {self.name}", finish="stop", model=self.name)


class Stage:
    """A chain on a clock that only its own sleeping moves."""

    def __init__(self, *models: Scripted) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.notices: list[str] = []
        self.chain = Chain(
            models, notice=self.notices.append, clock=lambda: self.now, sleep=self._sleep, jitter=lambda: 1.0
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def answer(self) -> str:
        return (await self.chain.generate(asking())).text


async def test_an_overloaded_model_is_asked_again_with_growing_pauses() -> None:
    first = Scripted("a", failing("overloaded"), failing("stream_cut"))
    stage = Stage(first)
    assert await stage.answer() == "by a"
    assert stage.slept == [0.5, 1.0]
    assert stage.notices == []


async def test_tries_are_bounded_and_the_last_error_is_told() -> None:
    first = Scripted("a", *(failing("overloaded") for _ in range(9)))
    stage = Stage(first)
    with pytest.raises(ModelError, match="overloaded"):
        await stage.answer()
    assert first.calls == TRIES_MAX


async def test_lm06_retry_after_is_respected() -> None:
    stage = Stage(Scripted("a", failing("rate_limited", 20)))
    assert await stage.answer() == "by a"
    assert stage.slept[0] >= 20


async def test_a_model_that_wants_minutes_is_given_up() -> None:
    first = Scripted("a", failing("rate_limited", 60))
    stage = Stage(first)
    with pytest.raises(ModelError):
        await stage.answer()
    assert stage.slept == []


async def test_lm06_a_model_that_wants_minutes_is_not_asked_again_before() -> None:
    first = Scripted("a", failing("rate_limited", 60))
    stage = Stage(first)
    waits = []
    for _ in range(2):
        with pytest.raises(ModelError) as failed:
            await stage.answer()
        waits.append(failed.value.retry_after_seconds)
        stage.now += 20
    assert (first.calls, waits) == (1, [60, 40])
    assert (await stage.answer(), stage.slept) == ("by a", [20])


async def test_with_a_fallback_nobody_waits_long() -> None:
    stage = Stage(Scripted("a", failing("rate_limited", 20)), Scripted("b"))
    assert await stage.answer() == "by b"
    assert stage.slept == []


@pytest.mark.parametrize("kind", ["key_refused", "model_unknown", "bad_request", "content_filtered"])
async def test_what_a_repeat_cannot_mend_goes_to_the_fallback_at_once(kind: ErrorKind) -> None:
    first = Scripted("a", failing(kind))
    stage = Stage(first, Scripted("b"))
    assert await stage.answer() == "by b"
    assert (first.calls, stage.slept) == (1, [])


async def test_the_operator_is_told_once_of_the_switch_and_once_of_the_return() -> None:
    first = Scripted("a", *(failing("overloaded") for _ in range(TRIES_MAX + 1)))
    stage = Stage(first, Scripted("b"))
    assert [await stage.answer() for _ in range(3)] == ["by b"] * 3
    assert first.calls == TRIES_MAX  # it rests, and is not asked each time
    assert stage.notices == ["it failed (overloaded); answering with b"]
    stage.now += REST_SECONDS
    assert await stage.answer() == "by b"  # one try, still failing
    assert first.calls == TRIES_MAX + 1
    stage.now += REST_SECONDS
    assert await stage.answer() == "by a"
    assert stage.notices == ["it failed (overloaded); answering with b", "a is back and answers again"]


async def test_a_filtered_answer_says_nothing_about_the_model() -> None:
    stage = Stage(Scripted("a", failing("content_filtered")), Scripted("b"))
    assert [await stage.answer(), await stage.answer()] == ["by b", "by a"]
    assert stage.notices == []


async def test_a_call_from_before_the_failure_is_no_sign_of_return() -> None:
    released = asyncio.Event()

    class Slow(Scripted):
        async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
            if not self.calls:
                self.calls += 1
                await released.wait()
                return Generation(text="late", model=self.name)
            return await super().generate(request)

    stage = Stage(Slow("a", failing("key_refused")), Scripted("b"))
    early = asyncio.create_task(stage.answer())
    await asyncio.sleep(0)
    stage.now += 1
    assert await stage.answer() == "by b"
    released.set()
    assert await early == "late"
    assert stage.notices == ["it failed (key_refused); answering with b"]


async def test_when_none_answers_the_first_models_error_is_told_and_all_are_asked_again_next_time() -> None:
    a, b = Scripted("a", failing("key_refused")), Scripted("b", failing("model_unknown"))
    stage = Stage(a, b)
    with pytest.raises(ModelError, match="key_refused"):
        await stage.answer()
    assert await stage.answer() == "by a"


async def test_lm06_a_too_long_context_is_never_sent_again_unchanged() -> None:
    a, b = Scripted("a", failing("context_too_long")), Scripted("b")
    stage = Stage(a, b)
    with pytest.raises(ModelError, match="context_too_long"):
        await stage.answer()
    assert (a.calls, b.calls, stage.slept) == (1, 0, [])


async def test_cancelling_ends_the_wait_between_tries() -> None:
    model = Scripted("a", failing("overloaded"))
    task = asyncio.create_task(Chain([model], notice=str).generate(asking()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.calls == 1


async def test_lm06_an_answer_that_broke_in_the_middle_comes_once_and_whole(
    model: HelperModel, server: ScriptedOpenAI, spent: list[object]
) -> None:
    broken = Cut(after=2, reply=Reply(text="The total is 42 and", chunks=2), error=Error(529))
    server.script([broken, Cut(after=1), Reply(text="The total is 42 and rising.", chunks=4)])
    answer = await Chain([model], notice=str, sleep=_at_once).generate(asking("total?"))
    assert answer.text == "The total is 42 and rising."
    assert len(server.requests) == 3
    assert len(spent) == 2


async def test_lm06_a_call_that_was_whole_before_the_error_comes_once(
    model: HelperModel, server: ScriptedOpenAI
) -> None:
    pay = call("act", query="pay it")
    server.script([Cut(after=3, reply=Reply(calls=[pay]), error=Error(529)), Reply(calls=[pay])])
    answer = await Chain([model], notice=str, sleep=_at_once).generate(asking(tools=[tool("act")]))
    assert [c.parsed() for c in answer.calls] == [{"query": "pay it"}]


async def test_lm06_the_fallback_answers_over_the_other_way(make: Make, server: ScriptedOpenAI) -> None:
    async with ScriptedOpenAI(api_key=KEY) as other:
        server.script([Error(401, "no")])
        other.script([Reply(text="by the other")])
        notices: list[str] = []
        chain = Chain([make(DIRECT), make(BY_LITELLM, api_base=other.base_url)], notice=notices.append)
        answer = await chain.generate(asking())
    assert (answer.text, answer.model) == ("by the other", BY_LITELLM)
    assert len(notices) == 1
    assert "set model.api_key" in notices[0]
    assert notices[0].endswith(f"answering with {BY_LITELLM}")


async def test_lm06_a_real_context_error_is_told_as_one(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script([CONTEXT_TOO_LONG])
    with pytest.raises(ModelError) as failed:
        await Chain([model], notice=str).generate(asking())
    assert failed.value.kind == "context_too_long"
    assert len(server.requests) == 1


async def _at_once(seconds: float) -> None:
    """Instead of sleeping."""
