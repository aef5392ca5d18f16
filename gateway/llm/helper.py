"""The process that talks to providers: `python -m gateway.llm.helper FD`, at the far end of an inherited socketpair.

Here: frames in, calls run side by side, frames out. Not here: retries, and any decision. It is a process of its own
because litellm takes 5 s to import, 200 MB, and stalls an event loop for up to seconds; the gateway's must answer.
It ends when the gateway's end of the socket closes, however that came to be. Keys come in the frames and stay there.
"""

import asyncio
import contextlib
import gc
import importlib
import os
import re
import socket
import sys
from functools import partial
from types import ModuleType

import msgspec

from gateway.hiding import hide_memory
from gateway.llm.attempt import Attempt
from gateway.llm.frames import Answered, Ask, Cancel, Cancelled, Failed, Frame, Ready, Warm, encoded, read_for_helper
from gateway.llm.model import Generation, ModelError
from gateway.llm.prices import price_map, price_of
from gateway.llm.provider_openai import OpenAIProvider
from gateway.llm.quirks import own_fields_only, provider_of
from gateway.llm.refusals import model_error, without_key

_MISSES_REASONING = re.compile(r"reasoning_content.{0,80}(must be passed|missing|required)", re.IGNORECASE)


class Helper:
    """Serves one connection. The bound on calls at once is the gateway's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._openai = OpenAIProvider()
        self._litellm: asyncio.Task[ModuleType] | None = None
        self._calls: dict[int, asyncio.Task[Generation]] = {}
        self._thinking: set[tuple[str, str | None]] = set()  # models that want their reasoning back

    async def serve(self) -> None:
        """Until the gateway closes its end; then every call is cancelled, and what it cost is still said."""
        price_map()
        gc.freeze()
        self._say(Ready())
        try:
            while True:
                self._take(await read_for_helper(self._reader))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        running = list(self._calls.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=1)
        await self._openai.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def _take(self, frame: Frame) -> None:
        match frame:
            case Ask():
                attempt = Attempt(frame.endpoint, frame.request)
                task = asyncio.create_task(self._generate(attempt))
                self._calls[frame.id] = task
                task.add_done_callback(partial(self._report, frame.id, attempt))
            case Cancel():
                if running := self._calls.get(frame.id):
                    running.cancel()
            case Warm():
                if any(needs_litellm(name, None) for name in frame.names):
                    self._load_litellm()

    async def _generate(self, attempt: Attempt) -> Generation:
        """What another model left in its answers (signatures, thoughts) this one may refuse, or miss: then it is asked
        once more, as it wants it."""
        where = (attempt.endpoint.name, attempt.endpoint.api_base)
        attempt.thinks = where in self._thinking
        try:
            return await self._ask(attempt)
        except ModelError as error:
            bare = [own_fields_only(message, "") for message in attempt.request.messages]
            misses = not attempt.thinks and bool(_MISSES_REASONING.search(str(error)))
            mends = misses or bare != attempt.request.messages
            if error.kind != "bad_request" or not mends or attempt.assembler.characters:
                raise
        if misses:
            attempt.thinks = True
            self._thinking.add(where)
        else:
            attempt.request = msgspec.structs.replace(attempt.request, messages=bare)
        return await self._ask(attempt)

    async def _ask(self, attempt: Attempt) -> Generation:
        if not needs_litellm(attempt.endpoint.name, attempt.endpoint.api_base):
            return await self._openai.generate(attempt)
        provider = await asyncio.shield(self._load_litellm())
        generation: Generation = await provider.generate(attempt)
        return generation

    def _load_litellm(self) -> asyncio.Task[ModuleType]:
        """Once, in a thread, so that OpenAI's own models are answered meanwhile."""
        if self._litellm is None:
            self._litellm = asyncio.create_task(
                asyncio.to_thread(importlib.import_module, "gateway.llm.provider_litellm")
            )
        return self._litellm

    def _report(self, call_id: int, attempt: Attempt, task: asyncio.Task[Generation]) -> None:
        """Somebody waits: what cannot be said is at least a failure."""
        del self._calls[call_id]
        try:
            self._say(_outcome(call_id, attempt, task))
        except (ValueError, OverflowError) as error:
            self._say(_failed(call_id, attempt, error))

    def _say(self, frame: Frame) -> None:
        self._writer.write(encoded(frame))  # small, and the gateway always reads: no need to wait


def needs_litellm(name: str, api_base: str | None) -> bool:
    """Whether a model is reached through litellm: all but OpenAI's chat completions, and what imitates them."""
    if provider_of(name) != "openai":
        return True
    price = price_of(name) if api_base is None else None
    return price is not None and price.mode == "responses"


def _outcome(call_id: int, attempt: Attempt, task: asyncio.Task[Generation]) -> Frame:
    if task.cancelled():
        return Cancelled(id=call_id, usage=attempt.spent())
    if (error := task.exception()) is not None:
        return _failed(call_id, attempt, error)
    return Answered(id=call_id, generation=task.result())


def _failed(call_id: int, attempt: Attempt, error: BaseException) -> Failed:
    if not isinstance(error, ModelError):  # a defect, ours or litellm's: the call fails, and says how
        said = without_key(attempt.endpoint, f"{type(error).__name__}: {error}")
        error = model_error(attempt.endpoint, "bad_request", said, usage=attempt.spent())
    return Failed(
        id=call_id,
        kind=error.kind,
        for_operator=error.for_operator,
        retryable=error.retryable,
        retry_after_seconds=error.retry_after_seconds,
        usage=error.usage,
    )


async def main(fd: int) -> None:
    hide_memory()
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=fd))
    await Helper(reader, writer).serve()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
    os._exit(0)  # litellm leaves threads and exit hooks behind that would wait
