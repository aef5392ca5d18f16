"""The views: typed for ever, searched by whoever may, behind the journals and never in their way."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import pytest
from click.testing import CliRunner

from brain import history
from brain.entries import Decided, Speak, Taken
from frontdesk.cli import main
from frontdesk.upkeep import views_file
from gateway import views
from gateway.addresses import Address, Route
from gateway.broker.protocol import Stored
from gateway.broker.sqlite import SqliteBroker
from gateway.events import MessageReceived, Person
from gateway.journal import stamped
from gateway.keeping import ViewsFailed
from gateway.views import Rows
from tests.patience import PATIENCE_SECONDS
from tests.store import words
from tests.store.conftest import eventually, keeping

DB02 = {
    "ts": ("1767600000.000010", "1767600000.100000", "1767600000.000200"),
    "place": "-1002471352452",
    "reply_to": "<0001.5E3@example.org>",
    "thread": "007",
    "user": "12345678901234567890",
}


@pytest.fixture
def file(tmp_path):
    made = views_file(tmp_path / "store.db")
    made.open()
    yield made
    made.close()


def stored(sequence, entry, conversation="p-ana"):
    return Stored(subject=f"log.lane.{conversation}", sequence=sequence, data=stamped(1, "n", entry))


def taken(text, identity, **route):
    route = {"medium": "slack", "account": "slack-T1", "place": "C1"} | route
    author = Person(address=Address(medium="slack", user="T1/U7"), name="Ana")
    fact = MessageReceived(identity=identity, route=Route(**route), author=author, text=text, at=words.START)
    return Taken(event=fact, at=words.START)


def rows(tmp_path, sql):
    with closing(sqlite3.connect(views.path_of(tmp_path / "store.db"))) as db:
        return db.execute(sql).fetchall()


# --- DB02: ids and times are text ------------------------------------------------------------------------------------


async def test_db02_every_value_is_read_back_as_it_was_given(tmp_path, file):
    for n, ts in enumerate(DB02["ts"]):
        route = {"place": DB02["place"], "thread": DB02["thread"], "reply_to": ts}
        file.feed([stored(n + 1, taken(DB02["user"], f"slack-T1/message/C1:{ts}/0", **route))])
    found = rows(tmp_path, "select id, place, thread, reply_to, text, typeof(reply_to) from messages order by reply_to")
    assert found == [
        (f"slack-T1/message/C1:{ts}/0", DB02["place"], DB02["thread"], ts, DB02["user"], "text")
        for ts in sorted(DB02["ts"])
    ]


async def test_db02_a_number_where_text_belongs_is_refused_by_the_table_or_kept_as_text(tmp_path, file):
    kept = rows(tmp_path, "select name, type from pragma_table_info('messages') where name in ('id', 'reply_to', 'at')")
    assert {kind for _, kind in kept} == {"TEXT"}
    assert rows(tmp_path, "select strict from pragma_table_list('messages')") == [(1,)]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("create table t(ts text) strict")
        db.execute("insert into t values (?)", ("1767600000.100000",))
        assert db.execute("select ts from t").fetchone() == ("1767600000.100000",)


async def test_db02_the_same_ts_twice_is_one_row_and_the_answer_has_its_thread(tmp_path, file):
    ts = DB02["ts"][1]
    first = stored(1, taken("Book Rome", f"slack-T1/message/C1:{ts}/0", thread=ts))
    spoken = Speak(route=Route(medium="slack", account="slack-T1", place="C1", thread=ts), text="Done")
    decided = stored(2, Decided(turn=1, at=words.START, covers=("x",), decisions=(spoken,)))
    file.feed([first, first, decided])
    assert rows(tmp_path, "select thread, text from messages order by number") == [(ts, "Book Rome"), (ts, "Done")]


# --- search ----------------------------------------------------------------------------------------------------------


async def test_a_conversation_finds_only_what_was_said_in_it(tmp_path, file):
    file.feed([stored(1, taken("our trip to Málaga", "1")), stored(2, taken("Malaga is mine", "2"), "p-bo")])
    store = tmp_path / "store.db"
    assert [one.text for one in history.recalled(store, "malaga", "p-ana")] == ["our trip to Málaga"]
    assert [one.text for one in history.recalled(store, "malaga", "p-bo")] == ["Malaga is mine"]
    assert history.recalled(store, "malaga", "p-eve") == []
    assert len(history.searched(store, "malaga")) == 2


@pytest.mark.parametrize(
    "asked", ['"', "AND", "a OR", "NEAR(", "x* -y", "conversation:p-bo", "'; drop table messages; --", "  "]
)
async def test_whatever_is_asked_is_only_words(tmp_path, file, asked):
    file.feed([stored(1, taken("one", "1")), stored(2, taken("conversation p bo", "2"), "p-bo")])
    assert history.recalled(tmp_path / "store.db", asked, "p-ana") == []
    assert len(rows(tmp_path, "select * from messages")) == 2


async def test_an_outcome_reaches_the_message_and_an_unreadable_entry_stops_nothing(tmp_path, file):
    walk = words.lane(5, 200)
    entries = [stored(n + 1, entry) for n, entry in enumerate(walk.entries)]
    file.feed(
        [*entries[:100], Stored(subject="log.lane.p-ana", sequence=100, data=b'[1,"n",{"type":"New"}]'), *entries[100:]]
    )
    outcomes = {outcome for (outcome,) in rows(tmp_path, "select distinct outcome from messages")}
    assert {"received", "on its way"} < outcomes
    assert rows(tmp_path, "select sum(usd) from costs where model = 'm'")[0][0] > 0


async def test_the_operator_searches_by_the_command_line(tmp_path, file):
    file.feed([stored(1, taken("Book \x1b[2JRome\x9b", "1"))])
    (tmp_path / "config.toml").write_text(f'[store]\npath = "{tmp_path}/store.db"\n')
    config = str(tmp_path / "config.toml")
    asked = lambda *words, **how: CliRunner().invoke(main, ["search", *words, "--config", config], **how)  # noqa: E731
    found = asked("book", color=True).output
    assert "Ana (slack:T1/U7)  [p-ana]\n    Book [2JRome\n" in found, "no text rewrites the terminal"
    assert asked("paris").output == "Nothing was found.\n"


# --- the file --------------------------------------------------------------------------------------------------------


async def test_a_newer_file_is_refused_with_the_mend(tmp_path, file):
    file.close()
    with closing(sqlite3.connect(views.path_of(tmp_path / "store.db"))) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(ViewsFailed, match="newer version"):
        file.open()


async def test_a_migration_that_was_cut_off_begins_again(tmp_path, file):
    file.feed([stored(1, taken("Book Rome", "1"))])
    file.close()
    with closing(sqlite3.connect(views.path_of(tmp_path / "store.db"))) as db:
        db.executescript("drop trigger messages_ai; drop table costs; pragma user_version = 0")
    assert file.open() == 1
    file.feed([stored(2, taken("Book Paris", "2"))])
    assert [one.text for one in history.searched(tmp_path / "store.db", "book")] == ["Book Rome", "Book Paris"]


async def test_the_journals_do_not_wait_for_a_view_that_hangs(tmp_path, broker):
    hangs, over, noted = threading.Event(), threading.Event(), []

    class Hanging:
        pattern = "log."

        def note(self, rows: Rows, stored: Stored) -> None:
            hangs.set()
            assert over.wait(PATIENCE_SECONDS)
            noted.append(stored)

    async with keeping(broker, views.ViewsFile(tmp_path / "hanging.db", [Hanging()])):
        await broker.append("log.lane.a", stamped(1, "n", taken("x", "0")), msg_id="")
        await eventually(hangs.is_set)
        for n in range(1, 8):
            await broker.append("log.lane.a", stamped(1, "n", taken("x", str(n))), msg_id="")
        assert noted == []
        over.set()
        await eventually(lambda: len(noted) == 8)


async def test_views_that_are_ahead_of_the_journals_are_fed_anew(tmp_path, file):
    file.feed([stored(40, taken("of a store that was lost", "old"))])
    file.close()
    broker = SqliteBroker(tmp_path / "store.db")
    async with keeping(broker, views_file(tmp_path / "store.db")) as keeper:
        await broker.append("log.lane.p-ana", stamped(1, "n", taken("the first of the new one", "new")), msg_id="")
        await keeper.caught_up()
    await broker.close()
    assert [one.text for one in history.searched(tmp_path / "store.db", "new one")] == ["the first of the new one"]


async def test_views_that_cannot_be_written_are_told_of_once(tmp_path, broker, caplog, monkeypatch):
    monkeypatch.setattr("gateway.keeping.PAUSE_SECONDS", 0.01)
    path = views.path_of(tmp_path / "store.db")
    path.write_bytes(b"certainly not a database" * 100)
    opened = []

    class Views(views.ViewsFile):
        def open(self):
            opened.append(path)
            return super().open()

    async with keeping(broker, Views(path, [])) as keeper:
        await eventually(lambda: len(opened) >= 3)
        path.unlink()
        await broker.append("log.lane.p-ana", stamped(1, "n", taken("x", "1")), msg_id="")
        await keeper.caught_up()
    assert [record.message.partition(": ")[2][:22] for record in caplog.records if record.levelname == "ERROR"] == [
        "file is not a database"
    ]
    assert "can be written again" in caplog.text


async def test_a_rebuild_that_fails_says_why(tmp_path):
    await SqliteBroker(tmp_path / "store.db").close()
    views.path_of(tmp_path / "store.db").write_bytes(b"certainly not a database" * 100)
    (tmp_path / "config.toml").write_text(f'[store]\npath = "{tmp_path}/store.db"\n')
    command = ["rebuild", "--config", str(tmp_path / "config.toml")]
    ended = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert ended.output.startswith("Error: ")
    assert "delete it and run `frontdesk rebuild`" in ended.output


async def test_the_operator_rebuilds_and_erases_by_the_command_line(tmp_path):
    broker = SqliteBroker(tmp_path / "store.db")
    await broker.append("log.lane.p-ana", stamped(1, "n", taken("Book Rome", "1")), msg_id="")
    (tmp_path / "config.toml").write_text(f'[store]\npath = "{tmp_path}/store.db"\n')

    def run(*command):
        return CliRunner().invoke(main, [*command, "--config", str(tmp_path / "config.toml")])

    refused = await asyncio.to_thread(run, "rebuild")
    assert (refused.exit_code, "stop it" in refused.output) == (1, True)
    await broker.close()
    assert (await asyncio.to_thread(run, "rebuild")).output == "Made anew from 1 entries.\n"
    assert "Book Rome" in run("search", "rome").output
    assert "is no address" in run("erase", "Ana", "--yes").output
    assert "Erased: 1 messages of slack:T1/U7" in (await asyncio.to_thread(run, "erase", "slack:T1/U7", "--yes")).output
    assert run("search", "rome").output == "Nothing was found.\n"
