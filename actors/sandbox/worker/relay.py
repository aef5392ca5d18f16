"""A door on the sandbox's loopback to the host's proxy: TCP in, the host's unix socket out. A process of its own.

Programs know a proxy by an address with a port; the sandbox's network has nothing but its loopback. Bytes are passed on
as they come, and each side's end too; what they mean is the proxy's business.
"""

import asyncio
import contextlib
import gc
import os
import signal

from .system import die_with_parent

PORT = 3128
CONNECTIONS_MAX = 64
READ_BYTES = 1 << 16


def serve(socket: str, zygote: int) -> None:
    """Does not return."""
    die_with_parent(zygote)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    gc.enable()
    asyncio.run(_serve(socket))
    os._exit(0)


async def _serve(socket: str) -> None:
    room = asyncio.Semaphore(CONNECTIONS_MAX)

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with room:
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_unix_connection(socket)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer), return_exceptions=True)
                far_writer.close()
            writer.close()

    server = await asyncio.start_server(passed_on, "127.0.0.1", PORT)
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()
