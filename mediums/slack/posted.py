"""Slack's Events API over HTTP: for who would rather be called at an address than hold a connection open.

A delivery is answered with 200 once what it says is stored; one that is not stored in time is refused, and Slack sends
it again. Who cannot sign as Slack does is refused before a byte is read as anything.

https://docs.slack.dev/apis/events-api/using-http-request-urls · https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from mediums.slack.connection import Envelope, Envelopes
from mediums.slack.door import Door

PATH = "/slack/events"
BODY_BYTES_MAX = 1 << 20
STORED_SECONDS = 10.0  # Slack waits for three, and then sends it again; what was stored meanwhile is known by then
AGAIN_SECONDS = 5.0


class Posted:
    """Puts each delivery into `envelopes`. `tell` hears what is wrong, and "" when all is well."""

    def __init__(self, door: Door, envelopes: Envelopes, tell: Callable[[str], None]) -> None:
        self._door, self._envelopes, self._tell = door, envelopes, tell
        self._verifier = SignatureVerifier(door.signing_secret)

    async def run(self) -> None:
        """For ever."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post(PATH, self._take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            while True:
                try:
                    await web.TCPSite(runner, self._door.host, self._door.port).start()
                except OSError as error:
                    where = f"{self._door.host}:{self._door.port}"
                    self._tell(
                        f"{where} cannot be listened on ({error.strerror or error}): is it in use? Set "
                        "mediums.slack.listen to another address."
                    )
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                self._tell("")
                await asyncio.Future()
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not self._verifier.is_valid_request(body, {name.lower(): value for name, value in request.headers.items()}):
            return web.Response(status=401, text="not signed by Slack with mediums.slack.signing_secret, or too old")
        try:
            kind, payload = _read(request.content_type, body)
        except (ValueError, TypeError, KeyError):
            return web.Response(status=400, text="not shaped as Slack's documentation says")
        if kind == "url_verification":
            return web.Response(text=str(payload["challenge"]))
        return await self._stored(kind, payload)

    async def _stored(self, kind: str, payload: dict[str, Any]) -> web.Response:
        stored = asyncio.Event()

        async def acknowledge() -> None:
            stored.set()

        try:
            self._envelopes.put_nowait(Envelope(kind, payload, acknowledge))
            async with asyncio.timeout(STORED_SECONDS):
                await stored.wait()
        except (asyncio.QueueFull, TimeoutError):
            return web.Response(status=503, text="not stored yet: send it again")
        return web.Response()


def _read(content_type: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """As Socket Mode names them. Raises ValueError, TypeError or KeyError."""
    if content_type == "application/json":
        payload = _object(body)
        if payload["type"] == "url_verification":
            return "url_verification", {"challenge": payload["challenge"]}
        return "events_api", payload
    form = parse_qs(body.decode())
    if "payload" in form:
        return "interactive", _object(form["payload"][0])
    return "slash_commands", {}


def _object(text: str | bytes) -> dict[str, Any]:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise TypeError("no object")
    return read
