"""A conversation whose journal cannot be read: who writes there is told so, once, and all others are answered. What
was written meanwhile is answered once it can be read again.
"""

import sqlite3
from contextlib import closing

from frontdesk.legible import unreadable
from gateway.broker.sqlite import SqliteBroker
from tests.people.town import GUEST, MEMBER, OWNER, says, shown, town


async def test_a_conversation_that_cannot_be_read_is_parked_and_the_others_go_on(tmp_path):
    async with town(tmp_path / "db", lambda request: says("Good morning")) as here:
        await here.says(OWNER, "Hello.")
        await here.says(MEMBER, "Hello.")
        await here.settled()
    broker = SqliteBroker(tmp_path / "db")
    assert await unreadable(broker) == []
    await broker.append("log.lane.p-ana", b'[9,"x",{"type":"WrittenByANewerVersion"}]', msg_id="newer")
    (found,) = await unreadable(broker)
    assert found.startswith("log.lane.p-ana, entry ")
    await broker.close()
    for n in (1, 2):
        async with town(tmp_path / "db", lambda request: says("Good day")) as here:
            await here.says(OWNER, "Are you there?")
            await here.says(OWNER, "Hello?")
            await here.says(MEMBER, "And you?")
            await here.says(GUEST, "Hello.")
            await here.settled()
            assert [notice.partition(",")[0] for notice in here.notices] == [
                "The conversation p-ana cannot be opened: log.lane.p-ana"
            ]
            assert await here.told(MEMBER.user) == ["Good morning"] + ["Good day"] * n
            assert await here.told(GUEST.user) == ["Good day"] * n
            refs = {send.ref for send in await here.sends() if send.route.place == OWNER.user}
            first, told = sorted(refs)
            assert first.source == "p-ana"
            assert told.source == "p-ana/parked"
    _mended(tmp_path / "db")
    async with town(tmp_path / "db", lambda request: says("Now I can")) as here:
        await here.says(OWNER, "At last?")
        await here.settled()
        seen = shown(here.model.requests[-1])
        assert [seen.count(text) for text in ("Are you there?", "Hello?", "At last?")] == [2, 2, 1]
        assert (await here.told(OWNER.user))[-1] == "Now I can"
        assert await here.broker.subjects("cmd.kept.>") == []
    async with town(tmp_path / "db", lambda request: says("Again")) as here:
        await here.settled()
        assert here.model.requests == []


async def test_a_fact_that_cannot_be_read_waits_for_a_version_that_can(tmp_path):
    async with town(tmp_path / "db", lambda request: says("Good day")) as here:
        await here.broker.append("evt.medium.test", b'{"type":"WrittenByANewerVersion"}', msg_id="newer")
        await here.says(OWNER, "Hello.")
        await here.settled()
        assert [notice.partition(",")[0] for notice in here.notices] == ["A stored fact cannot be read"]
    async with town(tmp_path / "db", lambda request: says("Good day")) as here:
        await here.settled()
        (stored,) = await here.broker.read("cmd.kept.unread")
        assert b"WrittenByANewerVersion" in stored.data


def _mended(path):
    """As by the version that wrote it."""
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute("delete from entry where cast(data as text) like '%WrittenByANewerVersion%'").rowcount == 1
