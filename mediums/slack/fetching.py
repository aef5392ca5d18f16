"""The files that people send on Slack: asked for where only an id is told, fetched, told from a page to sign in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from gateway.files import LARGEST_BYTES, Attachment, Keep
from mediums import incoming
from mediums.incoming import Found, NotFetched
from mediums.slack.failures import CallFailed

if TYPE_CHECKING:
    from mediums.slack.client import Client

log = logging.getLogger(__name__)

NOT_HANDED_OVER = "Slack did not hand it over; please send it again"


class Fetching:
    def __init__(self, account: str, connected: "Callable[[], Awaitable[Client]]") -> None:
        self._account, self._connected = account, connected

    async def taken(self, files: Sequence[Found], keep: Keep) -> tuple[Attachment, ...]:
        named = await asyncio.gather(*(self._named(file) for file in files))
        return await incoming.taken(named, self._fetch, keep, self._account)

    async def _named(self, found: Found) -> Found:
        """With what Slack tells of a file only when it is asked."""
        if found.why or "://" in found.fetch:
            return found
        try:
            return await (await self._connected()).file(found.fetch)
        except CallFailed as error:
            log.warning("%s: a file could not be asked for: %s", self._account, error)
            return msgspec.structs.replace(found, why=NOT_HANDED_OVER)

    async def _fetch(self, found: Found) -> bytes:
        try:
            kind, data = await (await self._connected()).fetch(found.fetch, LARGEST_BYTES)
        except CallFailed as error:
            log.warning("%s: a file could not be fetched: %s", self._account, error)
            raise NotFetched(NOT_HANDED_OVER) from None
        is_page = kind == "text/html" and data[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))
        if is_page and not (found.kind == "text/html" and found.size == len(data)):
            log.warning(
                "%s: instead of a file Slack sent its page to sign in: add the scope files:read to the app, under "
                "OAuth & Permissions, and reinstall it",
                self._account,
            )
            raise NotFetched("I may not read files here yet; the person who runs me has been told")
        return data
