"""The file: what is said at the start when it cannot be used, what happens when it no longer can, and its copy."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from brain import history
from frontdesk.cli import main
from frontdesk.serve import local_token
from frontdesk.upkeep import backup, views_file
from gateway.broker import sqlite_file
from gateway.broker.protocol import Unconfirmed
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import StoreUnusable
from gateway.holding import supervise
from gateway.journal import publish
from gateway.settings import Settings, StoreSettings
from tests.patience import PATIENCE_SECONDS
from tests.store.conftest import eventually, keeping
from tests.store.stage import EchoModel, FakePlatform, said, stage


def config(tmp_path, path):
    (tmp_path / "config.toml").write_text(f'[store]\npath = "{path}"\n[model]\nname = "rehearsal"\n')
    return ["--config", str(tmp_path / "config.toml")]


async def filled(path, number=50):
    broker = SqliteBroker(path)
    await asyncio.gather(*(broker.append("evt.a", b"%d" % n * 500, msg_id="") for n in range(number)))
    await broker.close()


# --- at the start ----------------------------------------------------------------------------------------------------


async def test_a_second_gateway_is_refused(tmp_path, broker):
    with pytest.raises(StoreUnusable, match=rf"in use by process {os.getpid()}: stop it"):
        SqliteBroker(tmp_path / "store.db")


async def test_another_program_that_holds_the_file(tmp_path):
    await filled(tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("pragma locking_mode=exclusive")
        other.execute("begin exclusive")
        with pytest.raises(StoreUnusable, match=r"locked. Another program holds it: close that one"):
            sqlite_file.opened(tmp_path / "s.db", busy_seconds=0.1)


async def test_the_log_that_a_long_read_made_grow_is_small_again(tmp_path):
    broker = SqliteBroker(tmp_path / "s.db")
    log, written = tmp_path / "s.db-wal", b"x" * 200_000
    await broker.append("log.a", b"x", msg_id="")
    with closing(sqlite3.connect(tmp_path / "s.db")) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from entry").fetchone()
        await asyncio.gather(*(broker.append("log.a", written, msg_id="") for _ in range(100)))
        assert log.stat().st_size > 2 * sqlite_file.LOG_BYTES
    for _ in range(30):
        await broker.append("log.a", written, msg_id="")
    assert log.stat().st_size <= sqlite_file.LOG_BYTES
    await broker.close()


async def test_a_new_file_and_its_log_are_for_its_owner_alone(tmp_path):
    broker = SqliteBroker(tmp_path / "s.db")
    await broker.append("evt.a", b"1", msg_id="1")
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("s.db", "s.db-wal", "s.db-shm")]
    assert modes == [0o600] * 3
    await broker.close()


async def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "s.db").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(StoreUnusable, match=r"not a database.*restore a backup"):
        SqliteBroker(tmp_path / "s.db")


async def test_a_damaged_file(tmp_path):
    await filled(tmp_path / "s.db", 400)
    data = bytearray((tmp_path / "s.db").read_bytes())
    data[100:4096] = b"\xff" * 3996
    (tmp_path / "s.db").write_bytes(data)
    with pytest.raises(StoreUnusable, match=r"malformed.*restore a backup"):
        SqliteBroker(tmp_path / "s.db")


async def test_a_file_that_is_damaged_where_nobody_has_looked_yet_ends_whoever_reads_it(tmp_path):
    await filled(tmp_path / "s.db", 400)
    data = bytearray((tmp_path / "s.db").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4 * 4096] = b"\xff" * 4 * 4096
    (tmp_path / "s.db").write_bytes(data)
    broker = SqliteBroker(tmp_path / "s.db")

    async def reads(_):
        await broker.read("evt.a")

    with pytest.raises(StoreUnusable, match=r"malformed.*restore a backup"):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await supervise(broker, "brain", 5.0, reads)
    await broker.close()


async def test_a_file_of_a_newer_version(tmp_path):
    await filled(tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(StoreUnusable, match="newer version \\(schema 99\\): start that one again"):
        SqliteBroker(tmp_path / "s.db")


SCRIPT = """
import asyncio, os, resource, sys
{before}
from pathlib import Path
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import StoreUnusable
async def main():
    try:
        await SqliteBroker(Path(sys.argv[1])).close()
    except StoreUnusable as error:
        print(error)
asyncio.run(main())
"""


def started(path, before):
    command = [sys.executable, "-c", SCRIPT.format(before=before), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


async def test_a_full_disk_at_the_start(tmp_path):
    ignored = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    full = f"{ignored}; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    ended = await asyncio.to_thread(started, tmp_path / "s.db", full)
    assert "is full" in ended.stdout, ended


def test_a_token_that_a_full_disk_left_empty_is_made_again_and_none_is_left_half_made(tmp_path):
    settings, token = Settings(store=StoreSettings(path=tmp_path / "s.db")), tmp_path / "s.db.token"
    token.touch()
    made = local_token(settings)
    assert (made, token.read_text(), token.stat().st_mode & 0o777) == (local_token(settings), made, 0o600)
    before = """
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from frontdesk.serve import CannotStart, local_token
from gateway.settings import Settings, StoreSettings
from pathlib import Path
try:
    local_token(Settings(store=StoreSettings(path=Path(sys.argv[1] + ".other"))))
except CannotStart as error:
    print(error)"""
    ended = started(tmp_path / "s.db", before)
    assert "s.db.other.token: File too large" in ended.stdout, ended
    assert not [*tmp_path.glob("*.other*")]


def test_what_mends_a_file_that_cannot_be_written_is_said(tmp_path):
    full, refused = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only file system")
    assert sqlite_file.unwritable(Path("x"), full) == "x: No space left on device. Make room on the disk."
    assert "in a folder that can be written" in sqlite_file.unwritable(Path("x"), refused)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_a_file_that_may_only_be_read():
    with tempfile.TemporaryDirectory(prefix="frontdesk-") as name:  # the tests' own folder is closed to others
        path = Path(name) / "s.db"
        await filled(path)
        for one, rights in ((path.parent, 0o755), (path, 0o644), (path.with_name("s.db.lock"), 0o666)):
            one.chmod(rights)
        drop = "import gateway.broker.sqlite, sqlite3; os.setgid(65534); os.setuid(65534)"
        ended = await asyncio.to_thread(started, path, drop)
    assert "right to write the file and its folder" in ended.stdout, ended


# --- while it runs ---------------------------------------------------------------------------------------------------


async def test_db01_a_full_disk_confirms_nothing_is_told_once_and_goes_on_when_there_is_room(tmp_path):
    notices = []
    broker = SqliteBroker(tmp_path / "s.db", notices.append, calm_seconds=2.0)

    def limit(pages):
        return broker._writer.do(lambda db: db.execute(f"pragma max_page_count = {pages}").fetchone())

    async with stage(tmp_path / "s.db", EchoModel(), ["42"], [platform := FakePlatform()], broker=broker) as s:
        await s.hears(said("42", "before.", 1))
        await eventually(lambda: platform.texts() == ["echo before."])
        await limit(1)
        for n in range(3):
            with pytest.raises(Unconfirmed, match="full"):
                await broker.append("evt.medium.telegram-1", b"x" * 50_000, msg_id=str(n))  # more than a page
        assert len([text for text in notices if "is full" in text]) == 1
        await limit(1_000_000)
        await s.hears(said("42", "after.", 2))
        await eventually(lambda: "echo after." in platform.texts())
        await asyncio.sleep(2.1)
        await broker.append("evt.calm", b"x", msg_id="")
        await eventually(lambda: notices[-1].endswith("can be written again; everything goes on."))
        assert len(notices) == 2
        await limit(1)
        with pytest.raises(Unconfirmed, match="full"):
            await broker.append("evt.medium.telegram-1", b"x" * 50_000, msg_id="again")
        assert len({*notices}) == 3  # the same text would not be said again
    await broker.close()


async def test_db01_writers_wait_out_a_lock_of_another_program_and_the_loop_does_not(tmp_path, broker):
    """Twenty tasks, two hundred writes each, while somebody else holds the write lock."""
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("begin immediate")

        async def write(task):
            for n in range(200):
                await broker.append(f"evt.t{task}", b"%d" % n, msg_id="")

        work = asyncio.gather(*map(write, range(20)))
        longest = await _longest_stall(seconds=1.0)
        assert not work.done()
        other.execute("rollback")
        await work
    for task in range(20):
        assert [one.data for one in await broker.read(f"evt.t{task}")] == [b"%d" % n for n in range(200)]
    assert longest < 0.9  # a stall of ours would be the whole second; the bench has the figure


async def _longest_stall(seconds):
    longest, before = 0.0, time.perf_counter()
    end = before + seconds
    while before < end:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    return longest


async def test_db01_a_reader_that_stays_open_stops_nobody(tmp_path, broker):
    await broker.append("evt.a", b"first", msg_id="")
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("begin")
        assert other.execute("select count(*) from entry").fetchone() == (1,)
        for _ in range(100):
            await broker.append("evt.a", b"x", msg_id="")
        assert other.execute("select count(*) from entry").fetchone() == (1,)
    assert len(await broker.read("evt.a")) == 101


async def test_db01_every_connection_waits_and_is_durable(tmp_path, broker):
    for db in (sqlite_file.connect(tmp_path / "store.db"), await broker._writer.do(lambda db: db)):
        assert db.execute("pragma journal_mode").fetchone() == ("wal",)
        assert db.execute("pragma busy_timeout").fetchone() == (10_000,)
        assert db.execute("pragma synchronous").fetchone() == (2,)
    sqlite_file.connect(tmp_path / "store.db").close()


async def test_db01_a_lone_surrogate_is_mended_not_an_end_of_the_channel(broker):
    broken = said("42", "caf\udc92", 1)
    await publish(broker, "evt.medium.telegram-1", broken, broken.identity)
    await publish(broker, "evt.medium.telegram-1", said("42", "next", 2), "2")
    texts = [one.data.decode() for one in await broker.read("evt.>")]
    assert "caf\ufffd" in texts[0]
    assert "next" in texts[1]


# --- backup ----------------------------------------------------------------------------------------------------------


async def test_a_backup_of_a_running_gateway_is_whole_and_can_be_started(tmp_path):
    path, copied = tmp_path / "store.db", tmp_path / "copies" / "monday.db"
    copied.parent.mkdir()
    platform = FakePlatform()
    broker = SqliteBroker(path)
    async with (
        stage(path, EchoModel(), ["42"], [platform], broker=broker) as s,
        keeping(broker, views_file(path)) as keeper,
    ):
        await s.hears(said("42", "remember Rome.", 1))
        await eventually(platform.texts)
        await keeper.caught_up()
        writing = asyncio.create_task(chatter(broker))
        ended = await asyncio.to_thread(CliRunner().invoke, main, ["backup", str(copied), *config(tmp_path, path)])
        writing.cancel()
        assert ended.exit_code == 0, ended.output
    await broker.close()
    assert history.searched(copied, "rome")
    platform = FakePlatform()
    async with stage(copied, EchoModel(), ["42"], [platform]) as s:
        await s.hears(said("42", "remember Rome.", 1))
        await s.hears(said("42", "and now?", 2))
        await eventually(platform.texts)
        assert platform.texts() == ["echo and now?"]


async def chatter(broker):
    n = 0
    while True:
        n += 1
        await broker.append("evt.noise", b"x" * 1000, msg_id=str(n))


def keeping_in(path):
    return Settings(store=StoreSettings(path=path))


async def test_a_backup_never_overwrites_and_says_what_is_damaged(tmp_path):
    await filled(tmp_path / "s.db", 400)
    (tmp_path / "there.db").touch()
    with pytest.raises(StoreUnusable, match="is there already"):
        backup(keeping_in(tmp_path / "s.db"), tmp_path / "there.db")
    with pytest.raises(StoreUnusable, match="no such file"):
        backup(keeping_in(tmp_path / "none.db"), tmp_path / "copy.db")
    data = bytearray((tmp_path / "s.db").read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    (tmp_path / "s.db").write_bytes(data)
    with pytest.raises(StoreUnusable, match="damaged"):
        backup(keeping_in(tmp_path / "s.db"), tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


async def test_a_backup_that_fails_leaves_nothing_and_says_what_failed(tmp_path):
    await filled(tmp_path / "s.db", 400)
    (tmp_path / "s.db.blobs").mkdir()
    (tmp_path / "s.db.views.db").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(StoreUnusable, match=r"s\.db\.views\.db: file is not a database"):
        backup(keeping_in(tmp_path / "s.db"), tmp_path / "copy.db")
    assert not [*tmp_path.glob("copy*")]
    with pytest.raises(StoreUnusable, match=r"none/copy\.db: No such file or directory. Name a FILE"):
        backup(keeping_in(tmp_path / "s.db"), tmp_path / "none" / "copy.db")
    before = """
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from gateway.broker.sqlite_file import StoreUnusable, copy
from pathlib import Path
try:
    copy(Path(sys.argv[1]), Path(sys.argv[1] + ".copy"))
except StoreUnusable as error:
    print(error)"""
    ended = await asyncio.to_thread(started, tmp_path / "s.db", before)
    assert ended.stdout.startswith(f"{tmp_path}/s.db to {tmp_path}/s.db.copy: "), ended


async def test_an_erasure_that_a_disk_stops_says_so_in_words(tmp_path):
    await SqliteBroker(tmp_path / "s.db").close()
    (tmp_path / "s.db.views.db").mkdir()
    command = ["erase", "telegram:42", "--yes", *config(tmp_path, tmp_path / "s.db")]
    ended = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert ended.output.startswith("Error: ")
    assert "Not all is erased yet: do it again then." in ended.output


async def test_nothing_is_erased_where_an_entry_is_damaged_and_it_is_named(tmp_path):
    await filled(tmp_path / "s.db", 1)
    command = ["erase", "telegram:42", "--yes", *config(tmp_path, tmp_path / "s.db")]
    ended = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert ended.output.startswith("Error: evt.a, entry 1, is damaged")
    assert "nothing was erased: restore a backup" in ended.output
