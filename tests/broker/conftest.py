import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.broker.nats import JetStreamBroker
from gateway.broker.protocol import Broker
from gateway.broker.sqlite import SqliteBroker
from tests.servers.nats import PROGRAM, WANTED, NatsServer

BACKENDS = ("sqlite", "jetstream", "jetstream, sync always")
_prefixes = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def servers() -> Iterator[dict[str, NatsServer]]:
    """By backend; one of each for the folder. They are there before the first test, which would else have left them."""
    with ExitStack() as stack:
        yield {
            backend: stack.enter_context(NatsServer(sync_always="sync" in backend))
            for backend in BACKENDS
            if backend != "sqlite" and PROGRAM.exists()
        }


class Store:
    """Opened again and again; on JetStream also several times at once."""

    def __init__(self, open_one: Callable[[], Awaitable[Broker]]) -> None:
        self._open_one = open_one
        self._opened: list[Broker] = []

    async def open(self) -> Broker:
        broker = await self._open_one()
        self._opened.append(broker)
        return broker

    async def close(self) -> None:
        while self._opened:
            await self._opened.pop().close()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture
async def store(backend: str, servers: dict[str, NatsServer], tmp_path: Path):
    prefix = f"t{next(_prefixes)}"

    async def open_one() -> Broker:
        if backend == "sqlite":
            return SqliteBroker(tmp_path / "store.db")
        return await JetStreamBroker.connect(servers[backend].url, prefix=prefix, ack_wait_seconds=0.5)

    if backend != "sqlite" and backend not in servers:
        pytest.skip(WANTED)
    made = Store(open_one)
    yield made
    await made.close()


@pytest_asyncio.fixture
async def broker(store: Store) -> Broker:
    return await store.open()
