"""The plumbing of the proxy: its door, bytes from one side to the other, TLS on a socket that is there. No meaning."""

import asyncio
import os
import socket
import ssl
from pathlib import Path

from actors.sandbox.gate.outside import Streams

READ_BYTES = 1 << 16
IDLE_SECONDS = 120.0
HANDSHAKE_SECONDS, FAREWELL_SECONDS, LAST_SECONDS = 15.0, 1.0, 10.0


def door(path: Path) -> socket.socket:
    """Bound by a name in an open folder: the whole path may be longer than the 107 bytes of a socket's address."""
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        door.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    path.parent.chmod(0o755)
    path.chmod(0o666)  # the sandbox may be another user, who has nothing else of this folder
    return door


async def accepted(sock: socket.socket, context: ssl.SSLContext) -> Streams:
    """The server's side of TLS on it. Raises OSError when the client does not go along."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol,
        sock,
        ssl=context,
        ssl_handshake_timeout=HANDSHAKE_SECONDS,
        ssl_shutdown_timeout=FAREWELL_SECONDS,
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _say_end(writer: asyncio.StreamWriter) -> None:
    """TLS has no half of an end: there the other side's answer is waited for, or its silence."""
    if writer.can_write_eof():
        writer.write_eof()


async def end(writer: asyncio.StreamWriter) -> None:
    """What is still to be sent is, if the other side takes it within some seconds."""
    writer.close()
    try:
        async with asyncio.timeout(LAST_SECONDS):
            await writer.wait_closed()
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        return


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int]) -> None:
    """Until this side ends, is silent for too long, or has used up what both may pass."""
    try:
        while left[0] > 0:
            async with asyncio.timeout(IDLE_SECONDS):
                data = await reader.read(READ_BYTES)
                if not data:
                    return _say_end(writer)
                left[0] -= len(data)
                writer.write(data)
                await writer.drain()
        writer.close()
    except (OSError, TimeoutError):
        writer.close()
