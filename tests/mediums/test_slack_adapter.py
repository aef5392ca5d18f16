"""The Slack medium against Slack's server on sockets: what it survives, and what it says of it."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gateway.addresses import Route
from gateway.broker.sqlite import SqliteBroker
from gateway.events import MessageDeleted, MessageReceived, Ref, Send, SendClosed
from gateway.files import attachment
from gateway.holding import Guard
from gateway.journal import publish
from gateway.outbox import Outbox
from gateway.record import decode
from mediums.medium import Carried, OutcomeUnknown, Rejected, SurelyNotSent
from mediums.slack import SlackMedium, introduced
from mediums.slack.adapter import _both
from mediums.slack.failures import Disconnected, Refusal
from mediums.slack.pace import Pace
from tests.mediums.stages.slack import QUICK
from tests.mediums.waiting import Inbox, eventually, receiving
from tests.patience import PATIENCE_SECONDS
from tests.servers.slack import DROPPED, LOST_ANSWER, NONE, SILENCE, Refuse, SlackServer


def channel_route(slack, channel, **fields):
    return Route(medium="slack", account=slack.route.account, place=channel.id, **fields)


def pace(**changes):
    return msgspec.structs.replace(QUICK, **changes)


# --- receiving -------------------------------------------------------------------------------------------------------


async def test_a_mention_is_heard_once_though_it_comes_as_two_events(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    async with receiving(slack.medium(), inbox):
        message = slack.ana.says(f"{slack.server.mention} hi & hello", general)
        (fact,) = await inbox.has(1)
        await slack.settled()
    assert len(slack.server.handed) == 2
    assert len(inbox.facts) == 1
    assert fact.text == "hi & hello"
    assert fact.route == channel_route(slack, general, thread=message["ts"], reply_to=message["ts"])
    assert (fact.author.name, str(fact.author.address)) == ("Ana", "slack:T1/UANA")


async def test_a_thread_that_it_was_called_into_goes_on_without_a_mention(slack):
    general, bo, inbox = slack.server.channel("general"), slack.server.person("Bo"), Inbox()
    async with receiving(slack.medium(), inbox):
        before = bo.says("something else", general)
        root = slack.ana.says(f"{slack.server.mention} which date?", general)
        bo.says("the 5th", general, thread=root)
        bo.says("not for you", general, thread=before)
        bo.says("nor this", general)
        facts = await inbox.has(5)
    assert [fact.addressed for fact in facts] == [False, True, True, False, False]
    assert [fact.route.thread for fact in facts] == [None, root["ts"], root["ts"], before["ts"], None]


async def test_a_thread_that_it_has_written_in_is_one_it_takes_part_in(slack):
    general, medium, inbox = slack.server.channel("general"), slack.medium(), Inbox()
    async with receiving(medium, inbox):
        await medium.send(channel_route(slack, general, thread="1.000100"), "in a thread", "s/1/0")
        await medium.send(channel_route(slack, general), "a first message", "s/2/0")
        slack.ana.says("and?", general, thread="1.000100")
        slack.ana.says("and here?", general, thread=slack.server.shown[1].ts)
        facts = await inbox.has(2)
    assert [fact.addressed for fact in facts] == [True, True]


async def test_sl04_own_messages_and_robots_are_acknowledged_and_not_heard(slack):
    general, medium, inbox = slack.server.channel("general"), slack.medium(), Inbox()
    slack.server.person("Robo", is_bot=True)
    async with receiving(medium, inbox):
        root = slack.ana.says(f"{slack.server.mention} hi", general)
        await inbox.has(1)
        await medium.send(channel_route(slack, general, thread=root["ts"]), "done", "s/1/0")
        for text in ("Standing by", f"Thanks {slack.server.mention}"):
            slack.server.people["UROBO"].says(text, general, thread=root)
        slack.server.event(
            type="message",
            subtype="bot_message",
            channel=general.id,
            bot_id="BX",
            username="Helper",
            text="hi",
            ts="1.1",
        )
        slack.ana.says("end")
        await inbox.has(2)
        await slack.settled()
    assert inbox.texts == ["hi", "end"]


async def test_sl04_a_robots_mention_opens_no_thread(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    robo = slack.server.person("Robo", is_bot=True)
    async with receiving(slack.medium(), inbox):
        root = robo.says(f"{slack.server.mention} hi", general)
        slack.ana.says("what is this?", general, thread=root)
        (fact,) = await inbox.has(1)
    assert not fact.addressed


async def test_who_is_called_into_a_thread_is_told_what_it_is_about(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    robo = slack.server.person("Robo", is_bot=True)
    general.joined = False
    picture = slack.server.file(b"a graph", "graph.png", "image/png")
    root = robo.says("", general, attachments=[{"fallback": "disk &lt; 5 %"}], files=[picture])
    slack.ana.says("anyone?", general, thread=root)
    general.joined = True
    async with receiving(slack.medium(), inbox):
        slack.ana.says("mine is full too", general, thread=root)
        slack.ana.says(f"{slack.server.mention} status", general, thread=root)
        look = slack.ana.says(f"{slack.server.mention} have a look", general, thread=root)
        slack.ana.edits(look, f"{slack.server.mention} have a good look")
        slack.ana.says(f"{slack.server.mention} now", general, thread=root)
        heard, command, called, edited, again = await inbox.has(5)
    assert (heard.text, command.text, again.text) == ("mine is full too", "status", "now")
    assert edited.text == called.text.replace("have a look", "have a good look")
    assert called.text == "[Robo began this thread:]\n> disk < 5 %\n\n[Ana wrote in it:]\n> anyone?\n\nhave a look"
    assert [file.name for file in called.files] == ["graph.png"]
    assert len(slack.server.called("conversations.replies")) == 2


async def test_where_a_thread_is_not_told_the_words_come_alone(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    slack.server.script("conversations.replies", Refuse("missing_scope"))
    async with receiving(slack.medium(), inbox):
        root = slack.ana.says("the disk is full", general)
        slack.ana.says(f"{slack.server.mention} have a look", general, thread=root)
        _, called = await inbox.has(2)
    assert called.text == "have a look"


async def test_sl03_previews_and_deletions_are_no_turn_and_a_real_edit_is(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    async with receiving(slack.medium(), inbox):
        message = slack.ana.says(f"{slack.server.mention} see https://x.example", general)
        slack.server.unfurls(message)
        edited = slack.ana.edits(message, f"{slack.server.mention} see https://y.example")
        slack.ana.deletes(edited)
        slack.ana.says("end")
        await eventually(lambda: len(inbox.facts) == 4)
        await slack.settled()
    said = [fact for fact in inbox.facts if isinstance(fact, MessageReceived)]
    there = [fact for fact in said if not fact.private]
    assert [fact.text for fact in there] == ["see https://x.example", "see https://y.example"]
    assert there[1].before == "see https://x.example"
    (deleted,) = [fact for fact in inbox.facts if isinstance(fact, MessageDeleted)]
    assert deleted.message == there[0].message
    assert deleted.route.thread == message["ts"]


async def test_sl03_a_mention_that_an_edit_adds_is_one_message(slack):
    general, inbox = slack.server.channel("general"), Inbox()
    async with receiving(slack.medium(), inbox):
        message = slack.ana.says("deploy to test", general)
        slack.ana.edits(message, f"{slack.server.mention} deploy to test now")
        slack.ana.says("end", general)
        facts = await inbox.has(3)
        await slack.settled()
    assert [fact.addressed for fact in facts] == [False, True, False]
    assert facts[1].route.thread == message["ts"]


async def test_sl09_a_file_with_words_is_one_message(slack):
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        slack.ana.says("what do you make of this?", files=[slack.server.file(b"%PDF-1.7 figures")])
        (fact,) = await inbox.has(1)
    (file,) = fact.files
    assert fact.text == "what do you make of this?"
    assert (file.name, file.kind, file.size) == ("q.pdf", "application/pdf", 16)
    assert inbox.blobs[file.digest] == b"%PDF-1.7 figures"


async def test_sl09_a_file_of_which_slack_tells_no_more_is_asked_for(slack):
    inbox = Inbox()
    whole = slack.server.file(b"figures")
    async with receiving(slack.medium(), inbox):
        slack.ana.says("", files=[{"id": whole["id"], "file_access": "check_file_info"}])
        (fact,) = await inbox.has(1)
    (file,) = fact.files
    assert (file.name, file.kind) == ("q.pdf", "application/pdf")
    assert inbox.blobs[file.digest] == b"figures"


async def test_sl09_a_file_of_which_slack_tells_nothing_is_named_with_the_reason(slack):
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        slack.ana.says("", files=[{"id": "F404", "file_access": "check_file_info"}])
        (fact,) = await inbox.has(1)
    assert "did not hand it over" in fact.files[0].why


async def test_sl09_the_page_to_sign_in_is_no_file_and_the_log_names_the_scope(slack, caplog):
    slack.server.scopes = slack.server.scopes.replace(",files:read", "")
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        slack.ana.says("look", files=[slack.server.file(b"%PDF")])
        (fact,) = await inbox.has(1)
    assert not fact.files[0].is_here
    assert "I may not read files here yet" in fact.files[0].why
    assert not inbox.blobs
    assert "files:read" in caplog.text


async def test_sl09_a_page_that_a_person_sends_is_a_file(slack):
    inbox, page = Inbox(), b"<!DOCTYPE html><title>report</title>"
    async with receiving(slack.medium(), inbox):
        slack.ana.says("look", files=[slack.server.file(page, "report.html", "text/html")])
        await inbox.has(1)
    assert list(inbox.blobs.values()) == [page]


async def test_slack_fetches_no_address_that_is_sent(slack):
    await slack.medium().send(slack.route, "https://x.example/?said=secret", "k/0")
    (call,) = slack.server.called("chat.postMessage")
    assert [call.parameters[name] for name in ("unfurl_links", "unfurl_media")] == [False, False]


async def test_sl09_a_file_that_is_too_large_is_not_even_asked_for(slack):
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        slack.ana.says("look", files=[slack.server.file(b"x", size=30_000_000)])
        (fact,) = await inbox.has(1)
    assert "larger (30.0 MB)" in fact.files[0].why
    assert slack.server.tokens_shown == []


async def test_sl09_the_token_is_shown_to_slack_alone(slack):
    elsewhere = SlackServer()
    async with elsewhere:
        address = elsewhere.file(b"figures")["url_private_download"].replace("127.0.0.1", "localhost")
        slack.server.elsewhere = address
        inbox = Inbox()
        async with receiving(slack.medium(), inbox):
            slack.ana.says("look", files=[slack.server.file(b"%PDF")])
            await inbox.has(1)
    assert slack.server.tokens_shown == [slack.server.bot_token]
    assert elsewhere.tokens_shown == [""]


async def test_a_file_is_sent_into_the_thread(slack):
    general = slack.server.channel("general")
    route = channel_route(slack, general, thread="1.1")
    file = attachment("table.csv", "text/csv", 4, "d" * 64)
    await slack.medium().send_files(route, "", [Carried(file=file, data=b"a,b\n")], "k/0")
    shown = await slack.server.sees(general, lambda one: one.file is not None)
    assert (shown.file.name, shown.file.data, shown.thread) == ("table.csv", b"a,b\n", "1.1")


async def test_a_file_that_was_stored_and_not_shared_was_surely_not_sent(slack):
    slack.server.script("files.getUploadURLExternal", LOST_ANSWER)
    with pytest.raises(SurelyNotSent):
        await slack.medium().send_files(slack.route, "", [Carried(file=attachment("t", ""), data=b"x")], "k/0")
    slack.server.script("files.completeUploadExternal", LOST_ANSWER)
    with pytest.raises(OutcomeUnknown):
        await slack.medium().send_files(slack.route, "", [Carried(file=attachment("t", ""), data=b"x")], "k/0")


async def test_an_emoji_is_put_once(slack):
    message = slack.ana.says("done?")
    route = channel_route(slack, slack.ana.chat, reply_to=message["ts"])
    medium = slack.medium()
    await medium.react(route, "👍", "k/0")
    await medium.react(route, "👍", "k/0")
    assert slack.server.reactions == [(slack.ana.chat.id, message["ts"], "+1")]


async def test_sl11_people_of_another_company_have_their_own_addresses(slack):
    shared = slack.server.channel("shared", external=True)
    eve, inbox = slack.server.person("Eve", id="UANA9", team="T9"), Inbox()
    async with receiving(slack.medium(), inbox):
        for person in (eve, slack.ana):
            person.says(f"{slack.server.mention} list customers", shared, user_team=person.team)
        facts = await inbox.has(2)
    assert [(str(one.author.address), one.outsider) for one in facts] == [
        ("slack:T9/UANA9", True),
        ("slack:T1/UANA", False),
    ]


@pytest.mark.parametrize("sign", ["is_restricted", "is_ultra_restricted", "is_stranger", "deleted", ""])
async def test_sl11_guests_of_the_workspace_are_told_from_its_members(slack, sign):
    gus, inbox = slack.server.person("Gus", **({sign: True} if sign else {})), Inbox()
    async with receiving(slack.medium(), inbox):
        gus.says("list customers")
        (fact,) = await inbox.has(1)
    assert fact.outsider is bool(sign)


async def test_sl11_without_a_word_on_their_workspace_a_failed_look_up_refuses(slack):
    shared, inbox = slack.server.channel("shared", external=True), Inbox()
    slack.server.script("users.info", *[Refuse("internal_error")] * 4)  # whichever message asks first
    async with receiving(slack.medium(), inbox):
        slack.ana.says(f"{slack.server.mention} list customers", shared, team=None)
        slack.ana.says("in private")
        await inbox.has(1)
        await slack.settled()
    assert inbox.texts == ["in private"]


async def test_a_token_that_may_not_ask_for_names_is_told_once_with_the_scope(slack, caplog):
    slack.server.scopes = slack.server.scopes.replace("users:read,", "")
    other, inbox = slack.server.person("Bo"), Inbox()
    async with receiving(slack.medium(), inbox):
        slack.ana.says("hello")
        other.says("hello")
        facts = await inbox.has(2)
    assert all(fact.outsider for fact in facts)
    (told,) = [one for one in caplog.messages if "only contacts are answered" in one]
    assert "lacks the scope users:read" in told


async def test_names_are_asked_for_once_and_a_message_does_not_wait_for_one(slack):
    slack.server.script("users.info", SILENCE)
    medium, inbox = slack.medium(pace(lookup_seconds=0.3, call_seconds=60.0)), Inbox()
    async with receiving(medium, inbox):
        for text in ("hello", "again"):
            await slack.says(text)
        facts = await inbox.has(2)
    assert [fact.author.name for fact in facts] == ["UANA", "UANA"]
    assert len(slack.server.called("users.info")) == 1


async def test_who_is_named_has_a_name(slack):
    slack.server.person("Bo")
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        for text in ("ask <@UBO>", "and <@UBO> or <@UNOBODY>"):
            await slack.says(text)
        await inbox.has(2)
    assert inbox.texts == ["ask @Bo (UBO)", "and @Bo (UBO) or @UNOBODY"]
    asked = [call.parameters["user"] for call in slack.server.called("users.info")]
    assert sorted(asked) == ["UANA", "UBO", "UNOBODY"]


async def test_what_cannot_be_read_and_what_is_no_event_is_passed_over(slack, caplog):
    slack.server.event(type="message", user="UANA", channel="D1", text="no ts")
    slack.server.push({"type": "block_actions"}, kind="interactive")
    inbox = Inbox()
    async with receiving(slack.medium(), inbox):
        await slack.says("but this can")
        await inbox.has(1)
        await slack.settled()
    assert inbox.texts == ["but this can"]
    assert "cannot be read" in caplog.text


# --- durable, then acknowledged --------------------------------------------------------------------------------------


async def test_nothing_is_acknowledged_before_it_is_durable(slack):
    durable, inbox = asyncio.Event(), Inbox()

    async def slow(fact):
        await inbox(fact)
        await durable.wait()

    async with receiving(slack.medium(), slow):
        for text in ("one", "two"):
            await slack.says(text)
        await inbox.has(1)
        assert len(slack.server.unconfirmed) == 2
        assert not slack.server.acknowledged
        durable.set()
        await slack.settled()
    assert inbox.texts == ["one", "two"]


async def test_what_is_sent_again_because_storing_took_long_is_known(slack):
    durable, inbox = asyncio.Event(), Inbox()
    slack.server.ack_seconds = 0.05

    async def slow(fact):
        await inbox(fact)
        await durable.wait()

    async with receiving(slack.medium(), slow):
        await slack.says("once")
        await slack.server.until(lambda: slack.server.handed and slack.server.handed[-1]["retry_attempt"] == 1)
        durable.set()
        await slack.settled()
    assert slack.server.handed[-1]["retry_reason"] == "timeout"
    assert inbox.texts == ["once"]


async def test_after_one_that_could_not_be_stored_nothing_of_its_channel_is(slack):
    told: list[str] = []

    async def publish(fact):
        if fact.text == "one":
            raise ConnectionError("the broker is away")
        told.append(fact.text)

    slack.ana.says("one")
    slack.ana.says("two")
    with pytest.raises(ConnectionError):
        await slack.medium().receive(publish, Inbox().keep)
    assert told == []


async def test_health_says_so_when_messages_are_not_stored(slack):
    async def hanging(_):
        await asyncio.Event().wait()

    medium = slack.medium(pace(publishing_seconds=0.02))
    async with receiving(medium, hanging):
        await slack.says("hello?")
        await eventually(lambda: "to be stored" in medium.health().text)


# --- SL08: the connection --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_sl08_an_announced_end_opens_another_before_the_old_one_closes(slack, reason):
    medium, inbox = slack.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        slack.server.most_connected = 0
        await slack.server.disconnect(reason)
        await slack.says("in between")
        await slack.server.until(lambda: len(slack.server.called("apps.connections.open")) == 2)
        await slack.server.until(lambda: slack.server.most_connected == 2 and slack.server.connected == 1)
        assert medium.health().well
        await slack.says("after it")
        await inbox.has(2)
        await slack.settled()
    assert inbox.texts == ["in between", "after it"]
    assert slack.server.connected == 0


async def test_sl08_a_silent_connection_is_given_up_and_says_so(slack):
    medium, inbox = slack.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        slack.server.mute()
        slack.server.script("apps.connections.open", *[Refuse("internal_error")] * 3)
        await slack.says("anybody there?")
        await eventually(lambda: not medium.health().well)
        await inbox.has(1)
        await eventually(lambda: medium.health().well)
    assert slack.server.most_connected <= 2


async def test_sl08_a_silence_has_its_own_words(slack, caplog):
    medium = slack.medium()
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        slack.server.mute()
        await slack.server.until(lambda: len(slack.server.called("apps.connections.open")) == 2)
        await eventually(lambda: medium.health().well)
    assert "Slack gave no sign on the open connection" in caplog.text


async def test_sl08_a_close_that_is_never_answered_has_an_end_and_holds_nothing_up(slack):
    medium, inbox = slack.medium(pace(ping_seconds=30.0)), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await slack.server.disconnect("refresh_requested")
        slack.server.mute()
        await slack.says("on the next one")
        await inbox.has(1)
        await slack.server.until(lambda: slack.server.connected == 1)
        assert medium.health().well


async def test_sl08_a_cut_connection_is_opened_again(slack):
    medium, inbox = slack.medium(), Inbox()
    async with receiving(medium, inbox):
        for n in range(3):
            await eventually(lambda: medium.health().well)
            await slack.server.cut()
            await slack.says(f"message {n}")
            await inbox.has(n + 1)
        await slack.settled()
    assert inbox.texts == ["message 0", "message 1", "message 2"]
    assert slack.server.most_connected == 1
    assert slack.server.connected == 0


async def test_sl08_too_many_connections_leave_none_of_ours_open_and_say_so(slack):
    medium, inbox = slack.medium(pace(longest_pause_seconds=0.2)), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await slack.server.disconnect("too_many_websockets")
        await eventually(lambda: "too many connections" in medium.health().text)
        await slack.server.until(lambda: slack.server.connected == 0)
        await slack.says("later")
        await inbox.has(1)
        assert medium.health().well
    assert slack.server.most_connected == 1


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (Refuse("ratelimited", 429, retry_after=0), ""),
        (Refuse("", 502), "HTTP 502"),
        (DROPPED, "cannot be reached"),
        (SILENCE, "cannot be reached"),
        (Refuse("invalid_auth"), "set mediums.slack.app_token"),
        (Refuse("missing_scope", fields={"needed": "connections:write"}), "lacks the scope connections:write"),
    ],
)
async def test_sl08_a_refused_connection_is_tried_again_and_says_why(slack, caplog, refused, said):
    slack.server.script("apps.connections.open", refused)
    inbox = Inbox()
    async with receiving(slack.medium(pace(call_seconds=0.3)), inbox):
        await slack.says("still there?")
        await inbox.has(1)
    assert said in caplog.text
    assert caplog.text.count("WARNING") <= 1


async def test_sl08_tries_grow_rarer_and_wait_as_long_as_slack_asks():
    real = Pace()
    outage = Refusal(method="x", status=502, error="HTTP 502")
    pauses = [real.pause_seconds(n, outage) for n in range(1, 12)]
    assert pauses[0] <= 0.5
    assert max(pauses) <= 30
    assert sum(pauses[:6]) > 10, "no more than a few in the first minute"
    limited = Refusal(method="x", status=429, error="ratelimited", retry_after_seconds=77)
    assert real.pause_seconds(1, limited) == 77
    none = [
        real.pause_seconds(n, Refusal(method="x", status=429, error="", retry_after_seconds=0)) for n in range(1, 12)
    ]
    assert none[:2] == [0, 0]
    assert sum(none) > 60, "who asks for no wait is not asked without end"
    assert real.pause_seconds(1, Disconnected(reason="too_many_websockets")) == 30


async def test_a_start_without_network_keeps_trying(slack):
    await slack.goes_down()
    medium, inbox = slack.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: "cannot be reached" in medium.health().text)
        await slack.comes_back()
        await slack.says("hello")
        await inbox.has(1)


async def test_a_refused_token_names_the_setting_and_recovers(slack):
    medium, inbox = slack.medium(), Inbox()
    slack.server.bot_token, good = "xoxb-another", slack.server.bot_token
    async with receiving(medium, inbox):
        await eventually(lambda: "refused the token" in medium.health().text)
        assert medium.health().text == "Slack refused the token (invalid_auth): set mediums.slack.bot_token"
        slack.server.bot_token = good
        await slack.says("hello")
        await inbox.has(1)


async def test_a_token_of_another_workspace_receives_nothing(slack):
    slack.server.team = "T2"
    server = slack.server
    medium = SlackMedium(server.bot_token, server.app_token, "T1", server.api_base, QUICK)
    async with receiving(medium, Inbox()):
        await eventually(lambda: "another workspace (T2)" in medium.health().text)
    assert slack.server.called("apps.connections.open") == []


async def test_the_account_is_the_workspace_that_slack_names(slack, caplog):
    server = slack.server
    server.script("auth.test", Refuse("ratelimited", 429, retry_after=0), Refuse("invalid_auth"), DROPPED)
    medium = await introduced(server.bot_token, server.app_token, server.api_base, QUICK)
    assert medium.account == "slack-T1"
    assert "slack: Slack refused the token (invalid_auth): set mediums.slack.bot_token" in caplog.text
    assert server.called("chat.postMessage") == server.called("apps.connections.open") == []


# --- sending ---------------------------------------------------------------------------------------------------------


async def test_sl07_a_long_answer_arrives_whole_and_in_its_thread(slack):
    medium, general = slack.medium(), slack.server.channel("general")
    answer = "Start\n\n```python\n" + "x = '<&>'\n" * 900 + "```\n\n**end** " + "&<>" * 2000
    parts = medium.split(answer)
    for n, part in enumerate(parts):
        await medium.send(channel_route(slack, general, thread="1.000100"), part, f"s/1/{n}")
    seen = "".join(slack.server.seen_by(general))
    assert len(slack.server.shown) == len(parts), "Slack itself has cut none"
    assert {shown.thread for shown in slack.server.shown} == {"1.000100"}
    assert seen.count("x = '<&>'") == 900
    assert seen.endswith("&<>")
    assert "**" not in seen


async def test_sl05_what_a_page_said_calls_nobody(slack):
    medium = slack.medium()
    await medium.send(slack.route, "The page said: <!channel> <@U0ALICE> @here & more", "s/1/0")
    (shown,) = slack.server.shown
    assert shown.notified == ()
    assert shown.text == "The page said: <!channel> <@U0ALICE> @here & more"
    (call,) = slack.server.called("chat.postMessage")
    assert (call.parameters["parse"], call.parameters["link_names"]) == ("none", False)


async def test_sl10_parts_arrive_in_order_once_each_after_the_stated_wait(slack, tmp_path):
    server, medium = slack.server, slack.medium()
    broker = SqliteBroker(tmp_path / "out.db")
    lease = await broker.lease("out", "tests", 600)
    text = "\n\n".join(f"part {n} " + "and words " * 350 for n in range(4))
    assert len(medium.split(text)) == 4
    limited = Refuse("ratelimited", 429, retry_after=0)
    server.script("chat.postMessage", NONE, limited, limited)
    route = channel_route(slack, server.channel("general"), thread="1.000100")
    await publish(
        broker, f"cmd.out.{medium.account}", Send(ref=Ref("t", 1), conversation="c", route=route, text=text), "t"
    )
    sending = asyncio.create_task(Outbox(broker, medium, Guard(lease), "tests").run())
    closed = await anext(aiter(broker.consume(f"evt.out.{medium.account}", "test")))
    assert decode(closed.stored.data, SendClosed).outcome == "sent"
    sending.cancel()
    await asyncio.wait([sending])
    await broker.close()
    assert [shown.text.partition(" and")[0] for shown in server.shown] == ["part 0", "part 1", "part 2", "part 3"]
    assert {shown.thread for shown in server.shown} == {"1.000100"}
    assert len(server.called("chat.postMessage")) == 6


@pytest.mark.parametrize(
    ("state", "said"),
    [({"archived": True}, "is_archived"), ({"joined": False}, "not_in_channel"), (None, "channel_not_found")],
)
async def test_a_place_that_does_not_take_it_says_what_mends_that(slack, state, said):
    medium = slack.medium()
    channel = slack.server.channel("general", **(state or {}))
    if state is None:
        del slack.server.channels[channel.id]
    with pytest.raises(Rejected, match=said):
        await medium.send(channel_route(slack, channel), "hello?", "s/1/0")
    await medium.send(slack.route, "others go on", "s/2/0")
    assert slack.seen() == ["others go on"]


@pytest.mark.parametrize("fault", [LOST_ANSWER, DROPPED, Refuse("", 502), Refuse("internal_error")])
async def test_when_the_answer_is_lost_nobody_knows(slack, fault):
    medium = slack.medium()
    slack.server.script("chat.postMessage", fault)
    with pytest.raises(OutcomeUnknown):
        await medium.send(slack.route, "sent?", "s/1/0")
    assert slack.seen() == (["sent?"] if fault is LOST_ANSWER else [])
    assert len(slack.server.called("chat.postMessage")) == 1, "the library does not repeat it"


async def test_a_send_that_hangs_has_an_end(slack):
    medium = slack.medium(pace(call_seconds=0.5))
    slack.server.script("chat.postMessage", SILENCE)
    with pytest.raises(OutcomeUnknown):
        await medium.send(slack.route, "sent?", "s/1/0")
    await medium.send(slack.route, "sent", "s/1/1")
    assert slack.seen() == ["sent"]


async def test_a_missing_scope_is_not_sent_and_names_it(slack):
    slack.server.scopes = "im:history"
    with pytest.raises(SurelyNotSent, match=r"mediums\.slack\.bot_token lacks the scope chat:write"):
        await slack.medium().send(slack.route, "hello", "s/1/0")


@pytest.mark.parametrize("scope", ["reactions:write", "files:write", "im:write"])
async def test_no_word_waits_for_a_scope_that_may_be_left_out(slack, scope):
    medium, message = slack.medium(), slack.ana.says("done?")
    slack.server.scopes = slack.server.scopes.replace(scope, "")
    file, first = Carried(file=attachment("t", ""), data=b"x"), channel_route(slack, slack.ana.chat)
    tried = {
        "reactions:write": lambda: medium.react(msgspec.structs.replace(first, reply_to=message["ts"]), "👍", "k/0"),
        "files:write": lambda: medium.send_files(slack.route, "", [file], "k/0"),
        "im:write": lambda: medium.send(msgspec.structs.replace(slack.route, place=slack.ana.id), "hello", "k/0"),
    }
    with pytest.raises(Rejected, match=f"lacks the scope {scope}"):
        await tried[scope]()


# --- secrets, cost ---------------------------------------------------------------------------------------------------


async def test_the_tokens_and_the_ticket_are_in_no_log_and_no_error(slack, caplog):
    caplog.set_level(logging.DEBUG)
    medium, said, server = slack.medium(), [], slack.server
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        for fault in (Refuse("", 502), DROPPED, Refuse("invalid_auth"), Refuse("ratelimited", 429)):
            server.script("chat.postMessage", fault)
            with pytest.raises((OutcomeUnknown, SurelyNotSent)) as error:
                await medium.send(slack.route, "x", "s/1/0")
            said.append(repr(error.value))
            assert error.value.__cause__ is None
            assert error.value.__suppress_context__
        server.forget_tickets = True
        await server.cut()
        await eventually(lambda: "HTTP 403" in medium.health().text)
        said.append(medium.health().text)
    for text in (*said, caplog.text, repr(medium)):
        assert server.bot_token not in text
        assert server.app_token not in text
        assert "ticket=" not in text


async def test_of_two_that_run_together_the_first_to_fail_ends_both():
    ended = asyncio.Event()

    async def for_ever():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fails():
        raise LookupError

    with pytest.raises(LookupError):
        await _both(for_ever(), fails())
    assert ended.is_set()


def test_a_start_without_slack_does_not_pay_for_it():
    loaded = "import sys, mediums.slack; sys.exit('slack_sdk' in sys.modules or 'aiohttp' in sys.modules)"
    root = Path(__file__).parents[2]
    assert (
        subprocess.run([sys.executable, "-c", loaded], cwd=root, check=False, timeout=PATIENCE_SECONDS).returncode == 0
    )
