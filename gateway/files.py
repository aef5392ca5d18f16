"""Files that come with messages and go with them: what is known of each, and how much is taken. Pure.

The bytes are a blob of the broker, named by their digest; a fact or a command only names them.
"""

import re
import unicodedata
from collections.abc import Awaitable, Callable

from gateway.record import Record, whole_text

LARGEST_BYTES = 20 << 20  # of one file, either way: what Telegram lets a bot fetch
FILES_MAX = 20  # of one message
NAME_LENGTH = 120
ANY_KIND = "application/octet-stream"

_KIND = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,80}")

Keep = Callable[[bytes], Awaitable[str]]  # durable when it returns, with the digest; `Broker.put_blob`


class Attachment(Record, frozen=True, kw_only=True):
    """`kind` is a media type, `size` in bytes. Without a `digest` it was not taken, and `why` says why."""

    name: str
    kind: str = ANY_KIND
    size: int = 0
    digest: str = ""
    why: str = ""

    @property
    def is_here(self) -> bool:
        return bool(self.digest)


def attachment(name: str, kind: str, size: int = 0, digest: str = "", why: str = "") -> Attachment:
    """From what a stranger wrote: a name to be shown, and a media type or the most general one."""
    return Attachment(name=shown_name(name), kind=media_type(kind), size=size, digest=digest, why=why)


def shown_name(name: str) -> str:
    """On one line, without what would disguise it, and unable to close a bracket around it."""
    plain = "".join(
        " " if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else one
        for one in whole_text(name)
    )
    line = " ".join(plain.translate({ord("["): "(", ord("]"): ")"}).split())
    if len(line) > NAME_LENGTH:
        line = f"{line[: NAME_LENGTH - 13]}…{line[-12:]}"  # the ending says what it is
    return line or "file"


def media_type(kind: str) -> str:
    found = kind.partition(";")[0].strip().lower()
    return found if _KIND.fullmatch(found) else ANY_KIND


def size_text(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.0f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def too_large(size: int | None = None) -> str:
    stated = f" ({size_text(size)})" if size else ""
    return f"it is larger{stated} than the {LARGEST_BYTES >> 20} MB that can be taken"
