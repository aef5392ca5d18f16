"""The base of all frozen words, and the codec that stores them.

A word is an immutable struct with keyword fields. On the disk it is JSON with the class name under "type", fields that
have their default left out, and unknown fields ignored: a later version may add a field with a default, and an
older journal still folds. Renaming a class or a field is a migration.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value: equal by content, never changed."""


class Tagged(Record, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """A value that stands in a union of its kind (facts, commands, entries)."""


class Undecodable(Exception):
    """What is stored cannot be read as what was expected: a newer version wrote it, or it is damaged."""


_encoder = msgspec.json.Encoder(enc_hook=str)


def encode(value: Any) -> bytes:
    """Lone surrogates, which no file can hold, are replaced: a text from outside must not stop whoever stores it."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mended(msgspec.to_builtins(value, enc_hook=str)))


def _mended(value: Any) -> Any:
    match value:
        case str():
            return whole_text(value)
        case list() | tuple():
            return [_mended(one) for one in value]
        case dict():
            return {_mended(key): _mended(one) for key, one in value.items()}
        case _:
            return value


def decode(data: bytes, kind: Any) -> Any:
    """`kind` is a struct or a union of tagged ones. Raises Undecodable."""
    try:
        return _decoder(kind).decode(data)
    except msgspec.MsgspecError as error:
        raise Undecodable(f"{error}: {data[:200]!r}") from error


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def that_fit(items: Sequence[T], room_bytes: int) -> Sequence[T]:
    """The first ones: as many as there is room for, encoded one after the other."""
    count = 0
    while count < len(items) and (room_bytes := room_bytes - len(encode(items[count])) - 1) >= 0:
        count += 1
    return items[:count]


def newest_that_fit(items: Sequence[T], room_bytes: int) -> Sequence[T]:
    return that_fit(items[::-1], room_bytes)[::-1]


def whole_text(text: str) -> str:
    """Text that every store and wire can carry: lone surrogates (from mail or file names) and NULs are replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
