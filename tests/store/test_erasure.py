"""What a person said is gone from every file, what others said is not, and nothing is taken again."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
from msgspec import inspect

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain import history
from brain.entries import Act, Decided, LaneEntry
from brain.state import LaneState
from frontdesk.erase import WORDS, erase
from frontdesk.rewriting import KINDS
from frontdesk.tombstones import STAYS
from frontdesk.upkeep import views_file
from gateway.addresses import Address
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import StoreUnusable
from gateway.events import Person, Ref, Start
from gateway.folding import stamped
from gateway.journal import Journal, fold_stored, publish
from gateway.notes import Notes
from gateway.people import ORDERS, ChangePeople
from gateway.record import encode
from gateway.seen import Identities, erased
from mediums.local import wire
from mediums.local.room import Entry as RoomEntry
from mediums.local.room import Posted, RoomState, Settled
from tests.patience import PATIENCE_SECONDS
from tests.servers.openai import Reply, ScriptedOpenAI
from tests.store import words
from tests.store.conftest import GUARD, eventually, keeping, running
from tests.store.gateway import gateway, heard, told
from tests.store.stage import EchoModel, FakePlatform, said, stage

SECRET, OTHER, LATER = "Zaragoza-4711", "Helsinki-0815", "Montevideo-99"
ANA = Address(medium="telegram", user="42")


async def journal(stack, broker, subject, state, union):
    made = Journal(broker, subject, state, union, GUARD, "test")
    await made.open()
    await stack.enter_async_context(running(made.run()))
    return made


async def lived_in(path, folder):
    """Two people alone and in a room, work in progress, the local room, all of it with and without snapshots."""
    platform = FakePlatform()
    broker = SqliteBroker(path)
    async with (
        stage(path, EchoModel(), ["42", "43"], [platform], broker=broker) as s,
        keeping(broker, views_file(path)) as keeper,
    ):
        await s.hears(said("42", f"My secret is {SECRET}, really.", 1))
        await eventually(lambda: any(SECRET in text for text in platform.texts("42")))
        await s.hears(said("43", f"Mine is {OTHER}.", 1))
        await s.hears(said("-100", f"In the room: {SECRET}.", 2, user="42"))
        await eventually(lambda: any(OTHER in text for text in platform.texts("43")))
        for lane in s.manager.lanes():
            await lane.journal.snapshot()
        await s.hears(said("42", f"Once more {SECRET} and {LATER}.", 3))
        await eventually(lambda: any(LATER in text for text in platform.texts("42")))
        await _work(broker, folder)
        await _room(broker)
        await keeper.caught_up()
    await broker.close()


async def _work(broker, folder):
    """An action that Ana asked for, with a workspace; its words are the secret's."""
    async with AsyncExitStack() as stack:
        action = await journal(stack, broker, "log.act.p-ana-a1", ActionState("p-ana-a1"), ActionEntry)
        walk = words.Walk(1, ActionState("p-ana-a1"))
        made = words.action(4, 120)
        for entry in made.entries:
            if type(entry).__name__ not in ("Owned", "Released", "Emitted"):
                await action.write(lambda _, entry=entry: entry)
        await action.write(lambda _: words.a.Notified(text=f"looking at {SECRET}"))
        await action.snapshot()
        await action.write(lambda _: words.a.Notified(text=f"still at {SECRET}"))
        await publish(broker, "cmd.act.p-ana-a1", action.state.start, "x")
        assert walk.entries == []
    workspace = folder / "p-ana-a1" / "workspace"
    await asyncio.to_thread(workspace.mkdir, parents=True)
    await asyncio.to_thread((workspace / "notes.txt").write_text, SECRET)


async def _room(broker):
    async with AsyncExitStack() as stack:
        room = await journal(stack, broker, "log.room.local", RoomState(lambda: None), RoomEntry)
        for n, author in enumerate(["you", "assistant"]):
            at = words.START
            posted = Posted(id=f"post-{n:08}", author=author, name="Bo", medium="web", text=f"hi {OTHER}", at=at)
            await room.write(lambda _, posted=posted: posted)
        answer = Posted(
            id=f"{Ref('p-c42', 1, 0)}/0",
            author="assistant",
            name="F",
            medium="web",
            text=f"echo {SECRET}",
            at=words.START,
        )
        await room.write(lambda _: answer)


def everything(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_nothing_of_it_is_left_in_any_file(tmp_path):
    path = tmp_path / "store.db"
    await lived_in(path, tmp_path / "store.db.actions")
    before = everything(tmp_path)
    assert SECRET.encode() in before
    assert history.searched(path, SECRET)
    report = await erase(path, ANA)
    assert report.messages == 3
    assert report.workspaces == 1
    after = everything(tmp_path)
    for word in (SECRET, LATER, "Person 42"):
        assert word.encode() not in after
    assert after.count(OTHER.encode()) > 5
    assert history.searched(path, SECRET) == history.searched(path, LATER) == []
    assert {found.conversation for found in history.searched(path, OTHER)} == {"p-c43"}


async def test_what_was_erased_is_not_taken_again_and_all_goes_on(tmp_path):
    path = tmp_path / "store.db"
    await lived_in(path, tmp_path / "store.db.actions")
    await erase(path, ANA)
    assert (await erase(path, ANA)).messages == 3  # again, after a cut: nothing is different
    platform, model = FakePlatform(), EchoModel()
    async with stage(path, model, ["42", "43"], [platform]) as s:
        for number, text in ((1, f"My secret is {SECRET}, really."), (3, "x"), (4, "And now?")):
            await s.hears(said("42", text, number))
        await eventually(lambda: platform.texts("42"))
        assert platform.texts() == ["echo And now?"]
        assert SECRET not in str(model.requests)
        lane = await fold_stored(s.broker, "log.lane.p-c42", LaneState("p-c42"), LaneEntry)
        assert lane.turns == 3 or lane.turns == 4
        action = await fold_stored(s.broker, "log.act.p-ana-a1", ActionState("p-ana-a1"), ActionEntry)
        assert action.start is not None
        assert action.start.query == "(erased)"
        assert s.notices == []


async def test_the_local_room_forgets_its_owner_too(tmp_path):
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    say = wire.Say(id="post-00000001", text=f"buy {SECRET}")
    fact = wire.message(say, "web", "Ana", words.START)
    await publish(broker, "evt.medium.local", fact, fact.identity)
    async with AsyncExitStack() as stack:
        room = await journal(stack, broker, "log.room.local", RoomState(lambda: None), RoomEntry)
        posted = Posted(id=say.id, author="you", name="Ana", medium="web", text=fact.text, at=fact.at)
        await room.write(lambda _: posted)
        await room.write(lambda _: Settled(ids=(say.id,), silence=f"{SECRET} needs no answer"))
        await room.snapshot()
    await broker.close()
    await erase(path, Address(medium="web", user="owner"))
    assert SECRET.encode() not in everything(tmp_path)
    broker = SqliteBroker(path)
    state = await fold_stored(broker, "log.room.local", RoomState(lambda: None), RoomEntry)
    await broker.close()
    assert state.position(say.id) == 1
    assert state.after(0)[0].entry.text == "(erased)"


async def test_a_persons_notes_go_and_another_ones_stay(tmp_path):
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    notes = Notes(broker, lambda person: person.name.lower(), lambda: words.START)
    bo = Person(address=Address(medium="telegram", user="43"), name="Bo")
    await notes.add(words.ANA, f"the sheet of {SECRET}", "work")
    await notes.add(bo, f"the sheet of {OTHER}", "work")
    await broker.close()
    await erase(path, ANA, "ana")
    await erase(path, ANA, "ana")
    assert SECRET.encode() not in everything(tmp_path)
    broker = SqliteBroker(path)
    notes = Notes(broker, lambda person: person.name.lower(), lambda: words.START)
    assert await notes.of(words.ANA) == []
    assert [one.text for one in await notes.of(bo)] == [f"the sheet of {OTHER}"]
    await notes.add(words.ANA, "new", "work")
    assert [one.number for one in await notes.of(words.ANA)] == [2]
    await broker.close()


async def test_it_is_refused_while_a_gateway_runs(tmp_path, broker):
    with pytest.raises(StoreUnusable, match="in use by process"):
        await erase(tmp_path / "store.db", ANA)


def test_an_erased_identity_is_the_same_one_for_ever_and_nothing_else_is():
    taken = Identities()
    taken.add("telegram-1/message/42:1/0")
    assert erased("telegram-1/message/42:1/0") in taken
    assert erased(erased("telegram-1/message/42:1/0")) == erased("telegram-1/message/42:1/0")
    assert "erased-by a strange platform" not in taken
    again = Identities(taken.freeze())
    assert "telegram-1/message/42:1/0" in again
    assert "telegram-1/message/42:10/0" not in again


async def test_quotes_in_what_others_said_and_decided_go_and_their_own_words_stay(tmp_path):
    path = tmp_path / "store.db"
    platform, broker = FakePlatform(), SqliteBroker(path)
    async with (
        stage(path, EchoModel(), ["42", "43"], [platform], broker=broker) as s,
        keeping(broker, views_file(path)) as keeper,
    ):
        await s.hears(said("42", f"My secret is {SECRET}, really.", 1))
        await eventually(lambda: platform.texts("42"))
        await s.hears(said("43", f"Ana wrote: “my secret is {SECRET}, really”; mine is {OTHER}.", 1))
        await eventually(lambda: platform.texts("43"))
        await keeper.caught_up()
    await broker.close()
    await erase(path, ANA)
    after = everything(tmp_path)
    assert SECRET.encode() not in after
    (theirs,) = [found.text for found in history.searched(path, OTHER) if found.who]
    assert theirs == f"Ana wrote: “(erased)”; mine is {OTHER}."


async def test_a_summary_of_what_quotes_them_goes_whole_as_it_may_retell_them_in_other_words(tmp_path):
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    bo = Person(address=Address(medium="telegram", user="43"), name="Bo")
    about_her = f"Ana wrote {SECRET}; she hides something."
    summaries = {about_her: "p-c43", "Bo likes tea.": "p-c44"}
    await broker.append("evt.medium.telegram-1", encode(said("42", f"My secret is {SECRET}, really.", 1)), msg_id="1")
    for key, context in (("p-c43-a1", f"Ana wrote: my secret is {SECRET}, really."), ("p-c44-a1", "")):
        same = {"ref": Ref("p-c43", 1, 0), "conversation": "p-c43", "action": key, "by": bo}
        start = Start(**same, name="x", query="Look", context=context)
        briefed = words.a.Briefed(start=start, through=1, at=words.START)
        for entry in (briefed, words.a.Compacted(summary="hides it", through=1)):
            await broker.append(f"log.act.{key}", stamped(1, "x", entry), msg_id="")
    for text, lane in summaries.items():
        summary = words.Summarised(first=1, through=1, text=text, at=words.START, whose=(bo.address,))
        await broker.append(f"log.lane.{lane}", stamped(1, "x", summary), msg_id="")
    await broker.close()
    await erase(path, ANA)
    broker = SqliteBroker(path)
    left = {one.subject: one.data for one in await broker.read("log.>")}
    await broker.close()
    assert b"hides" not in left["log.act.p-c43-a1"] + left["log.lane.p-c43"]
    assert b"hides it" in left["log.act.p-c44-a1"]
    assert b"Bo likes tea." in left["log.lane.p-c44"]


async def test_what_a_task_was_told_of_a_conversation_with_them_goes_however_short_it_is(tmp_path):
    """Words too short for a quote, and what was answered to them, in the work of somebody else there."""
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    bo = Person(address=Address(medium="telegram", user="43"), name="Bo")
    for n, (user, room) in enumerate((("42", "s-room"), ("43", "s-room"), ("43", "s-other"))):
        entry = words.Taken(event=said("-100", "Pin 4711", n, user=user), at=words.START)
        await broker.append(f"log.lane.{room}", stamped(1, "x", entry), msg_id="")
    for room in ("s-room", "s-other"):
        key, context = f"{room}-a1", f"{room} Pin 4711\nYou: Is kept."
        same = {"ref": Ref(room, 1, 0), "conversation": room, "by": bo}
        start = Start(**same, action=key, name="x", query="Look", context=context)
        async with AsyncExitStack() as stack:
            action = await journal(stack, broker, f"log.act.{key}", ActionState(key), ActionEntry)
            await action.write(lambda _, start=start: words.a.Briefed(start=start, through=1, at=words.START))
            await action.snapshot()
            await publish(broker, f"cmd.act.{key}", start, key)
    await broker.close()
    await erase(path, ANA)
    broker = SqliteBroker(path)
    names = ("log.act.s-room-a1", "log.act.s-other-a1")
    states = [await fold_stored(broker, name, ActionState("x"), ActionEntry) for name in names]
    await broker.close()
    assert [str(state.transcript.messages).count("Is kept.") for state in states] == [0, 1]
    assert [state.start.query for state in states] == ["Look", "Look"]
    assert b"s-room Pin" not in everything(tmp_path)
    assert b"s-other Pin" in everything(tmp_path)


async def test_attachments_go_unless_somebody_else_has_them_too(tmp_path):
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    digests = [await broker.put_blob(data) for data in (b"hers", b"both", b"his", b"nobody's")]
    hers, both, his, _ = digests
    for person, mine in (("42", (hers, both)), ("43", (both, his))):
        fact = encode(said(person, "see the file", 1))
        files = ",".join(f'{{"name":"a.txt","digest":"{one}"}}' for one in mine)
        await broker.append("evt.medium.telegram-1", fact[:-1] + f',"files":[{files}]}}'.encode(), msg_id=person)
    await broker.close()
    report = await erase(path, ANA)
    assert report.blobs == 2
    broker = SqliteBroker(path)
    assert {*await broker.blobs()} == {both, his}
    await broker.close()


async def test_a_running_gateway_does_it_itself_and_goes_on(tmp_path):
    async with ScriptedOpenAI() as server:
        server.script(lambda request: Reply(text=f"I heard {heard(request)}"))
        async with gateway(tmp_path, server) as g, g.client() as client:
            await g.start()
            client.say(f"My secret is {SECRET}, really.")
            await told(client, lambda text: SECRET in text)
            command = [sys.executable, "-m", "frontdesk", "erase", "terminal:owner", "--yes"]
            command += ["--config", str(tmp_path / "config.toml")]
            ended = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE_SECONDS
            )
            assert (ended.returncode, ended.stderr) == (0, "")
            assert "1 messages of terminal:owner" in ended.stdout
            client.say("How are you?")
            await told(client, lambda text: "How are you?" in text)
            await g.stop()
    assert SECRET not in server.requests[-1].text
    stored = b"".join(one.read_bytes() for one in tmp_path.glob("store.db*") if one.is_file())
    assert SECRET.encode() not in stored


async def test_an_order_of_the_operators_about_people_holds_up_no_erasure(tmp_path):
    path = tmp_path / "store.db"
    broker = SqliteBroker(path)
    await broker.append("evt.medium.telegram-1", encode(said("42", f"My secret is {SECRET}.", 1)), msg_id="1")
    order = ChangePeople(id="1", verb="link", person="Nobody", address=ANA)
    await publish(broker, ORDERS, order, order.id)
    await broker.close()
    assert (await erase(path, ANA)).messages == 1
    assert SECRET.encode() not in everything(tmp_path)


async def test_a_snapshot_with_work_in_it_is_erased_twice(tmp_path):
    """The work has begun at a time, and has a card: both stay what they are."""
    path = tmp_path / "store.db"
    ana = Person(address=ANA, name="Ana")
    for n in (1, 2):
        broker = SqliteBroker(path)
        async with AsyncExitStack() as stack:
            lane = await journal(stack, broker, "log.lane.s-room", LaneState("s-room"), LaneEntry)
            heard = said("-100", f"Look for {SECRET}.", n, user="42")
            act = Act(name=f"look{n}", query=f"Look for {SECRET}", by=ana, route=heard.route)
            await lane.write(lambda _, heard=heard: words.Taken(event=heard, at=words.START))
            decided = Decided(turn=n, at=words.START, covers=(heard.identity,), decisions=(act,))
            await lane.write(lambda _, decided=decided: decided)
            await lane.snapshot()
            assert all(action.began is not None for action in lane.state.actions.values())
        await broker.close()
        await erase(path, ANA)
        assert SECRET.encode() not in everything(tmp_path)


def test_every_time_and_every_word_of_a_fixed_set_stays_where_words_go():
    """Or what is left of a journal could not be read."""
    kinds = [one for kind in KINDS.values() for one in (kind.entries, kind.frozen)]
    fields = {name for kind in (*kinds, *WORDS.values()) for name in _fixed(inspect.type_info(kind), set())}
    assert {"began", "phase", "at"} <= fields
    assert fields - STAYS == set()


def _fixed(kind, seen):
    """The names of the fields of all structs in it that hold, somewhere, a time or a word of a fixed set."""
    for inner in _inside(kind):
        if isinstance(inner, inspect.StructType) and inner.cls not in seen:
            seen.add(inner.cls)
            for field in inner.fields:
                if any(isinstance(one, inspect.DateTimeType | inspect.LiteralType) for one in _inside(field.type)):
                    yield field.encode_name
                yield from _fixed(field.type, seen)


def _inside(kind):
    yield kind
    several = [*getattr(kind, "types", ()), *getattr(kind, "item_types", ())]
    for inner in (*several, *(getattr(kind, name, None) for name in ("item_type", "key_type", "value_type"))):
        if inner is not None:
            yield from _inside(inner)
