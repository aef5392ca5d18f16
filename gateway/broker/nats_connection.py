"""The connection to a NATS server: made within a time at the start, and made again by itself for ever after."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import nats.errors
from nats.aio.client import Client

from gateway.broker.nats_calls import LOST, whole
from gateway.broker.protocol import BrokerUnusable

log = logging.getLogger(__name__)

CONNECT_SECONDS, RECONNECT_SECONDS, PING_SECONDS = 5.0, 0.2, 5


class Connection:
    """Tells the operator once of each loss, and of each return. `on_back` is called at each return."""

    def __init__(self, url: str) -> None:
        self.url, self.client = url, Client()
        self.on_back: Callable[[], None] = lambda: None
        self._trouble = ""
        self._quiet = True  # while it is made, and when it is closed by us

    async def open(self, seconds: float, **options: Any) -> None:
        """`options` are nats-py's. Raises BrokerUnusable."""
        try:
            async with asyncio.timeout(seconds):
                await self.client.connect(
                    self.url,
                    name="frontdesk",
                    reconnect_time_wait=RECONNECT_SECONDS,  # type: ignore[arg-type]
                    max_reconnect_attempts=-1,
                    ping_interval=PING_SECONDS,
                    error_cb=self._failed,
                    disconnected_cb=self._lost,
                    reconnected_cb=self._back,
                    **options,
                )
        except (*LOST, nats.errors.Error, TimeoutError) as error:
            await self.client.close()
            raise BrokerUnusable(f"{self.url}: {self._words(str(error))}") from error
        self._quiet = False

    def _words(self, error: str) -> str:
        why = self._trouble or error
        if "authorization" in why.lower():
            return f"the NATS server refused the token ({why}): set [broker] token."
        return f"no NATS server answers ({why}): start nats-server there, or set [broker] url."

    def check(self) -> None:
        """Raises BrokerUnusable when it is gone for good: the server does not want us any more."""
        if self.client.is_closed and not self._quiet:
            raise BrokerUnusable(f"{self.url}: {self._words('it closed the connection')}")

    async def close(self) -> None:
        self._quiet = True
        with suppress(*LOST):
            await whole(self.client.flush(timeout=1))
        with suppress(*LOST):  # what it had still to send to a server that is gone
            await whole(self.client.close())

    async def _failed(self, error: Exception) -> None:
        self._trouble = str(error) or type(error).__name__

    async def _lost(self) -> None:
        if not self._quiet:
            log.warning("%s: the connection is lost; trying again", self.url)

    async def _back(self) -> None:
        log.warning("%s: connected again", self.url)
        self.on_back()
