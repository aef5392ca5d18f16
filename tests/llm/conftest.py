"""One helper process for the whole folder (litellm takes seconds to import), and a scripted server for each test."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from gateway.llm.client import HelperModel, HelperProcess
from gateway.llm.model import Endpoint, Request, Usage
from tests.servers.openai import ScriptedOpenAI

DIRECT = "openai/scripted"
BY_LITELLM = "hosted_vllm/scripted"
KEY = "hunter-22-secret"

Make = Callable[..., HelperModel]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def helper() -> AsyncIterator[HelperProcess]:
    async with HelperProcess("tests", warm=(BY_LITELLM,)) as process:
        await process.ready()
        yield process


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ScriptedOpenAI]:
    async with ScriptedOpenAI(api_key=KEY) as scripted:
        yield scripted


@pytest.fixture
def spent() -> list[tuple[str, Usage]]:
    """What calls that brought nothing have cost, as `on_spent` was told."""
    return []


@pytest.fixture
def make(helper: HelperProcess, server: ScriptedOpenAI, spent: list[tuple[str, Usage]]) -> Make:
    """A model of this name on the scripted server."""

    def made(name: str, api_key: str = KEY, api_base: str = server.base_url) -> HelperModel:
        endpoint = Endpoint(name=name, api_base=api_base, api_key=api_key)
        return HelperModel(helper, endpoint, lambda model, usage: spent.append((model, usage)))

    return made


@pytest.fixture(params=[DIRECT, BY_LITELLM], ids=["direct", "litellm"])
def model(request: pytest.FixtureRequest, make: Make) -> HelperModel:
    """The same model reached in both ways."""
    return make(request.param)


def asking(text: str = "hi", **more: object) -> Request:
    return Request(messages=[{"role": "user", "content": text}], **more)


def tool(name: str) -> dict[str, object]:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}
