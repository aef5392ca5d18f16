"""The host's own way to other machines: looking names up, and connecting to an address that was checked."""

import asyncio
import socket
import ssl
from typing import Protocol

from actors.sandbox.gate.trust import roots

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Outside(Protocol):
    async def resolve(self, name: str, port: int) -> list[str]:
        """The addresses of a host; none if it is not known."""
        ...

    async def connect(self, address: str, port: int) -> Streams: ...

    async def connect_tls(self, address: str, port: int, name: str) -> Streams:
        """To a server whose certificate is that of `name`; another raises OSError."""
        ...


class Internet:
    async def resolve(self, name: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError:
            return []
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, address: str, port: int) -> Streams:
        return await asyncio.open_connection(address, port)

    async def connect_tls(self, address: str, port: int, name: str) -> Streams:
        context = ssl.create_default_context(cafile=roots())
        context.set_alpn_protocols(["http/1.1"])
        return await asyncio.open_connection(address, port, ssl=context, server_hostname=name)
