"""What gateway/broker/protocol.py promises, on every engine."""

import asyncio
import hashlib
import time

import pytest

from gateway.broker.protocol import MAX_ENTRY_BYTES, Deposed, Stale, TooLarge
from tests.patience import PATIENCE_SECONDS

TTL_SECONDS = 1.0


def data(stored):
    return [one.data for one in stored]


async def take(broker, subject, durable, count):
    """The next deliveries, each acknowledged."""
    found = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in broker.consume(subject, durable):
            found.append(delivery.stored.data)
            await delivery.ack()
            if len(found) == count:
                return found
    raise AssertionError


# --- appends ---------------------------------------------------------------------------------------------------------


async def test_sequences_rise_and_a_fence_holds_for_its_subject_alone(broker):
    first = await broker.append("log.lane.a", b"1", msg_id="1", expect_last=0)
    other = await broker.append("log.lane.b", b"x", msg_id="2", expect_last=0)
    second = await broker.append("log.lane.a", b"2", msg_id="3", expect_last=first)
    assert first < other < second
    with pytest.raises(Stale):
        await broker.append("log.lane.a", b"3", msg_id="4", expect_last=first)
    with pytest.raises(Stale):
        await broker.append("log.lane.a", b"3", msg_id="5", expect_last=0)
    assert data(await broker.read("log.lane.a")) == [b"1", b"2"]


async def test_of_appends_at_once_only_the_stale_fail(broker):
    first = await broker.append("log.lane.a", b"0", msg_id="0")
    appends = (
        broker.append("log.lane.a", b"%d" % n, msg_id=f"g{n}", expect_last=first if n < 3 else None) for n in range(6)
    )
    ends = await asyncio.gather(*appends, return_exceptions=True)
    assert sum(isinstance(end, Stale) for end in ends) == 2
    assert sum(isinstance(end, int) for end in ends) == 4
    assert len(await broker.read("log.lane.a")) == 5


async def test_an_entry_may_be_so_large_and_no_larger(broker):
    await broker.append("log.lane.a", b"x" * MAX_ENTRY_BYTES, msg_id="1")
    with pytest.raises(TooLarge):
        await broker.append("log.lane.a", b"x" * (MAX_ENTRY_BYTES + 1), msg_id="2")
    assert [len(one.data) for one in await broker.read("log.lane.a")] == [MAX_ENTRY_BYTES]


async def test_an_entry_may_be_empty_and_an_id_anything(broker):
    for number, odd in enumerate(("", "a b\r\nc", "ü" * 500, "\ud800", "<ä@b.example>")):
        await broker.append("log.lane.a", b"" if number else b"\0\xff", msg_id=odd)
    assert data(await broker.read("log.lane.a")) == [b"\0\xff", b"", b"", b"", b""]


async def test_one_id_on_two_subjects_is_two_entries(broker):
    await broker.append("log.lane.a", b"a", msg_id="same")
    await broker.append("log.lane.b", b"b", msg_id="same")
    assert data(await broker.read("log.>")) == [b"a", b"b"]


async def test_what_was_cancelled_is_stored_once_or_not_at_all(broker):
    for number in range(20):
        task = asyncio.create_task(broker.append("log.lane.a", b"%d" % number, msg_id=str(number)))
        await asyncio.sleep(0.0002 * number)
        task.cancel()
        await asyncio.wait({task})
    await broker.append("log.lane.a", b"last", msg_id="last")
    stored = data(await broker.read("log.lane.a"))
    assert stored[-1] == b"last"
    assert len(stored) == len({*stored})


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3, 4, 700])
async def test_reading_gives_all_in_order_and_what_is_after(broker, count):
    appends = (broker.append("log.lane.a", b"%d" % n, msg_id=f"{n}") for n in range(count))
    await asyncio.gather(*appends, broker.append("log.lane.b", b"other", msg_id="x"))
    stored = await broker.read("log.lane.a")
    assert sorted(data(stored)) == sorted(b"%d" % n for n in range(count))
    sequences = [one.sequence for one in stored]
    assert sequences == sorted({*sequences})
    for after in (1, 2, count - 1, count):
        if 0 < after <= count:
            assert await broker.read("log.lane.a", sequences[after - 1]) == stored[after:]
    assert len(await broker.read("log.>")) == count + 1


async def test_large_entries_are_read_whole(broker):
    for n in range(12):
        await broker.append("log.lane.a", b"%d" % (n % 10) * MAX_ENTRY_BYTES, msg_id=f"{n}")
    assert [one.data[:1] for one in await broker.read("log.lane.a")] == [b"%d" % (n % 10) for n in range(12)]


async def test_subjects_are_listed_by_pattern(broker):
    for subject in ("log.lane.a", "log.lane.b", "log.out.a", "cmd.act.a"):
        await broker.append(subject, b"", msg_id=subject)
    assert sorted(await broker.subjects("log.lane.>")) == ["log.lane.a", "log.lane.b"]
    assert await broker.subjects("log.lane.a") == ["log.lane.a"]
    assert await broker.subjects("evt.>") == []


async def test_what_is_stored_is_there_for_the_next_process(store, broker):
    await broker.append("log.lane.a", b"1", msg_id="1")
    await store.close()
    assert data(await (await store.open()).read("log.lane.a")) == [b"1"]


# --- compaction ------------------------------------------------------------------------------------------------------


async def test_purged_is_what_is_below_but_never_the_last(broker):
    sequences = [await broker.append("log.lane.a", b"%d" % n, msg_id=f"a{n}") for n in range(5)]
    await broker.append("log.lane.b", b"b", msg_id="b")
    await broker.purge("log.lane.a", sequences[2])
    assert data(await broker.read("log.lane.a")) == [b"2", b"3", b"4"]
    await broker.purge("log.lane.a", sequences[4] + 100)
    assert data(await broker.read("log.lane.a")) == [b"4"]
    await broker.purge("log.lane.none", 100)
    assert data(await broker.read("log.>")) == [b"4", b"b"]
    with pytest.raises(Stale):
        await broker.append("log.lane.a", b"5", msg_id="a5", expect_last=0)
    await broker.append("log.lane.a", b"5", msg_id="a6", expect_last=sequences[4])


async def test_without_a_fence_the_last_one_can_go_too(broker):
    sequences = [await broker.append("cmd.act.a", b"%d" % n, msg_id=f"a{n}") for n in range(3)]
    await broker.append("cmd.act.b", b"b", msg_id="b")
    await broker.purge("cmd.act.a", sequences[1] + 1, whole=True)
    assert data(await broker.read("cmd.act.a")) == [b"2"]
    await broker.purge("cmd.act.a", sequences[2] + 1, whole=True)
    assert data(await broker.read("cmd.act.a")) == []
    assert await broker.subjects("cmd.>") == ["cmd.act.b"]
    assert await broker.append("cmd.act.a", b"3", msg_id="a3") > sequences[2]
    assert data(await broker.read("cmd.act.a", sequences[2])) == [b"3"]


async def test_a_read_can_be_bounded(broker):
    for n in range(9):
        await broker.append("log.lane.a", b"%d" % n, msg_id=f"a{n}")
    for limit in (1, 2, 3, 4, 8, 9, 20):
        found, after = [], 0
        while some := await broker.read("log.>", after, limit):
            assert len(some) <= limit
            found, after = found + some, some[-1].sequence
        assert data(found) == [b"%d" % n for n in range(9)]


# --- deliveries ------------------------------------------------------------------------------------------------------


async def test_deliveries_come_in_order_each_until_it_is_acknowledged(broker):
    for n in range(3):
        await broker.append("cmd.act.a", b"%d" % n, msg_id=f"{n}")
    found = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in broker.consume("cmd.act.>", "durable"):
            found.append(delivery.stored.data)
            assert delivery.stored.subject == ("cmd.act.b" if found[-1] == b"later" else "cmd.act.a")
            await delivery.ack()
            if len(found) == 3:
                await broker.append("cmd.act.b", b"later", msg_id="later")
                await broker.append("evt.act.b", b"not for it", msg_id="other")
            if len(found) == 4:
                break
    assert found == [b"0", b"1", b"2", b"later"]


async def test_what_was_not_acknowledged_comes_again_to_the_next_consumer(store, broker):
    for n in range(3):
        await broker.append("cmd.act.a", b"%d" % n, msg_id=f"{n}")
    assert await take(broker, "cmd.act.>", "durable", 1) == [b"0"]
    async for delivery in broker.consume("cmd.act.>", "durable"):
        assert delivery.stored.data in (b"0", b"1")  # the last ack may be on its way
        if delivery.stored.data == b"1":
            break
        await delivery.ack()
    await store.close()
    assert await take(await store.open(), "cmd.act.>", "durable", 2) == [b"1", b"2"]


async def test_whoever_takes_long_keeps_what_it_has(broker):
    for n in range(2):
        await broker.append("cmd.act.a", b"%d" % n, msg_id=f"{n}")
    found = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in broker.consume("cmd.act.>", "durable"):
            found.append(delivery.stored.data)
            await asyncio.sleep(1.2 if len(found) == 1 else 0)
            await delivery.ack()
            if len(found) == 2:
                break
    assert found == [b"0", b"1"]


async def test_two_durables_do_not_share(broker):
    await broker.append("evt.medium.a", b"1", msg_id="1")
    assert await take(broker, "evt.>", "one", 1) == [b"1"]
    assert await take(broker, "evt.>", "two.with odd/signs", 1) == [b"1"]


# --- leases ----------------------------------------------------------------------------------------------------------


async def test_one_holds_it_until_it_lets_go(broker):
    lease = await broker.lease("brain", "one", TTL_SECONDS)
    assert lease is not None
    assert await broker.lease("brain", "two", TTL_SECONDS) is None
    assert await broker.lease("actors", "two", TTL_SECONDS) is not None
    before = lease.deadline
    await lease.renew()
    assert lease.deadline > before
    await lease.release()
    second = await broker.lease("brain", "two", TTL_SECONDS)
    assert second is not None
    with pytest.raises(Deposed):
        await lease.renew()
    await lease.release()
    assert await broker.lease("brain", "three", TTL_SECONDS) is None


async def test_what_is_not_renewed_runs_out(broker):
    lease = await broker.lease("brain", "one", TTL_SECONDS)
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (second := await broker.lease("brain", "two", TTL_SECONDS)) is None:
            await asyncio.sleep(0.02)
    assert time.monotonic() - began > TTL_SECONDS - 0.1
    with pytest.raises(Deposed):
        await lease.renew()
    await second.renew()


async def test_renewed_it_lasts(broker):
    lease = await broker.lease("brain", "one", TTL_SECONDS)
    for _ in range(6):
        await asyncio.sleep(TTL_SECONDS / 4)
        await lease.renew()
        assert await broker.lease("brain", "two", TTL_SECONDS) is None


# --- blobs and signals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 300_000])
async def test_a_blob_is_kept_by_its_digest(store, broker, size):
    blob = b"ab" * size
    digest = await broker.put_blob(blob)
    assert digest == hashlib.sha256(blob).hexdigest() == await broker.put_blob(blob)
    await store.close()
    again = await store.open()
    assert await again.get_blob(digest) == blob
    with pytest.raises(LookupError):
        await again.get_blob("0" * 64)


async def test_a_signal_reaches_who_watches_now(broker):
    heard: list[bytes] = []
    came = asyncio.Event()

    def hear(signal: bytes) -> None:
        heard.append(signal)
        came.set()

    unwatch = broker.watch("live.one", hear)
    broker.signal("live.two", b"not for it")
    for n in range(3):
        broker.signal("live.one", b"%d" % n)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(heard) < 3:
            came.clear()
            await came.wait()
    unwatch()
    broker.signal("live.one", b"too late")
    await broker.append("log.lane.a", b"", msg_id="1")
    assert heard == [b"0", b"1", b"2"]
