"""Blobs in JetStream's object store, each under its digest."""

import asyncio
import hashlib

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from gateway.broker.nats_calls import ask, overwrite
from gateway.broker.nats_pull import replay

BLOB_SECONDS = 60.0


class NatsBlobs:
    """See `Broker`. Its stream is `nats_streams.blobs`."""

    def __init__(self, client: Client, js: JetStreamContext, prefix: str) -> None:
        self._client, self._js = client, js
        self._name, self._stream = f"{prefix}-blobs", f"OBJ_{prefix}-blobs"
        self._store = ObjectStore(self._name, self._stream, js)

    async def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        try:
            await ask(self._store.get_info(digest), digest)
        except NotFoundError:
            await ask(self._store.put(digest, data), digest)
        return digest

    async def get(self, digest: str) -> bytes:
        try:
            return (await ask(asyncio.wait_for(self._store.get(digest), BLOB_SECONDS), digest)).data or b""
        except NotFoundError:
            raise LookupError(f"there is no blob {digest}") from None

    async def all(self) -> list[str]:
        try:
            return [info.name for info in await ask(self._store.list(ignore_deletes=True), "blobs") if info.name]
        except NotFoundError:
            return []

    async def forget(self, digest: str) -> None:
        try:
            info = await ask(self._store.get_info(digest), digest)
        except NotFoundError:
            return
        for piece in await replay(self._client, self._js, self._stream, f"$O.{self._name}.C.{info.nuid}", 0, None):
            await overwrite(self._js, self._stream, piece.metadata.sequence.stream)
        await ask(self._store.delete(digest), digest)
