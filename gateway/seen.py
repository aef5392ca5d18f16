"""Dedupe for ever: one high-water mark per source of refs, one digest per identity that a platform gave."""

import hashlib
import re

from gateway.events import Ref


class Seen:
    def __init__(self, marks: dict[str, tuple[int, int]] | None = None) -> None:
        self._marks = marks or {}

    @property
    def marks(self) -> dict[str, tuple[int, int]]:
        """For a snapshot, and from one."""
        return self._marks

    def __contains__(self, ref: Ref) -> bool:
        return (ref.batch, ref.n) <= self._marks.get(ref.source, (-1, -1))

    def add(self, ref: Ref) -> None:
        self._marks[ref.source] = (ref.batch, ref.n)


ERASED = "erased-"  # before the digest of an identity whose message was erased
DIGEST_BYTES = 12
_ERASED = re.compile(rf"{ERASED}([0-9a-f]{{{2 * DIGEST_BYTES}}})")


class Identities:
    """The identities that were taken, for ever, as digests: 12 bytes each, so that a snapshot can carry them all."""

    def __init__(self, frozen: bytes = b"") -> None:
        places = range(0, len(frozen), DIGEST_BYTES)
        self._digests = dict.fromkeys(frozen[at : at + DIGEST_BYTES] for at in places)

    def __contains__(self, identity: str) -> bool:
        return _digest(identity) in self._digests

    def add(self, identity: str) -> None:
        self._digests[_digest(identity)] = None

    def freeze(self) -> bytes:
        return b"".join(self._digests)


def erased(identity: str) -> str:
    """What stands for an identity that nobody may read any more: it is still recognised as taken."""
    return f"{ERASED}{_digest(identity).hex()}"


def _digest(identity: str) -> bytes:
    if found := _ERASED.fullmatch(identity):
        return bytes.fromhex(found[1])
    return hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
