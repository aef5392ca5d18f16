"""Requests to the Bot API over aiohttp: one pool of connections, and honest failures. No library, no method of the API.

A failure says whether the request ever left, and keeps the answer's status and words.
"""

import io
import json
from typing import Any
from urllib.parse import urlencode

import aiohttp

from mediums.proxies import has_proxies
from mediums.telegram.failures import Failure, Unreachable, refusal

CONNECT_SECONDS = 5.0
KEEP_OPEN_SECONDS = 30.0  # an idle connection; a message after a pause does not wait for a handshake
AGENT = {"User-Agent": "frontdesk"}

_NEVER_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


class RequestFailed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


class Http:
    """The session is made with the first request, inside the loop. Deadlines are the caller's."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, url: str, parameters: dict[str, str] | aiohttp.FormData | None = None
    ) -> tuple[int, bytes]:
        """Status and body of an answer below 400. Raises RequestFailed."""
        data = _form(parameters) if isinstance(parameters, dict) else parameters
        try:
            async with self._opened().request(method, url, data=data) as answer:
                status, body = answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RequestFailed(Unreachable(why=why, left=not isinstance(error, _NEVER_LEFT))) from None
        if status >= 400:
            raise RequestFailed(refusal(status, body))
        return status, body

    async def result(self, url: str, parameters: dict[str, str]) -> Any:
        """What a method of the API answers. Raises RequestFailed."""
        _, body = await self.request("POST", url, parameters)
        return _result(body)

    async def fetch(self, url: str, most_bytes: int) -> bytes:
        """At most one byte more than `most_bytes`, and no redirect is followed. Raises RequestFailed."""
        try:
            async with self._opened().get(url, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise RequestFailed(refusal(answer.status, await answer.content.read(10_000)))
                data = bytearray()
                while len(data) <= most_bytes and (more := await answer.content.read(most_bytes + 1 - len(data))):
                    data += more
                return bytes(data)
        except (aiohttp.ClientError, OSError) as error:
            raise RequestFailed(Unreachable(why=f"{type(error).__name__}: {error}", left=True)) from None

    async def upload(self, url: str, parameters: dict[str, str], field: str, name: str, data: bytes) -> Any:
        """What a method of the API answers that is given a file. Raises RequestFailed."""
        form = aiohttp.FormData(parameters, quote_fields=False)  # Telegram shows a percent sign as one
        form.add_field(field, io.BytesIO(data), filename=name)
        _, body = await self.request("POST", url, form)
        return _result(body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEP_OPEN_SECONDS)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, headers=AGENT, trust_env=has_proxies()
            )
        return self._session


def _form(parameters: dict[str, str]) -> aiohttp.BytesPayload:
    """As aiohttp's own, which would make ready for files first."""
    return aiohttp.BytesPayload(urlencode(parameters).encode(), content_type="application/x-www-form-urlencoded")


def _result(body: bytes) -> Any:
    try:
        return json.loads(body)["result"]
    except (ValueError, KeyError, TypeError):
        raise RequestFailed(Unreachable(why="the answer is not the Bot API's", left=True)) from None
