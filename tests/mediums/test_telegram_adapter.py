"""The Telegram medium against a Bot API on a socket: what it survives, and what it says of it."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gateway.addresses import Route
from gateway.cards import Card
from gateway.files import attachment
from gateway.kinds import kind_of
from gateway.live import Typing
from mediums.medium import Carried, OutcomeUnknown, Rejected, SurelyNotSent
from mediums.telegram.adapter import Pace
from mediums.telegram.failures import CallFailed
from tests.mediums.stages.telegram import QUICK
from tests.mediums.waiting import Inbox, eventually, receiving
from tests.patience import PATIENCE_SECONDS
from tests.servers.telegram import DROPPED, LOST_ANSWER, SILENCE, Refuse

CONFLICT = Refuse(409, "Conflict: terminated by other getUpdates request")
PARSE_ERROR = Refuse(400, "Bad Request: can't parse entities: Unsupported start tag")


def group_route(telegram, chat, **fields):
    return Route(medium="telegram", account=telegram.route.account, place=str(chat["id"]), **fields)


# --- receiving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [CONFLICT],
        [CONFLICT] * 5,
        [DROPPED],
        [Refuse(502, "Bad Gateway")] * 3,
        [Refuse(429, "Too Many Requests", retry_after=0)],
    ],
    ids=["one conflict", "several conflicts", "dropped", "outage", "too many"],
)
async def test_tg07_polling_goes_on_by_itself(telegram, faults):
    telegram.server.script("getUpdates", *faults)
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        await telegram.says("still there?")
        await inbox.has(1)
    assert inbox.texts == ["still there?"]


async def test_tg07_a_poll_that_hangs_is_given_up(telegram):
    telegram.server.script("getUpdates", SILENCE)
    medium = telegram.medium(
        Pace(poll_seconds=1, call_seconds=0.1, first_pause_seconds=0.01, longest_pause_seconds=0.05)
    )
    inbox = Inbox()
    async with receiving(medium, inbox):
        await telegram.says("are you deaf?")
        await inbox.has(1)
        await eventually(lambda: medium.health().well)


async def test_tg07_a_lasting_conflict_says_who_and_goes_on_slowly(telegram, caplog):
    telegram.server.script("getUpdates", *[CONFLICT] * 200)
    medium = telegram.medium()
    async with receiving(medium, Inbox()):
        await telegram.server.until(lambda: len(telegram.server.called("getUpdates")) >= 8)
        assert not medium.health().well
        assert medium.health().text == (
            "another program receives this bot's messages (409): stop it, or use another bot"
        )
    at = [call.at for call in telegram.server.called("getUpdates")]
    assert at[-1] - at[-2] >= QUICK.longest_pause_seconds * 0.9
    assert caplog.text.count("another program") == 1


async def test_tg07_against_a_rival_an_answer_at_once_proves_nothing(telegram, caplog):
    medium = telegram.medium()
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        caplog.set_level(logging.INFO)
        telegram.server.rival = True
        await telegram.says("to wake the poll")
        await telegram.server.until(lambda: len(telegram.server.called("getUpdates")) >= 8)
        assert "another program" in medium.health().text
        assert "receiving" not in caplog.text.replace("another program receives", "")
        telegram.server.rival = False
        await telegram.says("the rival is gone")
        await eventually(lambda: medium.health().well)


async def test_tg07_a_pool_that_lost_its_connection_is_replaced(telegram):
    """The connection is taken and never given back, as by a request that was cancelled at a bad moment."""
    from mediums.telegram.client import Client

    client = Client(telegram.server.token, telegram.server.base_url, call_seconds=0.5)
    telegram.server.script("getMe", SILENCE)
    address = f"{telegram.server.base_url}/bot{telegram.server.token}/getMe"
    taken = asyncio.create_task(client._polling.http.result(address, {}))
    await telegram.server.until(lambda: telegram.server.called("getMe"))
    with pytest.raises(CallFailed, match="no answer within"):
        await client.updates(None, 0)
    assert await client.updates(None, 0) == []
    await client.close()
    await asyncio.wait([taken])
    assert taken.exception() is not None


async def test_tg07_a_second_poller_is_told_to_go_and_the_first_recovers(telegram):
    first, second = telegram.medium(), telegram.medium()
    inbox = Inbox()
    async with receiving(first, inbox):
        await eventually(lambda: first.health().well)
        async with receiving(second, Inbox()):
            await eventually(lambda: "another program" in first.health().text)
        await telegram.says("just us again")
        await eventually(lambda: first.health().well)
        await inbox.has(1)


async def test_tg07_a_start_without_network_keeps_trying(telegram):
    await telegram.goes_down()
    medium, inbox = telegram.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: "cannot be reached" in medium.health().text)
        await telegram.comes_back()
        await telegram.says("hello")
        await inbox.has(1)


async def test_a_refused_token_names_the_setting(telegram):
    medium, inbox = telegram.medium(), Inbox()
    telegram.server.revoke()
    async with receiving(medium, inbox):
        await eventually(lambda: "refused the token" in medium.health().text)
        assert medium.health().text == "Telegram refused the token (401): set mediums.telegram.token"


async def test_an_update_that_cannot_be_read_is_passed_over(telegram, caplog):
    telegram.server.update(message={"message_id": 1, "text": "no chat"})
    telegram.server.update(poll={"id": "5"})
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        await telegram.says("but this can")
        await inbox.has(1)
        await telegram.settled()
    assert inbox.texts == ["but this can"]
    assert "cannot be read" in caplog.text


async def test_nothing_is_confirmed_before_all_of_it_is_durable(telegram):
    durable, inbox = asyncio.Event(), Inbox()

    async def slow(fact):
        await inbox(fact)
        await durable.wait()

    for text in ("one", "two"):
        await telegram.says(text)
    async with receiving(telegram.medium(), slow):
        await inbox.has(1)
        assert len(telegram.server.unconfirmed) == 2
        durable.set()
        await telegram.settled()
    assert inbox.texts == ["one", "two"]


async def test_health_says_so_when_messages_are_not_stored(telegram):
    async def hanging(_):
        await asyncio.Event().wait()

    medium = telegram.medium(Pace(publishing_seconds=0.02))
    async with receiving(medium, hanging):
        await telegram.says("hello?")
        await eventually(lambda: "to be stored" in medium.health().text)


async def test_tg05_an_edit_that_changes_nothing_is_heard_once(telegram):
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        said = telegram.ana.says("delete branch dev")
        telegram.ana.edits(said, "list branches", edit_date=1)
        telegram.ana.edits(said, "list branches ", edit_date=90)
        telegram.ana.edits(said, "list branches", reply_markup={}, edit_date=90)
        telegram.ana.says("end")
        await inbox.has(3)
        await telegram.settled()
    assert [text.rpartition("\n")[2] for text in inbox.texts] == ["delete branch dev", "list branches", "end"]
    assert inbox.facts[1].before == "delete branch dev"


async def test_tg03_a_mention_in_a_group(telegram):
    team, inbox = telegram.server.group("Team"), Inbox()
    async with receiving(telegram.medium(), inbox):
        mention = {"type": "mention", "offset": 5, "length": 10}
        telegram.ana.says("🎉🎉 @helperbot hi", team, entities=[mention])
        (fact,) = await inbox.has(1)
    assert (fact.text, fact.addressed, fact.private) == ("🎉🎉 hi", True, False)


async def test_what_is_heard_goes_back_by_the_account_of_the_token_whatever_number_the_bot_has(telegram):
    medium, inbox = telegram.medium(), Inbox()
    telegram.server.me["id"] = 99
    async with receiving(medium, inbox):
        telegram.ana.says("hello")
        (fact,) = await inbox.has(1)
    assert fact.route.account == medium.account
    assert fact.identity.startswith(f"{medium.account}/")


# --- sending ---------------------------------------------------------------------------------------------------------


async def test_tg01_a_long_answer_arrives_whole(telegram):
    medium = telegram.medium()
    answer = "Start\n\n" + "```python\n" + "x = '😀'\n" * 900 + "```\n\n**end** " + "&<>" * 2000
    for n, part in enumerate(medium.split(answer)):
        await medium.send(telegram.route, part, f"s/1/{n}")
    seen = "".join(telegram.seen())
    assert seen.count("x = '😀'") == 900
    assert seen.endswith("&<>")
    assert "**" not in seen


async def test_tg02_a_part_whose_formatting_is_refused_is_sent_once_as_plain_text(telegram):
    medium = telegram.medium()
    telegram.server.script("sendMessage", PARSE_ERROR)
    await medium.send(telegram.route, "**Sure!** Step 1 - done. (see a_b.c)", "s/1/0")
    await medium.send(telegram.route, "**More** of it", "s/1/1")
    assert telegram.seen() == ["Sure! Step 1 - done. (see a_b.c)", "More of it"]
    assert [shown.formatted for shown in telegram.server.shown] == [False, True]


async def test_tg02_too_many_requests_is_no_formatting_error(telegram):
    medium = telegram.medium()
    telegram.server.script("sendMessage", Refuse(429, "Too Many Requests: retry after 5", retry_after=5))
    with pytest.raises(SurelyNotSent):
        await medium.send(telegram.route, "**part 2**", "s/1/1")
    await medium.send(telegram.route, "**part 2**", "s/1/1")
    assert telegram.seen() == ["part 2"]
    assert telegram.server.shown[0].formatted


async def test_tg08_the_stated_wait_is_passed_on_and_no_sign_disturbs_it(telegram):
    medium = telegram.medium()
    telegram.server.script("sendMessage", Refuse(429, "Too Many Requests: retry after 149", retry_after=149))
    with pytest.raises(SurelyNotSent) as refused:
        await medium.send(telegram.route, "final", "s/1/0")
    assert refused.value.retry_after_seconds == 149
    await medium.show(Typing(route=telegram.route, on=True))
    other = telegram.server.person("Bo")
    await medium.show(Typing(route=group_route(telegram, other.chat), on=True))
    await telegram.server.until(lambda: len(telegram.server.called("sendChatAction")) > 2)
    assert {call.parameters["chat_id"] for call in telegram.server.called("sendChatAction")} == {str(other.id)}


async def test_tg10_blocked_is_rejected_and_other_chats_go_on(telegram):
    medium, other = telegram.medium(), telegram.server.person("Bo")
    telegram.ana.blocks()
    with pytest.raises(Rejected, match="blocked by the user"):
        await medium.send(telegram.route, "hello?", "s/1/0")
    await medium.send(group_route(telegram, other.chat), "hello Bo", "s/2/0")
    telegram.ana.unblocks()
    await medium.send(telegram.route, "welcome back", "s/3/0")
    assert telegram.seen() == ["welcome back"]
    assert telegram.server.seen_by(other) == ["hello Bo"]


async def test_tg10_a_message_follows_its_group_to_the_new_id(telegram):
    medium = telegram.medium()
    telegram.server.group("Old", -4518)
    new = telegram.server.group("New", -1002471352452)
    moved = Refuse(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1002471352452)
    telegram.server.script("sendMessage", moved)
    await medium.send(Route(medium="telegram", account=medium.account, place="-4518", reply_to="9"), "here", "s/1/0")
    assert telegram.server.seen_by(new) == ["here"]
    inbox = Inbox()
    async with receiving(medium, inbox):
        telegram.ana.says("and here?", new)
        moved, said = await inbox.holds(2)
    assert (moved.old, moved.new, said.text) == ("-4518", "-1002471352452", "and here?")


async def test_tg11_text_and_signs_go_to_the_topic(telegram):
    medium, team = telegram.medium(), telegram.server.group("Team", is_forum=True)
    route = group_route(telegram, team, thread="77")
    await medium.show(Typing(route=route, on=True))
    await telegram.server.until(lambda: telegram.server.called("sendChatAction"))
    await medium.send(route, "in A", "s/1/0")
    await medium.send(group_route(telegram, team), "in General", "s/2/0")
    assert [shown.thread for shown in telegram.server.shown] == [77, None]
    assert telegram.server.called("sendChatAction")[0].parameters["message_thread_id"] == "77"


async def test_tg11_a_deleted_topic_is_a_refusal_and_nothing_goes_to_general(telegram):
    medium, team = telegram.medium(), telegram.server.group("Team", is_forum=True)
    telegram.server.script("sendMessage", Refuse(400, "Bad Request: message thread not found"))
    with pytest.raises(Rejected, match="thread not found"):
        await medium.send(group_route(telegram, team, thread="77"), "for A only", "s/1/0")
    assert telegram.server.seen_by(team) == []


async def test_tg12_an_answer_is_sent_though_its_question_is_gone(telegram):
    medium, team = telegram.medium(), telegram.server.group("Team")
    said = telegram.ana.says("hm?", team)
    telegram.server.forget(said)
    route = group_route(telegram, team, reply_to=str(said["message_id"]))
    await medium.send(route, "this", "s/1/0")
    assert [(shown.text, shown.reply_to) for shown in telegram.server.shown] == [("this", None)]


@pytest.mark.parametrize(
    "words", ["message to be replied not found", "replied message not found", "reply message not found"]
)
async def test_tg12_in_a_topic_too_whatever_the_words_of_the_refusal(telegram, words):
    team = telegram.server.group("Team", is_forum=True)
    telegram.server.script("sendMessage", Refuse(400, f"Bad Request: {words}"))
    await telegram.medium().send(group_route(telegram, team, thread="77", reply_to="5"), "this", "s/1/0")
    assert [(shown.text, shown.thread, shown.reply_to) for shown in telegram.server.shown] == [("this", 77, None)]


async def test_telegram_fetches_no_address_that_is_sent(telegram):
    medium = telegram.medium()
    number = await medium.show_card(telegram.route, Card(text="https://x.example/?said=secret"), None)
    await medium.show_card(telegram.route, Card(text="https://x.example/?said=more"), number)
    calls = [*telegram.server.called("sendMessage"), *telegram.server.called("editMessageText")]
    assert [call.parameters["link_preview_options"] for call in calls] == ['{"is_disabled": true}'] * 2


async def test_in_a_group_the_first_part_of_an_answer_is_marked_as_a_reply(telegram):
    medium, team = telegram.medium(), telegram.server.group("Team")
    first, second = telegram.ana.says("a?", team), telegram.ana.says("b?", team)
    for n, said in enumerate((first, first, second)):
        await medium.send(group_route(telegram, team, reply_to=str(said["message_id"])), f"part {n}", f"s/1/{n}")
    marks = [shown.reply_to for shown in telegram.server.shown]
    assert marks == [first["message_id"], None, second["message_id"]]


@pytest.mark.parametrize(
    ("fault", "shown"), [(LOST_ANSWER, ["sent?"]), (DROPPED, []), (Refuse(502, "Bad Gateway"), [])]
)
async def test_when_the_answer_is_lost_nobody_knows(telegram, fault, shown):
    medium = telegram.medium()
    telegram.server.script("sendMessage", fault)
    with pytest.raises(OutcomeUnknown):
        await medium.send(telegram.route, "sent?", "s/1/0")
    assert telegram.seen() == shown


async def test_a_send_that_hangs_has_an_end(telegram):
    medium = telegram.medium(Pace(call_seconds=0.05))
    telegram.server.script("sendMessage", SILENCE)
    with pytest.raises(OutcomeUnknown, match="no answer within"):
        await medium.send(telegram.route, "sent?", "s/1/0")
    await medium.send(telegram.route, "sent", "s/1/1")
    assert telegram.seen() == ["sent"]


# --- live, secrets, cost ---------------------------------------------------------------------------------------------


def signs(telegram, person):
    calls = telegram.server.called("sendChatAction")
    return len([call for call in calls if call.parameters["chat_id"] == str(person.id)])


async def test_typing_is_repeated_while_it_is_on_and_stops(telegram):
    medium, other = telegram.medium(), telegram.server.person("Bo")
    await medium.show(Typing(route=telegram.route, on=True))
    await medium.show(Typing(route=telegram.route, on=True))
    await telegram.server.until(lambda: signs(telegram, telegram.ana) >= 3)
    await medium.show(Typing(route=telegram.route, on=False))
    shown = signs(telegram, telegram.ana)
    await medium.show(Typing(route=group_route(telegram, other.chat), on=True))
    await telegram.server.until(lambda: signs(telegram, other) >= 4)
    assert signs(telegram, telegram.ana) <= shown + 1, "one may have been on its way"


async def test_typing_can_be_turned_on_again(telegram):
    medium = telegram.medium()
    for round_ in (1, 2):
        await medium.show(Typing(route=telegram.route, on=True))
        await telegram.server.until(lambda wanted=round_: signs(telegram, telegram.ana) >= wanted)
        await medium.show(Typing(route=telegram.route, on=False))


async def test_a_sign_for_nowhere_raises_nothing(telegram):
    medium = telegram.medium()
    for place in ("C1", "999"):
        await medium.show(Typing(route=Route(medium="telegram", account=medium.account, place=place), on=True))
    await telegram.server.until(lambda: len(telegram.server.called("sendChatAction")) >= 2)


async def test_the_token_is_in_no_log_and_no_error(telegram, caplog):
    caplog.set_level(logging.INFO)
    medium, said = telegram.medium(), []
    secret = telegram.server.token.partition(":")[2]
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        for fault in (Refuse(502, "x"), DROPPED, Refuse(401, "Unauthorized"), Refuse(404, "Not Found")):
            telegram.server.script("sendMessage", fault)
            with pytest.raises((OutcomeUnknown, SurelyNotSent)) as error:
                await medium.send(telegram.route, "x", "s/1/0")
            said.append(repr(error.value))
            assert error.value.__cause__ is None
        await telegram.goes_down()
        await eventually(lambda: not medium.health().well)
        said.append(medium.health().text)
    for text in (*said, caplog.text, repr(medium)):
        assert secret not in text


def test_a_start_without_telegram_does_not_pay_for_it():
    loaded = "import sys, mediums.telegram; sys.exit('telegram' in sys.modules or 'httpx' in sys.modules)"
    root = Path(__file__).parents[2]
    assert (
        subprocess.run([sys.executable, "-c", loaded], cwd=root, check=False, timeout=PATIENCE_SECONDS).returncode == 0
    )


# --- files -----------------------------------------------------------------------------------------------------------


async def test_a_file_is_fetched_before_its_message_is_told(telegram):
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        telegram.ana.says(None, photo=telegram.server.photo(b"\x89PNG large"), caption="what is this?")
        (fact,) = await inbox.has(1)
    (file,) = fact.files
    assert (fact.text, file.name, file.kind) == ("what is this?", "photo.jpg", "image/jpeg")
    assert inbox.blobs[file.digest] == b"\x89PNG large"


async def test_a_file_that_is_too_large_is_not_fetched(telegram):
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        document = telegram.server.file(b"x", file_name="film.mov") | {"file_size": 30_000_000}
        telegram.ana.says(None, document=document)
        (fact,) = await inbox.has(1)
    assert "larger (30.0 MB)" in fact.files[0].why
    assert telegram.server.called("getFile") == []


async def test_a_download_that_fails_leaves_the_message_and_says_so_without_the_token(telegram, caplog):
    telegram.server.script("download", Refuse(500, ""))
    inbox = Inbox()
    async with receiving(telegram.medium(), inbox):
        telegram.ana.says(None, document=telegram.server.file(b"x", file_name="a.pdf"), caption="sum it")
        (fact,) = await inbox.has(1)
    assert (fact.text, fact.files[0].is_here) == ("sum it", False)
    assert "did not hand it over" in fact.files[0].why
    assert telegram.server.token.partition(":")[2] not in caplog.text


async def test_a_slow_file_holds_up_no_other_chat(telegram):
    bo = telegram.server.person("Bo")
    telegram.server.script("download", SILENCE)
    inbox = Inbox()
    telegram.ana.says(None, document=telegram.server.file(b"x"))
    bo.says("hello")
    async with receiving(telegram.medium(), inbox):
        await inbox.has(1)
        telegram.ana.says("what do you make of it?")
        bo.says("and later too")
        await inbox.has(2)
        assert inbox.texts == ["hello", "and later too"], "a chat is told in order"
        assert len(telegram.server.unconfirmed) == 4, "what came after it is confirmed with it"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("figure.png", b"\x89PNG figure", "photo"),
        ("broken.png", b"no picture", "document"),
        ("table.csv", b"a,b", "document"),
        ("Q1 Bericht – 100 %.csv", b"a,b", "document"),
    ],
)
async def test_a_file_is_sent_as_what_it_is(telegram, name, data, kind):
    carried = Carried(file=attachment(name, kind_of(name), len(data), "d" * 64), data=data)
    await telegram.medium().send_files(telegram.route, "", [carried], "k/0")
    shown = await telegram.server.sees(telegram.ana, lambda one: one.file is not None)
    assert (shown.file.kind, shown.file.name, shown.file.data) == (kind, name, data)


async def test_a_file_whose_answer_is_lost_may_have_arrived(telegram):
    telegram.server.script("sendDocument", LOST_ANSWER)
    with pytest.raises(OutcomeUnknown):
        await telegram.medium().send_files(telegram.route, "", [Carried(file=attachment("t", ""), data=b"x")], "k/0")


async def test_an_emoji_is_put_to_the_message(telegram):
    said = telegram.ana.says("done?")
    route = msgspec.structs.replace(telegram.route, reply_to=str(said["message_id"]))
    await telegram.medium().react(route, "👍", "k/0")
    assert telegram.server.reactions == {(telegram.ana.id, said["message_id"]): "👍"}


async def test_emojis_of_people_are_facts_and_the_bots_own_message_is_known(telegram):
    inbox, medium = Inbox(), telegram.medium()
    async with receiving(medium, inbox):
        said = telegram.ana.says("hello")
        await inbox.has(1)
        await medium.send(telegram.route, "hi", "k/0")
        shown = await telegram.server.sees(telegram.ana, "hi")
        telegram.ana.reacts(shown, "👍")
        telegram.ana.reacts(said, old=("👀",))
        await eventually(lambda: len(inbox.facts) == 3)
    assert [(one.emoji, one.own, one.removed) for one in inbox.facts[1:]] == [("👍", True, False), ("👀", False, True)]
    assert inbox.facts[2].message == inbox.facts[0].message
