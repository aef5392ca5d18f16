"""A tunnel's TLS says whom it is for, or does not pass."""

import random
import ssl

import pytest

from actors.sandbox.gate.hello import HELLO_BYTES, named
from actors.sandbox.gate.policy import Refused

SEED, ROUNDS = 20_260_102, 2_000


def hello(host: str | None = "api.test.example") -> bytes:
    """As a real client says it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def with_extension(kind: int, body: bytes) -> bytes:
    """One more at the end; all lengths around it grow."""
    data = bytearray(hello())
    added = kind.to_bytes(2) + len(body).to_bytes(2) + body
    at = 5 + 4 + 2 + 32
    for size in (1, 2, 1):
        at += size + int.from_bytes(data[at : at + size])
    for place, size in ((3, 2), (6, 3), (at, 2)):
        data[place : place + size] = (int.from_bytes(data[place : place + size]) + len(added)).to_bytes(size)
    return bytes(data) + added


def test_the_name_is_found_however_the_message_is_cut() -> None:
    whole = hello()
    assert named(whole + b"more") == "api.test.example"
    assert {named(whole[:size]) for size in range(len(whole))} == {None}
    cut = b"".join(b"\x16\x03\x01\x00\x01" + whole[at : at + 1] for at in range(5, len(whole)))
    assert named(cut) == "api.test.example"


def name_of(host: bytes) -> bytes:
    entry = b"\0" + len(host).to_bytes(2) + host
    return len(entry).to_bytes(2) + entry


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (hello(None), "does not name one host"),
        (with_extension(0, name_of(b"other.test.example")), "does not name one host"),
        (with_extension(0xFE0D, b"\0"), "hides its name"),
        (b"GET / HTTP/1.1\r\n\r\n", "this is none"),
        (b"SSH-2.0-x\r\n", "this is none"),
        (b"\x17\x03\x03\x00\x05hello", "this is none"),
        (b"\x16\x03\x01\x00\x04\x02\0\0\0", "does not begin"),
        (b"\x16\x03\x01\x00\x06\x01\0\0\x02\x03\x03", "is broken"),
        ((b"\x16\x03\x01\x40\0\x01\xff\xff\xff" + b"\0" * ((1 << 14) - 4)) * 3, "too long"),
    ],
)
def test_what_says_nothing_or_too_much_is_refused(said: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        named(said)


def test_whatever_comes_is_a_name_a_refusal_or_too_short() -> None:
    chance, whole = random.Random(SEED), hello()
    for _ in range(ROUNDS):
        data = bytearray(whole[: chance.randrange(1, len(whole) + 1)])
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            assert named(bytes(data)) is None or len(data) < HELLO_BYTES
        except Refused:
            continue
