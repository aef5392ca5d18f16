"""The contract that every broker keeps, and what the one in a file promises besides. A second engine is one more value
of the fixture `opens`."""

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brain.entries import LaneEntry, Taken
from gateway.addresses import Address, Route
from gateway.broker.protocol import MAX_ENTRY_BYTES, Broker, Deposed, Stale, TooLarge, Unconfirmed
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import SCHEMA_VERSION, StoreUnusable
from gateway.events import Fact, MessageReceived, Person, identity_of
from gateway.journal import stamped, unstamped
from gateway.record import decode, encode, whole_text
from tests.patience import PATIENCE_SECONDS

BLOCKED_SECONDS_MOST = 0.02  # how long the disk may hold up the loop
LOCKED_SECONDS = 2.0

Opens = Callable[[], Awaitable[Broker]]


@pytest.fixture(params=["sqlite"])
async def opens(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opens]:
    """Called again, it closes the broker before and opens the same store."""
    opened: list[Broker] = []

    async def sqlite() -> Broker:
        for broker in opened:
            await broker.close()
        opened[:] = [SqliteBroker(tmp_path / "store.db")]
        return opened[0]

    yield {"sqlite": sqlite}[request.param]
    for broker in opened:
        await broker.close()


@pytest.fixture
async def broker(opens: Opens) -> Broker:
    return await opens()


async def texts(broker: Broker, subject: str, after: int = 0) -> list[bytes]:
    return [stored.data for stored in await broker.read(subject, after)]


async def delivered(broker: Broker, count: int, durable: str = "d", acked: bool = True) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for delivery in broker.consume("cmd.x.>", durable):
            found.append(delivery.stored.data)
            if acked:
                await delivery.ack()
            if len(found) == count:
                break
    return found


# --- the contract ----------------------------------------------------------------------------------------------------


async def test_a_fence_lets_one_writer_pass_and_names_no_other_subject(broker: Broker) -> None:
    first = await broker.append("log.lane.a", b"1", msg_id="1", expect_last=0)
    other = await broker.append("log.lane.b", b"x", msg_id="2", expect_last=0)
    second = await broker.append("log.lane.a", b"2", msg_id="3", expect_last=first)
    assert second > first
    assert other > 0
    with pytest.raises(Stale):
        await broker.append("log.lane.a", b"3", msg_id="4", expect_last=first)
    assert await texts(broker, "log.lane.a") == [b"1", b"2"]


async def test_reading_begins_after_a_place_and_knows_all_below_a_subject(broker: Broker) -> None:
    first = await broker.append("log.lane.a", b"1", msg_id="1")
    await broker.append("log.lane.ab", b"2", msg_id="2")
    await broker.append("log.out.a", b"3", msg_id="3")
    assert await texts(broker, "log.lane.a", after=first) == []
    assert await texts(broker, "log.lane.>") == [b"1", b"2"]
    assert await texts(broker, "log.lane.>", after=first) == [b"2"]
    assert sorted(await broker.subjects("log.lane.>")) == ["log.lane.a", "log.lane.ab"]
    assert await broker.subjects("log.act.>") == []


async def test_of_appends_at_one_time_only_the_stale_fail(broker: Broker) -> None:
    last = await broker.append("log.lane.a", b"0", msg_id="0")
    fenced = [broker.append("log.lane.a", b"g", msg_id=f"g{n}", expect_last=last) for n in range(3)]
    free = [broker.append("log.lane.b", b"f", msg_id=f"f{n}") for n in range(3)]
    ends = await asyncio.gather(*fenced, *free, return_exceptions=True)
    assert [type(end) for end in ends] == [int, Stale, Stale, int, int, int]
    assert len(await texts(broker, "log.lane.>")) == 5


async def test_what_is_delivered_comes_in_order_and_again_until_it_is_acknowledged(
    broker: Broker, opens: Opens
) -> None:
    for n in range(4):
        await broker.append(f"cmd.x.{n % 2}", str(n).encode(), msg_id=str(n))
    assert await delivered(broker, 2, acked=False) == [b"0", b"0"]
    assert await delivered(broker, 2) == [b"0", b"1"]
    again = await opens()
    assert await delivered(again, 2) == [b"2", b"3"]
    assert await delivered(again, 4, durable="another") == [b"0", b"1", b"2", b"3"]


async def test_who_waits_for_a_delivery_gets_what_is_appended_later(broker: Broker) -> None:
    waiting = asyncio.create_task(delivered(broker, 1))
    await asyncio.sleep(0)
    await broker.append("cmd.other.a", b"not this", msg_id="1")
    await broker.append("cmd.x.a", b"this", msg_id="2")
    assert await waiting == [b"this"]


async def test_everything_is_there_when_it_is_opened_again(broker: Broker, opens: Opens) -> None:
    places = [await broker.append("log.lane.a", str(n).encode(), msg_id=str(n)) for n in range(600)]
    again = await opens()
    assert await texts(again, "log.lane.a") == [str(n).encode() for n in range(600)]
    assert await texts(again, "log.lane.a", after=places[-2]) == [b"599"]
    with pytest.raises(Stale):
        await again.append("log.lane.a", b"x", msg_id="x", expect_last=places[-2])


async def test_an_entry_has_a_greatest_size(broker: Broker) -> None:
    await broker.append("log.lane.a", b"x" * MAX_ENTRY_BYTES, msg_id="1")
    with pytest.raises(TooLarge):
        await broker.append("log.lane.a", b"x" * (MAX_ENTRY_BYTES + 1), msg_id="2")
    assert len(await texts(broker, "log.lane.a")) == 1


async def test_a_lease_has_one_holder(broker: Broker) -> None:
    lease = await broker.lease("brain", "one", 60.0)
    assert lease is not None
    assert await broker.lease("brain", "two", 60.0) is None
    await lease.renew()
    await lease.release()
    assert await broker.lease("brain", "two", 60.0) is not None
    with pytest.raises(Deposed):
        await lease.renew()
    await lease.release()  # of a former holder: changes nothing
    assert await broker.lease("brain", "three", 60.0) is None


async def test_a_lease_that_ran_out_is_free(broker: Broker) -> None:
    former = await broker.lease("brain", "one", 0.0)
    assert former is not None
    assert await broker.lease("brain", "two", 60.0) is not None
    with pytest.raises(Deposed):
        await former.renew()


async def test_signals_reach_who_watches_now(broker: Broker) -> None:
    heard: list[bytes] = []
    broker.signal("live.a", b"before")
    unwatch = broker.watch("live.a", heard.append)
    broker.signal("live.a", b"1")
    broker.signal("live.b", b"2")
    unwatch()
    broker.signal("live.a", b"after")
    assert heard == [b"1"]


# --- the store in a file (DB01) --------------------------------------------------------------------------------------


async def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path: Path) -> None:
    first = SqliteBroker(tmp_path / "store.db")
    with pytest.raises(StoreUnusable, match=f"in use by process {os.getpid()}: stop it"):
        SqliteBroker(tmp_path / "store.db")
    await first.close()
    await SqliteBroker(tmp_path / "store.db").close()


async def test_db01_after_kill_9_every_acknowledged_append_is_there(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.kernel.appender", str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    acknowledged = [(await process.stdout.readline()).decode().strip() for _ in range(200)]
    process.kill()
    rest, _ = await process.communicate()
    acknowledged += [line for line in rest.decode().splitlines(keepends=True) if line.endswith("\n")]
    broker = SqliteBroker(path)
    found = [stored.data.decode() for stored in await broker.read("log.lane.>")]
    await broker.close()
    assert {line.strip() for line in acknowledged} <= set(found)
    for task in range(8):
        numbers = [int(text.split("/")[1]) for text in found if text.startswith(f"{task}/")]
        assert numbers == list(range(len(numbers)))


async def test_db01_another_program_holds_the_file_and_the_loop_is_never_blocked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    await broker.append("log.lane.a", b"0", msg_id="0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    began = time.monotonic()
    writing = [asyncio.create_task(_writes(broker, task)) for task in range(20)]
    blocked_seconds = await _blocked_seconds_until(began + LOCKED_SECONDS)
    assert not any(task.done() for task in writing)
    assert await texts(broker, "log.lane.a") == [b"0"], "reading goes on"
    other.execute("rollback")
    other.close()
    await asyncio.gather(*writing)
    assert len(await broker.read("log.lane.>")) == 20 * 20 + 1
    await broker.close()
    assert blocked_seconds < LOCKED_SECONDS * 0.9, "a loop that waited for the lock would have stood still all the time"


async def _writes(broker: Broker, task: int) -> None:
    last = 0
    for number in range(20):
        last = await broker.append(f"log.lane.t{task}", str(number).encode(), msg_id=f"{number}", expect_last=last)


async def _blocked_seconds_until(end: float) -> float:
    """All beyond BLOCKED_SECONDS_MOST between two turns of the loop; a busy machine makes some of it."""
    blocked = 0.0
    while (before := time.monotonic()) < end:
        await asyncio.sleep(0.005)
        blocked += max(0.0, time.monotonic() - before - 0.005 - BLOCKED_SECONDS_MOST)
    return blocked


async def test_db01_a_reader_that_stays_long_holds_up_no_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    await broker.append("log.lane.a", b"0", msg_id="0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin")
    assert other.execute("select count(*) from entry").fetchone() == (1,)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _writes(broker, 1)
    assert other.execute("select count(*) from entry").fetchone() == (1,)
    other.close()
    await broker.close()


async def test_an_acknowledgement_goes_with_the_next_commit_and_is_known_at_once(tmp_path: Path) -> None:
    broker = SqliteBroker(tmp_path / "store.db")
    for n in range(3):
        await broker.append("cmd.x.a", str(n).encode(), msg_id=str(n))
    assert await delivered(broker, 1) == [b"0"]
    await broker.append("log.lane.a", b"it goes with this", msg_id="3")
    assert await delivered(broker, 1) == [b"1"]
    broker.kill()
    await broker.close()
    again = SqliteBroker(tmp_path / "store.db")
    assert await delivered(again, 2) == [b"1", b"2"]
    await again.close()
    last = SqliteBroker(tmp_path / "store.db")
    await last.append("cmd.x.a", b"new", msg_id="4")
    assert await delivered(last, 1) == [b"new"]
    await last.close()


async def test_db01_on_a_full_disk_nothing_is_acknowledged_and_later_it_goes_on(tmp_path: Path) -> None:
    broker = SqliteBroker(tmp_path / "store.db")
    await broker.append("log.lane.a", b"before", msg_id="0")
    (pages,) = await _on_its_connection(broker, "pragma page_count")
    await _on_its_connection(broker, f"pragma max_page_count = {pages}")
    big = b"x" * 100_000
    with pytest.raises(Unconfirmed, match="full"):
        await broker.append("log.lane.a", big, msg_id="1")
    assert await texts(broker, "log.lane.a") == [b"before"]
    await _on_its_connection(broker, "pragma max_page_count = 100000")
    await broker.append("log.lane.a", big, msg_id="1")
    assert await texts(broker, "log.lane.a") == [b"before", big]
    await broker.close()


async def _on_its_connection(broker: SqliteBroker, statement: str) -> tuple[int]:
    """The bound that stands for a full disk belongs to the connection that writes."""
    row: tuple[int] = await broker._writer.do(lambda db: db.execute(statement).fetchone())
    return row


async def test_db01_a_text_that_is_no_unicode_is_stored_mended(broker: Broker) -> None:
    text = whole_text("caf\udc92e\0")
    assert text == "caf�e�"
    await broker.append("evt.medium.a", encode(message(text=text)), msg_id="1")
    (stored,) = await broker.read("evt.medium.a")
    assert decode(stored.data, Fact).text == text


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    db = sqlite3.connect(path)
    db.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=r"newer version \(schema 2\): start that one again"):
        asyncio.run(_opened(path))
    assert path.read_bytes()[100:] == before[100:]


def test_a_damaged_file_is_named_with_the_mend(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"this is no store at all " * 400)
    with pytest.raises(StoreUnusable, match=r"store\.db: .*not a database.*backup"):
        asyncio.run(_opened(path))
    with pytest.raises(StoreUnusable, match="not a database"):
        asyncio.run(_opened(path))  # the lock was let go


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match=r"Set \[store\] path to a file in a folder that can be written"):
        asyncio.run(_opened(tmp_path / "file" / "store.db"))


async def _opened(path: Path) -> None:
    broker = SqliteBroker(path)
    await broker.close()


async def test_who_gave_up_waiting_disturbs_nobody(broker: Broker) -> None:
    task = asyncio.create_task(broker.append("log.lane.a", b"1", msg_id="1"))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await broker.append("log.lane.b", b"2", msg_id="2")
    assert await texts(broker, "log.lane.a") == [b"1"], "a cancelled append may be stored, and here it is"


# --- ids are text (DB02) ---------------------------------------------------------------------------------------------

IDS = {
    "slack_ts": ["1767600000.000010", "1767600000.100000", "1767600000.000200"],
    "telegram_chat": ["-1002471352452"],
    "email_message_id": ["<0001.5E3@example.org>"],
    "slack_file_id": ["F0123456789"],
    "leading_zero": ["007"],
    "looks_numeric_user": ["12345678901234567890"],
}


def message(place: str = "p", thread: str | None = None, user: str = "u", text: str = "Hi.") -> MessageReceived:
    return MessageReceived(
        identity=f"slack-T1/message/{place}/{thread}",
        route=Route(medium="slack", account="slack-T1", place=place, thread=thread, reply_to=thread),
        author=Person(address=Address(medium="slack", user=user), name="Ana"),
        text=text,
        at=datetime(2026, 1, 5, tzinfo=UTC),
    )


@pytest.mark.parametrize("value", [value for values in IDS.values() for value in values])
async def test_db02_an_id_comes_back_as_the_same_text(broker: Broker, value: str) -> None:
    said = message(place=value, thread=value, user=value)
    taken = Taken(event=said, at=said.at)
    await broker.append("log.lane.a", stamped(1, "nonce", taken), msg_id="1")
    (stored,) = await broker.read("log.lane.a")
    _, _, entry = unstamped(stored, LaneEntry)
    assert entry == taken
    found = (
        entry.event.route.place,
        entry.event.route.thread,
        entry.event.route.reply_to,
        entry.event.author.address.user,
    )
    assert found == (value, value, value, value)
    assert all(isinstance(one, str) for one in found)
    assert identity_of(entry.event) == said.identity
    assert json.loads(stored.data)[2]["event"]["route"]["thread"] == value


def test_db02_an_id_that_was_stored_as_a_number_is_refused_and_not_guessed() -> None:
    text = encode(message(thread="1767600000.000010")).replace(b'"1767600000.000010"', b"1767600000.000010")
    with pytest.raises(Exception, match="Expected `str"):
        decode(text, Fact)


def test_db02_two_writings_of_one_number_are_two_ids() -> None:
    assert identity_of(message(thread="1767600000.000010")) != identity_of(message(thread="1767600000.00001"))
