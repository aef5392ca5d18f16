"""What only JetStream has: how it is set up, how it is lost and found again, and processes beside each other."""

import asyncio
import itertools
import signal
from contextlib import suppress

import pytest
import pytest_asyncio
from nats.js.api import DiscardPolicy, StorageType, StreamConfig

from gateway.broker.nats import JetStreamBroker, window_id
from gateway.broker.protocol import BrokerUnusable, Misfiled, Stale, Unconfirmed
from tests.patience import PATIENCE_SECONDS
from tests.servers.nats import PROGRAM, WANTED, NatsServer

prefixes = itertools.count()


@pytest.fixture
def server(servers):
    if not servers:
        pytest.skip(WANTED)
    return servers["jetstream"]


@pytest.fixture
def own_server():
    """For a test that ends or freezes it."""
    if not PROGRAM.exists():
        pytest.skip(WANTED)
    with NatsServer() as made:
        yield made


@pytest.fixture
def prefix():
    return f"n{next(prefixes)}"


@pytest_asyncio.fixture
async def own_broker(own_server):
    broker = await JetStreamBroker.connect(own_server.url, ack_wait_seconds=0.5)
    yield broker
    await broker.close()


@pytest_asyncio.fixture
async def two(server, prefix):
    """Two processes' brokers."""
    brokers = [await JetStreamBroker.connect(server.url, prefix=prefix, ack_wait_seconds=0.5) for _ in range(2)]
    yield brokers
    for broker in brokers:
        await broker.close()


async def confirmed(call):
    """As `publish` does it: until it is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await call()
            except Unconfirmed:
                await asyncio.sleep(0.05)


# --- how it is set up ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "mend"),
    [
        ({"discard": DiscardPolicy.OLD}, "nats stream edit {} --discard=new"),
        ({"max_age": 3600.0}, "nats stream edit {} --max-age=0"),
        ({"max_msgs_per_subject": 10}, "nats stream edit {} --max-msgs-per-subject=-1"),
        ({"max_bytes": 1 << 20}, "nats stream edit {} --max-bytes=-1"),
        ({"max_msg_size": 1000}, "nats stream edit {} --max-msg-size=263168"),
        ({"storage": StorageType.MEMORY}, "nats stream rm {}"),
    ],
)
async def test_a_stream_that_could_lose_something_is_refused_with_the_mend(two, server, wrong, mend):
    name = f"w{next(prefixes)}"
    good = {"discard": DiscardPolicy.NEW, "storage": StorageType.FILE, "max_age": 0.0}
    await two[0]._js.add_stream(StreamConfig(name=f"{name}-cmd", subjects=[f"{name}.cmd.>"], **good | wrong))
    with pytest.raises(BrokerUnusable) as refused:
        await JetStreamBroker.connect(server.url, prefix=name)
    assert mend.format(f"{name}-cmd") in str(refused.value)
    assert next(iter(wrong)) in str(refused.value)


async def test_more_replicas_or_compression_are_the_operators_choice(two, server, prefix):
    info = await two[0]._js.stream_info(f"{prefix}-log")
    await two[0]._js.update_stream(info.config.evolve(compression="s2", description="ours"))
    await (await JetStreamBroker.connect(server.url, prefix=prefix)).close()


async def test_where_nobody_answers_the_mend_is_said():
    with pytest.raises(BrokerUnusable, match=r"nats://127.0.0.1:9: no NATS server answers .*start nats-server"):
        await JetStreamBroker.connect("nats://127.0.0.1:9", connect_seconds=0.5)


async def test_a_server_without_jetstream_is_refused_with_the_mend():
    if not PROGRAM.exists():
        pytest.skip(WANTED)
    with NatsServer(jetstream=False) as server, pytest.raises(BrokerUnusable, match='start it with "-js"'):
        await JetStreamBroker.connect(server.url)


# --- what the window drops -------------------------------------------------------------------------------------------


async def test_an_append_that_is_repeated_is_stored_once(two):
    first = await two[0].append("log.lane.a", b"1", msg_id="1")
    assert await two[1].append("log.lane.a", b"1", msg_id="1") == first
    assert len(await two[0].read("log.lane.a")) == 1


async def test_a_copy_that_was_dropped_from_another_subject_is_an_error(two, prefix):
    headers = {"Nats-Msg-Id": window_id("log.lane.b", "same")}
    await two[0]._js.publish(f"{prefix}.log.lane.a", b"1", headers=headers)
    with pytest.raises(Misfiled, match=r"log.lane.b: the id same was used on .*log.lane.a"):
        await two[0].append("log.lane.b", b"2", msg_id="same")


# --- lost and found --------------------------------------------------------------------------------------------------


async def test_what_was_acknowledged_outlives_the_server(own_server, own_broker):
    broker = own_broker
    taken: list[bytes] = []

    async def consume():
        async for delivery in broker.consume("cmd.act.>", "durable"):
            taken.append(delivery.stored.data)
            await delivery.ack()

    consuming = asyncio.create_task(consume())
    await broker.append("cmd.act.a", b"before", msg_id="b")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not taken:  # so it does consume
            await asyncio.sleep(0.01)
    lease = await broker.lease("brain", "one", 30)
    sequence = 0
    for n in range(10):
        sequence = await broker.append("log.lane.a", b"%d" % n, msg_id=f"{n}", expect_last=sequence)
    own_server.stop(signal.SIGKILL)
    calls = (
        broker.append("log.lane.a", b"10", msg_id="10", expect_last=sequence),
        broker.read("log.lane.a"),
        lease.renew(),
    )
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [Unconfirmed] * 3
    own_server.start()
    with suppress(Stale):  # the one from before arrived with the connection
        await confirmed(lambda: broker.append("log.lane.a", b"10", msg_id="10", expect_last=sequence))
    assert [one.data for one in await broker.read("log.lane.a")] == [b"%d" % n for n in range(11)]
    await lease.renew()
    await broker.append("cmd.act.a", b"after", msg_id="c")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"after" not in taken:
            await asyncio.sleep(0.01)
    consuming.cancel()
    assert list(dict.fromkeys(taken)) == [b"before", b"after"]


async def test_a_frozen_server_confirms_nothing_and_what_it_had_may_arrive_later(own_server, own_broker):
    broker = own_broker
    await broker.append("log.lane.a", b"1", msg_id="1")
    own_server.freeze()
    with pytest.raises(Unconfirmed):
        await broker.append("log.lane.a", b"2", msg_id="2", expect_last=1)
    own_server.thaw()
    with pytest.raises(Stale):  # its own, as whoever reads the tail finds
        await confirmed(lambda: broker.append("log.lane.a", b"2", msg_id="2", expect_last=1))
    assert [one.data for one in await broker.read("log.lane.a")] == [b"1", b"2"]


async def test_a_broker_whose_server_is_gone_is_closed_with_what_it_had_still_to_send(own_server):
    broker = await JetStreamBroker.connect(own_server.url)
    own_server.stop(signal.SIGKILL)
    while broker._connection.client.is_connected:
        await asyncio.sleep(0.01)
    await broker._connection.client.publish("a", b"1")
    await broker.close()


async def test_a_lease_whose_answer_was_lost_is_known_again_by_its_nonce(two):
    first = await two[0].lease("brain", "mine", 5)
    again = await two[0].lease("brain", "mine", 5)  # as after an Unconfirmed create
    assert first is not None
    assert again is not None
    await first.renew()  # as after an Unconfirmed renewal: the revision has moved on
    await again.renew()
    assert await two[1].lease("brain", "theirs", 5) is None


# --- processes beside each other -------------------------------------------------------------------------------------


async def test_a_claim_lasts_as_long_as_its_lease(two):
    one, other = two
    lease, theirs = await one.lease("actors-a", "1", 1), await other.lease("actors-b", "2", 10)
    assert await one.claim("tree", lease)
    assert await one.claim("tree", lease)
    assert not await other.claim("tree", theirs)
    assert {key: (claim.lease, claim.alive) for key, claim in (await other.claims()).items()} == {
        "tree": ("actors-a", True)
    }
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await other.claims())["tree"].alive:
            await asyncio.sleep(0.02)
    assert await other.claim("tree", theirs)
    await one.disclaim("tree", lease)
    assert (await one.claims())["tree"].lease == "actors-b"
    await other.disclaim("tree", theirs)
    assert await one.claims() == {}


async def test_a_claim_under_a_lease_that_was_let_go_is_free_at_once(two):
    one, other = two
    lease, theirs = await one.lease("actors-a", "1", 10), await other.lease("actors-b", "2", 10)
    await one.claim("tree", lease)
    await lease.release()
    assert not (await other.claims())["tree"].alive
    assert await other.claim("tree", theirs)


async def test_two_processes_share_what_is_outstanding_and_a_slow_one_holds_up_no_other(two):
    for n in range(10):
        await two[0].append("cmd.act.a", b"%d" % n, msg_id=f"{n}")
    slow = two[0].consume_many("cmd.act.>", "actions")
    stuck = await anext(slow)
    taken = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in two[1].consume_many("cmd.act.>", "actions"):
            taken.append(delivery.stored.data)
            await delivery.ack()
            if len(taken) == 9:
                break
    assert sorted([*taken, stuck.stored.data]) == [b"%d" % n for n in range(10)]
    await stuck.ack()


async def test_what_a_process_had_in_hand_when_it_went_goes_to_another(two):
    await two[0].append("cmd.act.a", b"1", msg_id="1")
    gone = two[0].consume("cmd.act.>", "actions")
    assert (await anext(gone)).stored.data == b"1"
    await two[0].close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in two[1].consume("cmd.act.>", "actions"):
            assert delivery.stored.data == b"1"
            await delivery.ack()
            break


async def test_a_signal_reaches_the_other_process(two):
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    two[1].watch("live.local", heard.put_nowait)
    two[0].signal("live.local", b"typing")
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await heard.get() == b"typing"
