"""The story of tests/kernel on JetStream: a fault at every await of the process that lives it."""

import asyncio
import hashlib
from dataclasses import replace

import pytest

from gateway.broker.nats import JetStreamBroker
from tests.servers.nats import WANTED

world = pytest.importorskip("tests.kernel.world", reason="tests/kernel is not here")
rules = pytest.importorskip("tests.kernel.rules", reason="tests/kernel is not here")
sweeping = pytest.importorskip("tests.kernel.sweep", reason="tests/kernel is not here")

KNOBS = replace(world.Knobs(), lease_seconds=2.0)  # a time to live counts whole seconds
EVERY = {"crash": 60, "lost": 120, "late": 60}
AT_ONCE = 6


class OnJetStream:
    """Opened by its first call; the same path is the same store."""

    url = ""

    def __init__(self, path):
        self._prefix = f"k{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
        self._broker = None

    async def _opened(self):
        if self._broker is None:
            connecting = JetStreamBroker.connect(
                self.url, prefix=self._prefix, ack_wait_seconds=0.5, window=False, connect_seconds=30
            )
            self._broker = asyncio.ensure_future(connecting)
        return await asyncio.shield(self._broker)

    def __getattr__(self, name):
        async def call(*arguments, **more):
            return await getattr(await self._opened(), name)(*arguments, **more)

        return call

    async def consume(self, subject, durable):
        async for delivery in (await self._opened()).consume(subject, durable):
            yield delivery

    def signal(self, subject, data):
        return

    def watch(self, subject, heard):
        return lambda: None

    def kill(self):
        """As a crash: `close`, which follows, releases nothing."""

    async def close(self):
        if self._broker is not None:
            await (await self._opened()).close()


@pytest.fixture
def on_jetstream(servers, monkeypatch):
    if not servers:
        pytest.skip(WANTED)
    monkeypatch.setattr(OnJetStream, "url", servers["jetstream"].url)
    monkeypatch.setattr(world, "SqliteBroker", OnJetStream)


async def test_the_story_without_a_fault(on_jetstream, tmp_path):
    played = await sweeping.run(tmp_path, KNOBS, None)
    assert rules.violations(played) == []
    assert played.story.effects == ["cell1-a", "cell3-b"]


@pytest.mark.parametrize("mode", EVERY)
async def test_a_share_of_the_points(on_jetstream, tmp_path, mode):
    faults = [fault for fault in await sweeping.points(tmp_path, KNOBS, mode) if not _never_asked(fault)][
        :: EVERY[mode]
    ]
    _, failures = await sweeping.sweep(tmp_path, KNOBS, faults, AT_ONCE)
    assert failures == []


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["crash", "lost", "late", "outage", "deposed"])
async def test_every_point(on_jetstream, tmp_path, mode):
    faults = await sweeping.points(tmp_path, KNOBS, mode)
    _, failures = await sweeping.sweep(tmp_path, KNOBS, faults, AT_ONCE)
    assert failures == []


def _never_asked(fault):
    """An acknowledgement that the process never gave: it still holds the entry, and keeps it to itself."""
    return fault.mode == "lost" and fault.when == "before" and fault.label.startswith("ack")
