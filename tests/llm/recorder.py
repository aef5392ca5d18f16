"""A server that keeps what any provider's client sends, and answers with one stream of bytes, or with a refusal."""

import asyncio
import json
from typing import Any, Self

from aiohttp import web


class Recorder:
    """`bodies` in the order of arrival. `events` is what it streams; without it, each request is refused with 400."""

    def __init__(self, events: list[dict[str, Any]] | None = None, *, named: bool = False) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.base_url = ""
        self._events = events
        self._named = named  # each event has its type on a line of its own, as Anthropic's have
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/{any:.*}", self._keep)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _keep(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self._events is None:
            return web.json_response({"error": {"message": "recorded"}}, status=400)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self._events:
            name = f"event: {event['type']}\n" if self._named else ""
            await response.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            await asyncio.sleep(0)
        await response.write_eof()
        return response
