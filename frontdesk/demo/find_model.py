"""Which model the demo uses: the one named, else one that a key or a local server offers, else the rehearsal model."""

import asyncio
from collections.abc import Mapping

import aiohttp

from frontdesk.models import REHEARSAL
from gateway.record import Record

KEYS = {
    "OPENAI_API_KEY": "openai/gpt-4.1-mini",
    "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5",
    "GEMINI_API_KEY": "gemini/gemini-2.5-flash",
    "MISTRAL_API_KEY": "mistral/mistral-small-latest",
}
LOCAL = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
PROBE_SECONDS = 0.5


class Found(Record, frozen=True, kw_only=True):
    name: str
    api_base: str | None = None
    key: str | None = None  # the variable that holds it
    why: str = ""


async def find(named: str | None, environ: Mapping[str, str]) -> Found:
    if named is not None:
        return Found(name=named, api_base=environ.get("FRONTDESK_API_BASE"), why="you named it")
    for variable, name in KEYS.items():
        if environ.get(variable):
            return Found(name=name, key=variable, why=f"{variable} is set")
    probes = [_local(port, server) for port, server in LOCAL.items()]
    for found in await asyncio.gather(*probes):
        if found is not None:
            return found
    return Found(name=REHEARSAL, why="no key and no local model server was found")


async def _local(port: int, server: str) -> Found | None:
    """An OpenAI-compatible server names its models."""
    base = f"http://127.0.0.1:{port}/v1"
    try:
        timeout = aiohttp.ClientTimeout(total=PROBE_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"{base}/models") as answer:
            models = (await answer.json())["data"] if answer.status == 200 else []
            return Found(name=f"openai/{models[0]['id']}", api_base=base, why=f"{server} runs here") if models else None
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, IndexError, TypeError):
        return None  # nothing there that speaks this
