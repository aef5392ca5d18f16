"""A scripted server that speaks OpenAI's chat completions on a real socket, as strict about histories as the real one.

    async with ScriptedOpenAI() as server:
        server.script([Reply(text="Hello"), Reply(calls=[call("act", query="book Rome")]), Error(429, retry_after=1)])
        ...                                     # point a model at server.base_url
        received = await server.arrived(1)      # the first request, as soon as it is there
        assert received.last_user == "hi"

A script is a list, used up in order, or a function of the request. What it gives:

    Reply(text, calls, …)         an answer, streamed in `chunks` pieces; with a `gate` it stops after the first piece
    Error(status, …)              a refusal before anything was streamed
    Cut(after, reply, error)      the reply, broken off after `after` pieces: by a reset, or by an error in the stream
    Hold(event, then)             nothing until the event is set
    Raw(pieces, content_type)     these bytes, as odd as servers write them
"""

import asyncio
import inspect
import json
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.patience import PATIENCE_SECONDS
from tests.servers.openai_rules import broken_rule, text_of


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: str  # as the model writes it, valid or not
    id: str | None = None


def call(name: str, /, **arguments: Any) -> Call:
    """A call with these arguments. For a malformed one: Call("act", '{"query": "bo')."""
    return Call(name, json.dumps(arguments))


@dataclass(frozen=True, slots=True)
class Reply:
    text: str | None = ""
    calls: Sequence[Call] = ()
    chunks: int = 1  # pieces of the text; each call comes in three: its name, and two halves of its arguments
    finish: str | None = "auto"  # auto: tool_calls or stop; None: [DONE] without a finish reason
    reasoning: str = ""
    usage: tuple[int, int] | None = (100, 20)  # prompt and completion tokens; None: the server does not count
    cached_tokens: int = 0
    one_index: bool = False  # parallel calls under one index, told apart by their ids only
    delay_seconds: float = 0.0  # until the first piece
    pace_seconds: float = 0.0  # between pieces
    gate: asyncio.Event | None = None  # awaited after the first piece
    done: bool = True  # False: the body just ends, without [DONE]
    raw: Sequence[dict[str, Any]] = ()  # deltas to send as they are, after the text
    whole: dict[str, Any] | None = None  # a body to send at once, as a server does that cannot stream


@dataclass(frozen=True, slots=True)
class Error:
    status: int
    message: str = "scripted"
    code: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    after: int = 1
    reply: Reply = Reply(text="The total is 42 and", chunks=2)
    error: Error | None = None  # None: the connection is reset


@dataclass(frozen=True, slots=True)
class Hold:
    event: asyncio.Event
    then: "Reply | Error | Cut" = Reply(text="released")


@dataclass(frozen=True, slots=True)
class Raw:
    """These pieces, as they are; `stays` leaves the connection open behind them, with a sign of life now and then."""

    pieces: Sequence[bytes]
    content_type: str = "text/event-stream"
    status: int = 200
    stays: bool = False


CONTEXT_TOO_LONG = Error(400, "This model's maximum context length is 128000 tokens.", code="context_length_exceeded")

Step = Reply | Error | Cut | Hold | Raw


@dataclass(slots=True, eq=False)
class Received:
    """One request. Times are time.monotonic(); `closed_at` is set when the client hung up before the answer's end."""

    body: dict[str, Any]
    headers: dict[str, str]
    arrived_at: float
    first_sent_at: float | None = None
    finished_at: float | None = None
    closed_at: float | None = None
    streaming: asyncio.Event = field(default_factory=asyncio.Event)  # set once the first piece is out
    over: asyncio.Event = field(default_factory=asyncio.Event)  # set when it is answered, or the client hung up

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]

    @property
    def last_user(self) -> str:
        return next((text_of(m) for m in reversed(self.messages) if m["role"] == "user"), "")

    @property
    def text(self) -> str:
        """All texts of the messages, one below the other."""
        return "\n".join(text_of(message) for message in self.messages)


Script = Callable[[Received], Step | Awaitable[Step]]


class ScriptedOpenAI:
    """The server. `requests` in the order of arrival; `complaints` are the refusals that no script asked for."""

    def __init__(self, *, api_key: str | None = None, context_tokens: int | None = None) -> None:
        self.requests: list[Received] = []
        self.complaints: list[str] = []
        self.knows: set[str] = set()  # fields of messages beyond OpenAI's
        self.base_url = ""
        self._api_key = api_key
        self.context_tokens = context_tokens
        self._script: Script = lambda request: Reply(text="ok")
        self._arrival = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    def script(self, steps: Script | Sequence[Step]) -> None:
        """From now on. A list that is used up answers 500, and complains."""
        self._script = steps if callable(steps) else _in_order(list(steps), self.complaints)

    async def arrived(self, count: int) -> Received:
        """The request of this number (from 1), waiting until it has arrived."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def forget(self) -> None:
        """Forget the requests and complaints so far; for a server that several tests share."""
        self.requests.clear()
        self.complaints.clear()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        await web.SockSite(self._runner, listening).start()
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        if self._key_is_wrong(request):
            return refused(Error(401, "Incorrect API key provided", code="invalid_api_key"))
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def _key_is_wrong(self, request: web.Request) -> bool:
        return self._api_key is not None and request.headers.get("Authorization") != f"Bearer {self._api_key}"

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        at = time.monotonic()
        received = Received(body=await request.json(), headers=dict(request.headers), arrived_at=at)
        self.requests.append(received)
        async with self._arrival:
            self._arrival.notify_all()
        try:
            return await self._answer(request, received)
        except (asyncio.CancelledError, ConnectionError):
            if received.finished_at is None:
                received.closed_at = time.monotonic()
            raise
        finally:
            received.over.set()

    async def _answer(self, request: web.Request, received: Received) -> web.StreamResponse:
        if self._key_is_wrong(request):
            return refused(Error(401, "Incorrect API key provided: wrong", code="invalid_api_key"))
        if complaint := broken_rule(received.body, self.knows):
            self.complaints.append(complaint)
            return refused(Error(400, complaint, code="invalid_request_error"))
        if self.context_tokens is not None and len(received.text) // 4 > self.context_tokens:
            return refused(CONTEXT_TOO_LONG)
        step = self._script(received)
        if inspect.isawaitable(step):
            step = await step
        if isinstance(step, Hold):
            await step.event.wait()
            step = step.then
        if isinstance(step, Error):
            received.finished_at = time.monotonic()
            return refused(step)
        if isinstance(step, Raw):
            return await _raw(request, received, step)
        return await _stream(request, received, step)


async def _stream(request: web.Request, received: Received, step: Reply | Cut) -> web.StreamResponse:
    reply = step.reply if isinstance(step, Cut) else step
    if reply.delay_seconds:
        await asyncio.sleep(reply.delay_seconds)
    if reply.whole is not None or not received.body.get("stream"):
        received.finished_at = time.monotonic()
        return web.json_response(reply.whole or _whole(reply, received.body["model"]))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number, delta in enumerate(_deltas(reply)):
        if isinstance(step, Cut) and number == step.after:
            return await _break_off(request, response, step.error)
        await response.write(_event(received, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
        if number == 0:
            received.first_sent_at = time.monotonic()
            received.streaming.set()
            if reply.gate is not None:
                await reply.gate.wait()
        if reply.pace_seconds:
            await asyncio.sleep(reply.pace_seconds)
    if isinstance(step, Cut):
        return await _break_off(request, response, step.error)
    await response.write(_ending(received, reply))
    received.finished_at = time.monotonic()
    await response.write_eof()
    return response


async def _raw(request: web.Request, received: Received, raw: Raw) -> web.StreamResponse:
    response = web.StreamResponse(status=raw.status, headers={"Content-Type": raw.content_type})
    await response.prepare(request)
    for piece in raw.pieces:
        await response.write(piece)
        await asyncio.sleep(0)
    while raw.stays:
        await response.write(b": still there\n\n")
        await asyncio.sleep(0.02)
    received.finished_at = time.monotonic()
    await response.write_eof()
    return response


def _deltas(reply: Reply) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    if reply.reasoning:
        deltas.append({"role": "assistant", "content": None, "reasoning_content": reply.reasoning})
    if reply.text:
        size = -(-len(reply.text) // reply.chunks)
        deltas += [{"content": reply.text[i : i + size]} for i in range(0, len(reply.text), size)]
    for number, made in enumerate(reply.calls):
        index = 0 if reply.one_index else number
        head = {"name": made.name, "arguments": ""}
        opening = {"index": index, "id": made.id or f"call_{number}", "type": "function", "function": head}
        deltas.append({"tool_calls": [opening]})
        half = -(-len(made.arguments) // 2)
        for piece in (made.arguments[:half], made.arguments[half:]):
            if piece:
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    deltas += reply.raw
    return deltas or [{"role": "assistant", "content": reply.text}]


def _ending(received: Received, reply: Reply) -> bytes:
    out = b""
    if reply.finish is not None:
        finish = _finish(reply)
        out += _event(received, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if reply.usage and (received.body.get("stream_options") or {}).get("include_usage"):
        out += _event(received, {"choices": [], "usage": _usage(reply)})
    return out + (b"data: [DONE]\n\n" if reply.done else b"")


def _finish(reply: Reply) -> str | None:
    return ("tool_calls" if reply.calls else "stop") if reply.finish == "auto" else reply.finish


def _usage(reply: Reply) -> dict[str, Any]:
    prompt, completion = reply.usage or (0, 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def _whole(reply: Reply, model: str) -> dict[str, Any]:
    calls = [
        {"id": c.id or f"call_{n}", "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for n, c in enumerate(reply.calls)
    ]
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": _usage(reply),
    }


def _event(received: Received, part: dict[str, Any]) -> bytes:
    head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1, "model": received.body["model"]}
    return b"data: " + json.dumps(head | part).encode() + b"\n\n"


async def _break_off(request: web.Request, response: web.StreamResponse, error: Error | None) -> web.StreamResponse:
    if error is not None:
        inner = {"message": error.message, "code": error.code or error.status, "type": "server_error"}
        await response.write(b"data: " + json.dumps({"error": inner}).encode() + b"\n\n")
        await response.write_eof()
        return response
    assert request.transport is not None
    connection: socket.socket = request.transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset
    request.transport.abort()
    return response


def refused(error: Error) -> web.Response:
    headers = {"Retry-After": f"{error.retry_after:g}"} if error.retry_after is not None else None
    inner = {"message": error.message, "type": "scripted_error", "code": error.code}
    return web.json_response({"error": inner}, status=error.status, headers=headers)


def _in_order(steps: list[Step], complaints: list[str]) -> Script:
    def next_step(request: Received) -> Step:
        if not steps:
            complaints.append(f"the script is used up; asked: {request.last_user!r}")
            return Error(500, "the script is used up")
        return steps.pop(0)

    return next_step
