"""The local HTTP server: the page's files, the token's cookie, and the socket. Everything about headers is here.

No request passes without the token, but for the one that brings it in the address and is sent on at once without it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from gateway.files import ANY_KIND, LARGEST_BYTES, too_large
from gateway.holding import CannotServe
from gateway.record import encode
from mediums.local import wire
from mediums.local.access import Access
from mediums.local.hub import Hub
from mediums.local.socket import Desk, Socket

MAX_SOCKETS = 32
HEARTBEAT_SECONDS, CLOSE_SECONDS, SHUTDOWN_SECONDS = 20.0, 1.0, 2.0
COOKIE_SECONDS = 30 * 24 * 3600
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
LOCKED = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Frontdesk</title><link rel="stylesheet" href="/style.css"><main class="locked"><h1>This room is locked</h1>
<p>{why}</p><p><a href="/">Try again</a></p></main>"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CannotListen(CannotServe):
    """The address cannot be listened on; the text says why and which key mends it."""


class Server:
    """`port` 0 takes any free one; `port` says which after `start`."""

    def __init__(self, host: str, port: int, token: str, hub: Hub, desk: Desk) -> None:
        self.host, self.port = host, port
        self._token, self._hub, self._desk = token, hub, desk
        self._sockets: set[asyncio.Task[Any]] = set()
        app = web.Application(middlewares=[self._guarded], client_max_size=1024)
        app.router.add_get("/", self._index)
        app.router.add_get("/socket", self._socket)
        app.router.add_post("/files", self._take_file)
        app.router.add_get("/files/{digest}", self._give_file)
        app.router.add_get("/{name}", self._file)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_SECONDS)

    async def start(self) -> None:
        """Raises CannotListen."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotListen(
                f"{self.host}:{self.port} cannot be listened on ({error.strerror or error}): is it in use? "
                "Set mediums.web.listen to another address, as in 127.0.0.1:8766."
            ) from error
        self.port = int(self._runner.addresses[0][1])
        self._access = Access(self.host, self.port, self._token)

    async def stop(self) -> None:
        """Tells every client to come back later, and closes."""
        self._hub.closing = True
        self._hub.wake()
        if self._sockets:  # they say goodbye while the server still hears the answer to it
            await asyncio.wait(self._sockets, timeout=CLOSE_SECONDS)
        await self._runner.cleanup()

    # --- requests ----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        misplaced = self._access.misplaced(request.headers)
        if misplaced:
            return self._locked(403, misplaced)
        if request.path == "/" and self._access.is_token(request.query.get("token", "")):
            return self._let_in(request.query["token"])
        is_socket = request.path == "/socket" or request.method == "POST"  # what another site's page could send too
        public = request.path == "/style.css"  # of the page that says it is locked
        if not public and not self._access.admits(request.headers, request.cookies, socket=is_socket):
            return self._locked(401, "Open the address that frontdesk printed when it started: it holds the token.")
        return await handler(request)

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self._answer(*page_files()["index.html"])

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = page_files().get(request.match_info["name"])
        return self._answer(*found) if found else self._locked(404, "There is no such page.")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self._hub.closing or len(self._sockets) >= MAX_SOCKETS:
            return self._locked(503, f"There are {len(self._sockets)} windows open already: close some.")
        ws = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, timeout=CLOSE_SECONDS, max_msg_size=wire.MAX_FRAME_BYTES, compress=False
        )
        if not ws.can_prepare(request):
            return self._locked(400, "This address is for WebSockets.")
        serving = asyncio.current_task()
        assert serving
        self._sockets.add(serving)
        try:
            await ws.prepare(request)
            await Socket(ws, self._hub, self._desk).run()
        finally:
            self._sockets.discard(serving)
        return ws

    # --- files -------------------------------------------------------------------------------------------------------

    async def _take_file(self, request: web.Request) -> web.StreamResponse:
        """The body is the file, its name in the query. Answers with an `Upload` that a `say` may name."""
        data = bytearray()
        while len(data) <= LARGEST_BYTES and (more := await request.content.read(1 << 16)):
            data += more
        if len(data) > LARGEST_BYTES:
            request.protocol.close()  # the rest of it is not waited for
            return self._answer(too_large(request.content_length).encode(), "text/plain", 413)
        upload = await self._desk.take_file(request.query.get("name", ""), request.content_type, bytes(data))
        return self._answer(encode(upload), "application/json")

    async def _give_file(self, request: web.Request) -> web.StreamResponse:
        """Pictures are shown, all else is for saving: nothing that a stranger sent runs here."""
        found = await self._desk.file(request.match_info["digest"])
        if found is None:
            return self._locked(404, "There is no such file in this room.")
        file, data = found
        shown = file.kind in PICTURES
        quoted = quote(file.name, safe="")
        headers = {
            **self._headers(),
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{quoted}",
        }
        return web.Response(body=data, content_type=file.kind if shown else ANY_KIND, headers=headers)

    # --- answers -----------------------------------------------------------------------------------------------------

    def _let_in(self, token: str) -> web.Response:
        answer = web.Response(status=303, headers={**self._headers(), "Location": "/"})
        answer.set_cookie(
            self._access.cookie, token, max_age=COOKIE_SECONDS, path="/", httponly=True, samesite="Strict"
        )
        return answer

    def _locked(self, status: int, why: str) -> web.Response:
        body = LOCKED.format(why=why.replace("&", "&amp;").replace("<", "&lt;"))
        return self._answer(body.encode(), "text/html", status)

    def _answer(self, body: bytes, kind: str, status: int = 200) -> web.Response:
        return web.Response(body=body, status=status, content_type=kind, charset="utf-8", headers=self._headers())

    def _headers(self) -> Mapping[str, str]:
        """No inline script, nothing from elsewhere (an image's address can carry what was said away), no frame."""
        return {
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }


@cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """By name: content and kind. Read once; a changed file is seen after a restart."""
    files = (Path(__file__).parent / "page").iterdir()
    return {file.name: (file.read_bytes(), KINDS[file.suffix]) for file in files if file.suffix in KINDS}
