"""Messages and files on their way in, for every medium alike: bounded, and files stored before the message that they
came with, or named with the reason why they were not. No platform is known here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from gateway.events import MessageReceived
from gateway.files import FILES_MAX, LARGEST_BYTES, Attachment, Keep, attachment, too_large
from gateway.llm.history import within
from gateway.record import Record, encode
from mediums.medium import Told

log = logging.getLogger(__name__)

MESSAGE_BYTES = 200_000  # what is made of it must fit an entry of 256 KB as well
FETCH_SECONDS = 30.0  # of all files of a message: it does not wait longer for them
AT_ONCE = 4
NOT_IN_TIME = f"it could not be fetched within {FETCH_SECONDS:.0f} s; please send it again"


def bounded(fact: Told) -> Told:
    """Of a message that no entry could hold what one does: else it came again and again, before all others."""
    if not isinstance(fact, MessageReceived) or len(encode(fact)) <= MESSAGE_BYTES:
        return fact
    bare = msgspec.structs.replace(fact, before="", text="")
    return msgspec.structs.replace(bare, text=within(fact.text, MESSAGE_BYTES - len(encode(bare))))


class NotFetched(Exception):
    """Its bytes could not be had. The text is for the person, the operator's stands in the log."""


class Found(Record, frozen=True, kw_only=True):
    """A file that a message speaks of. `fetch` is what its platform needs to get it, `size` 0 if that is not told."""

    name: str
    kind: str
    fetch: str
    size: int = 0
    why: str = ""  # it cannot be had, and this is known at once


async def taken(
    files: Sequence[Found], fetch: Callable[[Found], Awaitable[bytes]], keep: Keep, account: str
) -> tuple[Attachment, ...]:
    """All of them, in their order. `fetch` raises NotFetched, and stops at LARGEST_BYTES. Raises what `keep` raises."""
    gate = asyncio.Semaphore(AT_ONCE)
    until = asyncio.get_running_loop().time() + FETCH_SECONDS

    async def one(found: Found, place: int) -> Attachment:
        async with gate:
            return await _taken(found, place, fetch, keep, account, until)

    return tuple(await asyncio.gather(*(one(found, place) for place, found in enumerate(files))))


async def _taken(
    found: Found, place: int, fetch: Callable[[Found], Awaitable[bytes]], keep: Keep, account: str, until: float
) -> Attachment:
    why = found.why or _too_much(found, place)
    data = b""
    if not why:
        try:
            async with asyncio.timeout_at(until):
                data = await fetch(found)
        except NotFetched as error:
            why = str(error)
        except TimeoutError:
            why = NOT_IN_TIME
        if len(data) > LARGEST_BYTES:
            why = too_large()
    if why:
        log.warning("%s: the file %r was not taken: %s", account, found.name, why)
        return attachment(found.name, found.kind, found.size, why=why)
    return attachment(found.name, found.kind, len(data), await keep(data))


def _too_much(found: Found, place: int) -> str:
    if place >= FILES_MAX:
        return f"more than {FILES_MAX} files came in one message"
    return too_large(found.size) if found.size > LARGEST_BYTES else ""
