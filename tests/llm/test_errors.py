"""What a refusal means, and what the operator is told; over real HTTP, directly and by litellm."""

import asyncio
import socket
import time

import pytest

from gateway.llm.client import HelperModel
from gateway.llm.model import ModelError, Usage
from tests.llm.conftest import BY_LITELLM, DIRECT, KEY, Make, asking
from tests.servers.openai import CONTEXT_TOO_LONG, Cut, Error, Hold, Reply, ScriptedOpenAI

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFUSALS = {
    "key": (Error(401, f"Incorrect API key provided: {KEY}"), "key_refused", False, "set model.api_key in config.toml"),
    "forbidden": (Error(403, "Country not supported"), "key_refused", False, "model.api_key"),
    "model": (Error(404, "The model does not exist", code="model_not_found"), "model_unknown", False, "model.name"),
    "rate": (Error(429, "Slow down", retry_after=20), "rate_limited", True, "model.fallbacks"),
    "credit": (
        Error(429, "You exceeded your current quota", code="insufficient_quota"),
        "rate_limited",
        False,
        "top up",
    ),
    "server": (Error(500, "oops"), "overloaded", True, "wait"),
    "unavailable": (Error(503, "oops"), "overloaded", True, "wait"),
    "overload": (Error(529, "Overloaded"), "overloaded", True, "wait"),
    "context": (CONTEXT_TOO_LONG, "context_too_long", False, "reads more"),
    "request": (Error(400, "Unknown parameter: 'x'"), "bad_request", False, "tool_calls"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_says_what_failed_and_what_to_do(
    name: str, model: HelperModel, server: ScriptedOpenAI, spent: list[object]
) -> None:
    error, kind, retryable, mend = REFUSALS[name]
    server.script([error])
    with pytest.raises(ModelError) as failed:
        await model.generate(asking())
    told = failed.value
    assert (told.kind, told.retryable, told.retry_after_seconds) == (kind, retryable, error.retry_after)
    assert model.name in told.for_operator
    assert server.base_url in told.for_operator
    assert mend in told.for_operator
    assert KEY not in told.for_operator
    assert "litellm" not in told.for_operator
    assert spent == []
    assert len(server.requests) == 1


async def test_a_wrong_key_is_refused_and_never_repeated_in_the_error(make: Make, server: ScriptedOpenAI) -> None:
    for name in (DIRECT, BY_LITELLM):
        with pytest.raises(ModelError) as failed:
            await make(name, api_key="another-secret").generate(asking())
        assert failed.value.kind == "key_refused"
        assert "another-secret" not in f"{failed.value} {failed.value.args!r}"


async def test_nobody_listens(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for name in (DIRECT, BY_LITELLM):
        with pytest.raises(ModelError) as failed:
            await make(name, api_base=f"http://127.0.0.1:{port}/v1").generate(asking())
        assert (failed.value.kind, failed.value.retryable) == ("unreachable", True)
        assert "check the network and model.api_base" in failed.value.for_operator


async def test_an_address_that_is_none(make: Make) -> None:
    with pytest.raises(ModelError) as failed:
        await make(DIRECT, api_base="not an address").generate(asking())
    assert failed.value.kind == "unreachable"


async def test_a_provider_that_nobody_knows(make: Make) -> None:
    with pytest.raises(ModelError) as failed:
        await make("nosuchprovider/x").generate(asking())
    assert not failed.value.retryable
    assert "nosuchprovider/x" in failed.value.for_operator


async def test_lm06_a_broken_stream_costs_what_had_come(
    model: HelperModel, server: ScriptedOpenAI, spent: list[object]
) -> None:
    server.script([Cut(after=1), Cut(after=2, error=Error(529, "Overloaded"))])
    kinds = []
    for _ in range(2):
        with pytest.raises(ModelError) as failed:
            await model.generate(asking("x" * 400))
        usage = failed.value.usage
        assert usage is not None
        assert usage.estimated
        assert usage.prompt_tokens >= 90
        assert usage.completion_tokens >= 2
        assert spent[-1] == (model.name, usage)
        kinds.append(failed.value.kind)
    assert kinds == ["stream_cut", "overloaded"]
    assert len(spent) == 2


async def test_cancelling_closes_the_connection_at_once_and_reports_the_cost(
    model: HelperModel, server: ScriptedOpenAI, spent: list[tuple[str, Usage]]
) -> None:
    server.script(lambda request: Reply(text="many words " * 40, chunks=8, gate=asyncio.Event()))
    took = [await _seconds_to_close(model, server, in_the_stream=True) for _ in range(3)]
    assert min(took) < 1.0  # 1 to 2 ms; one of three, since the machine may be busy
    while len(spent) < 3:
        await asyncio.sleep(0)
    for name, usage in spent:
        assert name == model.name
        assert usage.estimated
        assert usage.prompt_tokens >= 90


async def test_cancelling_before_the_first_byte_closes_the_connection_too(
    model: HelperModel, server: ScriptedOpenAI
) -> None:
    server.script(lambda request: Hold(asyncio.Event()))
    took = [await _seconds_to_close(model, server, in_the_stream=False) for _ in range(3)]
    assert min(took) < 1.0


async def _seconds_to_close(model: HelperModel, server: ScriptedOpenAI, *, in_the_stream: bool) -> float:
    server.forget()
    task = asyncio.create_task(model.generate(asking("x" * 400)))
    received = await server.arrived(1)
    if in_the_stream:
        await received.streaming.wait()
    cancelled_at = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await received.over.wait()
    assert received.closed_at is not None
    return received.closed_at - cancelled_at
