"""The stories of tests/kernel on JetStream: a fault at every await of the process that lives them.

Enumerated, as there. The suite crashes right after every append, send and acknowledgement of the short story (a
message, an action that is corrected, asks, is answered and stopped). Of the long one it strikes a share, soaks all.
"""

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
SHORT = replace(KNOBS, short=True)
SHARES = 3  # of the suite, so that all its processes have some
ALWAYS = ("append", "send", "ack")
MOST_UNREACHED = 0.1  # of the faults: now and then a run differs from the one that was counted
EVERY = {"lost": 120, "late": 60}
AT_ONCE, SHORT_AT_ONCE = 6, 10  # a part of a short run waits for the leases of the dead


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


@pytest.mark.parametrize(("knobs", "effects"), [(KNOBS, ["cell1-a", "cell3-b"]), (SHORT, ["cell1-a"])])
async def test_the_story_without_a_fault(on_jetstream, tmp_path, knobs, effects):
    played = await sweeping.run(tmp_path, knobs, None)
    assert rules.violations(played) == []
    assert played.story.effects == effects


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_crash_after_every_append_send_and_acknowledgement(on_jetstream, tmp_path, share):
    found = [fault for fault in await sweeping.points(tmp_path, SHORT, "crash") if fault.when == "after"]
    found = [fault for fault in found if fault.label.startswith(ALWAYS)]
    assert len(found) > 120
    faults = found[share::SHARES]
    fired, failures = await sweeping.sweep(tmp_path, SHORT, faults, SHORT_AT_ONCE)
    assert failures == []
    assert fired >= len(faults) * (1 - MOST_UNREACHED)


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
