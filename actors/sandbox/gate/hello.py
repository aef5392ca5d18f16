"""The first words of TLS, as far as they say whom they are for (RFC 8446 section 4.1.2, RFC 6066 section 3). Pure."""

from collections.abc import Iterator

from actors.sandbox.gate.policy import Refused

HELLO_BYTES = 1 << 15  # a client's first message has some hundred, with keys against quantum computers some thousand
HANDSHAKE, CLIENT_HELLO, SERVER_NAME, HOST_NAME = 22, 1, 0, 0
ENCRYPTED_HELLOS = frozenset((0xFE0D, 0xFFCE))
UNRECOGNIZED_NAME = bytes((21, 3, 1, 0, 2, 2, 112))  # a fatal alert, in a record of its own


def named(data: bytes) -> str | None:
    """The host that a TLS client asks for, None while more of its first message is needed.

    Raises Refused for what is no such message, names no host or several, or hides the name.
    """
    message = _message(data)
    if message is None:
        return None
    try:
        return _name(_Bytes(message))
    except IndexError:
        raise Refused("the first message of TLS is broken") from None


def _message(data: bytes) -> bytes | None:
    """The client's hello, put together from its records."""
    message, at = bytearray(), 0
    while len(data) >= at + 5:
        kind, major, size = data[at], data[at + 1], int.from_bytes(data[at + 3 : at + 5])
        if kind != HANDSHAKE or major != 3 or not 0 < size <= 1 << 14:
            raise Refused("only TLS passes through a tunnel, and this is none")
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
        if message[:1] and message[0] != CLIENT_HELLO:
            raise Refused("only TLS passes through a tunnel, and this does not begin as its client does")
        if len(message) >= 4 and len(message) - 4 >= (length := int.from_bytes(message[1:4])):
            return bytes(message[4 : 4 + length])
    if len(data) >= HELLO_BYTES:
        raise Refused("the first message of TLS is too long")
    if data[:1] and data[0] != HANDSHAKE:
        raise Refused("only TLS passes through a tunnel, and this is none")
    return None


class _Bytes:
    """Read from the front; IndexError when there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise IndexError
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def inner(self, size: int) -> "_Bytes":
        """What follows a length of that many bytes."""
        return _Bytes(self.take(self.number(size)))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def __bool__(self) -> bool:
        return self._at < len(self._data)


def _name(hello: _Bytes) -> str:
    hello.take(2 + 32)  # version and random
    for size in (1, 2, 1):  # session, ciphers, compression
        hello.inner(size)
    names: list[str] = []
    for kind, extension in _extensions(hello):
        if kind in ENCRYPTED_HELLOS:
            raise Refused("TLS that hides its name (encrypted client hello) does not pass")
        if kind == SERVER_NAME:
            names += _names(extension)
    if len(names) != 1:
        raise Refused("TLS that does not name one host does not pass")
    return names[0].lower().removesuffix(".")


def _extensions(hello: _Bytes) -> Iterator[tuple[int, _Bytes]]:
    extensions = hello.inner(2)
    while extensions:
        yield extensions.number(2), extensions.inner(2)


def _names(extension: _Bytes) -> Iterator[str]:
    entries = extension.inner(2)
    while entries:
        kind, text = entries.number(1), entries.inner(2)
        if kind == HOST_NAME:
            yield text.rest().decode("ascii", "replace")
