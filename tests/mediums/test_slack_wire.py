"""What Slack's events become, and what its errors mean. Payloads as Slack sends them, with names and ids changed."""

from datetime import UTC, datetime

import pytest

from gateway.addresses import Address, Route
from gateway.outbox import OutcomeUnknown, Rejected, SurelyNotSent
from mediums.slack import failures, outgoing, wire, words
from mediums.slack.failures import Disconnected, Unreachable
from mediums.slack.words import Me, Profile

ME = Me(team="T1", user="UBOT")
ANA = Profile(name="Ana", team="T1")
TS = "1767600010.000100"


class Remembered:
    def __init__(self, threads=(), called=()):
        self._threads, self._called = threads, called

    def takes_part(self, channel, thread):
        return (channel, thread) in self._threads

    def was_called(self, channel, ts):
        return (channel, ts) in self._called

    def thread_of(self, channel, ts):
        return ts if (channel, ts) in self._called else None


def payload(event, **fields):
    return {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": "Ev1", "event": event, **fields}


def event(text="hi", channel="C1", **fields):
    kind = "im" if channel.startswith("D") else "channel"
    return {"type": "message", "user": "U7", "text": text, "ts": TS, "channel": channel, "channel_type": kind, **fields}


def heard(event, profiles=None, memory=None, **fields):
    found = wire.heard(payload(event, **fields), ME, profiles or {"U7": ANA}, memory or Remembered())
    return found and found.fact


def changed(before, after, channel="C1", **fields):
    about = {"type": "message", "user": "U7", "ts": TS}
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": channel,
        "ts": "1767600011.000200",
        "message": about | after,
        "previous_message": about | before,
        **fields,
    }


def edit(before, after, **fields):
    return changed({"text": before}, {"text": after, "edited": {"user": "U7", "ts": "1767600025.000000"}}, **fields)


# --- who, where, when ------------------------------------------------------------------------------------------------


def test_a_direct_message():
    fact = heard(event(channel="D1"))
    assert fact.identity == f"slack-T1/message/D1/{TS}/0"
    assert fact.route == Route(medium="slack", account="slack-T1", place="D1", reply_to=TS)
    assert fact.author.address == Address(medium="slack", user="T1/U7")
    assert str(fact.author.address) == "slack:T1/U7"
    assert fact.author.name == "Ana"
    assert fact.text == "hi"
    assert fact.at == datetime(2026, 1, 5, 8, 0, 10, 100, tzinfo=UTC)
    assert fact.private
    assert fact.addressed


def test_a_direct_message_in_a_thread_is_answered_there():
    assert heard(event(channel="D1", thread_ts="1.1")).route.thread == "1.1"


def test_a_mention_in_a_channel_opens_a_thread_under_it():
    fact = heard(event("<@UBOT> hi", type="app_mention"))
    assert (fact.route.thread, fact.route.reply_to) == (TS, TS)
    assert (fact.text, fact.addressed, fact.private) == ("hi", True, False)


def test_a_mention_alone_calls_too():
    fact = heard(event(" <@UBOT> ", thread_ts="1.1"))
    assert (fact.text, fact.addressed, fact.route.thread) == ("@UBOT", True, "1.1")
    assert heard(event(" ", channel="D1")) is None


def test_both_events_of_a_mention_give_one_fact():
    assert heard(event("<@UBOT> hi", type="app_mention")) == heard(event("<@UBOT> hi"))


def test_what_calls_nobody_stays_in_its_channel():
    fact = heard(event("lunch?"))
    assert (fact.route.thread, fact.addressed) == (None, False)


@pytest.mark.parametrize(
    ("fields", "memory", "addressed"),
    [
        ({}, Remembered(), False),
        ({}, Remembered(threads=[("C1", "1.1")]), True),
        ({}, Remembered(threads=[("C2", "1.1")]), False),
        ({"parent_user_id": "UBOT"}, Remembered(), True),
        ({"subtype": "thread_broadcast"}, Remembered(threads=[("C1", "1.1")]), True),
    ],
    ids=["others' thread", "it takes part", "the same ts elsewhere", "it began the thread", "sent to the channel too"],
)
def test_a_thread(fields, memory, addressed):
    fact = heard(event(thread_ts="1.1", **fields), memory=memory)
    assert (fact.addressed, fact.route.thread) == (addressed, "1.1")
    assert fact.by_name is not addressed, "nobody named the bot"


@pytest.mark.parametrize("ts", ["1767600010.000100", "1767600010.100000", "1767600010.123456789", "1.1"])
def test_a_ts_is_text_byte_for_byte(ts):
    fact = heard(event("<@UBOT> x", ts=ts, thread_ts=ts))
    assert fact.route.reply_to == fact.route.thread == ts
    assert f"/{ts}/" in fact.identity
    assert outgoing.message(fact.route, "x").thread == ts


def test_a_group_direct_message_is_a_shared_place():
    fact = heard(event(channel="G1", channel_type="mpim"))
    assert (fact.private, fact.addressed) == (False, False)


def test_without_a_profile_the_id_is_the_name():
    assert heard(event(), profiles={"U8": ANA}).author.name == "U7"


def test_the_author_and_who_is_named_are_looked_up():
    assert list(wire.people(payload(event("<@UBOT> and <@U8|bo> and <@U9>")), ME)) == ["U7", "U8", "U9"]
    assert list(wire.people(payload(event(bot_id="B")), ME)) == []


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"name": "ana", "profile": {"display_name": "", "real_name": "Ana Vidal"}}, "Ana Vidal"),
        ({"name": "ana", "profile": {"display_name": "Ana [on leave]\n"}}, "Ana (on leave)"),
        ({}, "somebody"),
    ],
)
def test_names(user, name):
    assert words.profile(user).name == name


# --- SL03: changes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        changed(
            {"text": "<@UBOT> see https://x.example"},
            {"text": "<@UBOT> see https://x.example", "attachments": [{"title": "x"}]},
        ),
        {
            "type": "message",
            "subtype": "message_changed",
            "channel": "D1",
            "ts": "1.2",
            "message": {"bot_id": "BBOT", "text": "answer https://y.example", "ts": "1767600012.000100"},
        },
        changed({}, {"text": "<@UBOT> a root that has an answer now", "reply_count": 1}, previous_message=None),
        {"type": "message", "subtype": "message_deleted", "channel": "C1", "deleted_ts": "1767600020.000100"},
        {
            "type": "message",
            "subtype": "message_deleted",
            "channel": "C1",
            "deleted_ts": TS,
            "previous_message": {"user": "USLACKBOT", "subtype": "tombstone", "ts": TS, "thread_ts": TS},
        },
        {"type": "message", "subtype": "channel_join", "channel": "C1", "user": "U8", "text": "<@U8> has joined"},
        {"type": "message", "subtype": "message_replied", "channel": "C1", "message": {"user": "U7"}},
        {"type": "reaction_added", "user": "U7", "item": {}},
    ],
    ids=["preview", "own update", "count of a thread", "deleted", "tombstone", "join", "replied", "reaction"],
)
def test_sl03_what_is_no_new_word_says_nothing(told):
    assert heard(told) is None


def test_sl03_a_mention_added_by_an_edit_is_heard_if_it_was_not_before():
    mention = event("<@UBOT> deploy to test", type="app_mention", edited={"user": "U7", "ts": "1767600025.000000"})
    fact = heard(mention)
    assert (fact.text, fact.addressed) == ("deploy to test", True)
    assert heard(mention, memory=Remembered(called=[("C1", TS)])) is None
    assert fact.identity == heard(edit("deploy", "<@UBOT> deploy to test")).identity


def test_sl03_an_edit_shows_old_and_new_and_is_a_version():
    fact = heard(edit("<@UBOT> delete branch dev", "<@UBOT> list branches"))
    assert (fact.text, fact.edited, fact.before) == ("list branches", True, "delete branch dev")
    assert fact.identity == f"slack-T1/message/C1/{TS}/1767600025.000000"
    assert fact.route.reply_to == TS
    assert fact.at == datetime(2026, 1, 5, 8, 0, 25, tzinfo=UTC)


def test_sl03_an_edit_of_white_space_or_of_the_mention_alone_says_nothing():
    assert heard(edit("<@UBOT> deploy", "<@UBOT>  deploy ")) is None


# --- SL04: robots ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        event("done", channel="D1", user="UBOT", bot_id="BBOT"),
        event("done", channel="D1", user="UBOT"),
        {
            "type": "message",
            "subtype": "bot_message",
            "channel": "C1",
            "bot_id": "BBOT",
            "username": "Helper",
            "text": "<@UBOT> hi",
        },
        event("Standing by <@UBOT>", user="UOTHERBOT", bot_id="BOTHER", thread_ts="1767600000.000100"),
        event("<@UBOT> hi", type="app_mention", user="UOTHERBOT", bot_profile={"id": "BOTHER"}),
        edit("<@UBOT> a", "<@UBOT> b") | {"message": {"user": "UBOT", "text": "b", "ts": TS}},
    ],
    ids=["own", "own without bot_id", "under another name", "another robot", "its mention", "own edit"],
)
def test_sl04_robots_are_not_heard(told):
    assert heard(told, memory=Remembered(threads=[("C1", "1767600000.000100")])) is None


def test_sl04_a_robot_that_only_its_profile_gives_away():
    assert heard(event("<@UBOT> hi"), profiles={"U7": Profile(name="Robo", bot=True)}) is None
    assert words.profile({"id": "USLACKBOT"}).bot


# --- SL06: what is read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("scale if cpu &gt; 80% &amp;&amp; ok", "scale if cpu > 80% && ok"),
        ("literally &amp;lt;b&amp;gt;", "literally &lt;b&gt;"),
        (
            "mail <mailto:a@b.example|a@b.example> or <tel:+15550001111|555-000-1111>",
            "mail a@b.example or 555-000-1111",
        ),
        (
            "see <https://x.example/?a=1&amp;b=2|the doc> and <https://y.example>",
            "see the doc (https://x.example/?a=1&b=2) and https://y.example",
        ),
        ("<http://x.example|x.example> <https://x.example/|https://x.example/>", "http://x.example https://x.example/"),
        ("<mailto:a@b.example|Ana>", "Ana (a@b.example)"),
        (
            "ask <@U0ALICE> in <#C9|ops> <!subteam^S1|@oncall> <!date^1767600000^{date}|5 Jan>",
            "ask @Alice Li (U0ALICE) in #ops (C9) @oncall (S1) 5 Jan",
        ),
        ("<@U0> <@U1|bo> <#C9> <!here> <!channel|@channel> <!subteam^S2>", "@U0 @bo (U1) #C9 @here @channel @S2"),
        ("<!here|here> <!date^1767600000^{date}^https://x.example> <#C9|>", "@here 2026-01-05 08:00 UTC #C9"),
        ("<@UBOT|helper> run `a &lt; b`", "run `a < b`"),
        ("&copy; &#123;", "&copy; &#123;"),
        ("<@UBOT>: please <@UBOT>, do", "please do"),
        ("thanks <@UBOT>", "thanks"),
        ("lone \ud83d half", "lone \ufffd half"),
    ],
)
def test_sl06_markup_is_decoded_once_and_in_order(raw, text):
    fact = heard(event(raw), profiles={"U7": ANA, "U0ALICE": Profile(name="Alice Li")})
    assert fact.text == text


# --- SL09: files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "found"),
    [
        (
            {"id": "F1", "name": "q.pdf", "mimetype": "application/pdf", "size": 120, "url_private_download": "u://1"},
            ("q.pdf", "application/pdf", "u://1", 120, ""),
        ),
        ({"id": "F2", "mode": "tombstone"}, ("file", "", "F2", 0, "it was deleted")),
        ({"id": "F3", "file_access": "check_file_info"}, ("file", "", "F3", 0, "")),
        (
            {"id": "F4", "mode": "hidden_by_limit"},
            ("file", "", "F4", 0, "Slack no longer shows it, as the workspace is over its limit"),
        ),
    ],
)
def test_sl09_files_are_named_honestly(file, found):
    for told in (
        event("", channel="D1", subtype="file_share", files=[file]),
        event("<@UBOT>", type="app_mention", files=[file]),
    ):
        (one,) = wire.heard(payload(told), ME, {"U7": ANA}, Remembered()).files
        assert (one.name, one.kind, one.fetch, one.size, one.why) == found


def test_sl03_a_deletion_is_a_fact_about_the_message():
    gone = {"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "1767600030.000000"}
    fact = heard(gone | {"deleted_ts": TS, "previous_message": {"user": "U7", "text": "never mind", "ts": TS}})
    assert fact.message == f"slack-T1/message/D1/{TS}"
    assert str(fact.author.address) == "slack:T1/U7"
    assert fact.private


def test_the_deletion_of_what_began_a_thread_is_one_too():
    stone = {
        "user": "USLACKBOT",
        "text": "This message was deleted.",
        "subtype": "tombstone",
        "ts": TS,
        "thread_ts": TS,
    }
    told = changed({"text": "<@UBOT> never mind", "thread_ts": TS}, stone)
    fact = heard(told)
    assert fact.message == f"slack-T1/message/C1/{TS}"
    assert (fact.author.name, str(fact.author.address)) == ("Ana", "slack:T1/U7")
    assert list(wire.people(payload(told), ME)) == ["U7"]


def reaction(kind="reaction_added", name="thumbsup", author="U7", **fields):
    item = {"type": "message", "channel": "C1", "ts": TS}
    told = {"type": kind, "user": "U7", "reaction": name, "item_user": author, "item": item}
    return told | {"event_ts": "1767600031.000000", **fields}


def test_an_emoji_is_a_fact_about_the_message_where_that_was_said():
    fact = heard(reaction(), memory=Remembered(called=[("C1", TS)]))
    assert (fact.emoji, fact.removed, fact.own) == ("👍", False, False)
    assert (fact.message, fact.route.thread) == (f"slack-T1/message/C1/{TS}", TS)


def test_an_emoji_on_the_bots_message_that_is_taken_back():
    fact = heard(reaction("reaction_removed", "party_parrot::skin-tone-2", author="UBOT"))
    assert (fact.emoji, fact.removed, fact.own) == (":party_parrot:", True, True)


def test_the_bots_own_emoji_says_nothing():
    assert heard(reaction(user="UBOT")) is None


def test_a_shared_message_is_somebody_elses_words():
    attachment = {"is_share": True, "author_name": "Bo]", "text": "line &amp; one\nline two"}
    fact = heard(event("look", attachments=[attachment, {"title": "a preview"}]))
    assert fact.text == "[shared, written by Bo):]\n> line & one\n> line two\n\nlook"


def test_a_message_that_is_only_passed_on_is_heard_with_its_files():
    file = {"id": "F1", "name": "q.pdf", "size": 3, "url_private": "u://1"}
    passed_on = {"is_msg_unfurl": True, "author_name": "Bo", "fallback": "[no preview available]", "files": [file]}
    inside = {
        "type": "rich_text",
        "elements": [{"type": "rich_text_quote", "elements": [{"type": "text", "text": "ok"}]}],
    }
    blocks = {"is_share": True, "message_blocks": [{"message": {"blocks": [inside]}}], "fallback": "-"}
    found = wire.heard(payload(event("", channel="D1", attachments=[passed_on, blocks])), ME, {"U7": ANA}, Remembered())
    assert found.fact.text == "[shared, from Bo]\n[shared, written by somebody:]\n> > ok"
    assert [(one.name, one.fetch) for one in found.files] == [("q.pdf", "u://1")]


CELL = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
    {"type": "user", "user_id": "U8"}, {"type": "text", "text": " at\n"},
    {"type": "link", "url": "https://x.example"}]}]}  # fmt: skip
TABLE = {
    "type": "table",
    "rows": [[{"type": "raw_text", "text": "City"}, CELL], [{"type": "raw_number", "value": 4}, {}]],
}


@pytest.mark.parametrize(
    "beside", [{"attachments": [{"blocks": [TABLE], "fallback": "[no preview available]"}]}, {"blocks": [TABLE]}]
)
def test_a_pasted_table_is_among_the_words(beside):
    assert heard(event("which?", channel="D1", **beside)).text == "which?\nCity | @U8 at https://x.example\n4 | "
    assert heard(event("", channel="D1", **beside)).text.startswith("City | ")
    assert heard(event("which?", channel="D1", attachments=[{"blocks": [TABLE], "from_url": "u://"}])).text == "which?"


def test_a_robots_report_may_have_no_text_at_all():
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Disk <full>"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "*on* &lt;db1&gt; <@U7>"}, "fields": [{"text": "5 %"}]},
        {"type": "rich_text", "elements": [{"type": "rich_text_list", "elements": [{"elements": [{"text": "one"}]}]}]},
        {"type": "divider"},
    ]
    assert words.attached({"blocks": blocks, "attachments": [{"blocks": blocks[:1]}]}, {"U7": ANA}) == (
        "Disk <full>\n*on* <db1> @Ana (U7)\n5 %\n• one\nDisk <full>"
    )


# --- SL11: other companies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "profile", "address"),
    [
        ({"user_team": "T9", "source_team": "T9", "team": "T9"}, None, "slack:T9/U7"),
        ({"user_team": "T9"}, Profile(name="Eve", team="T1"), "slack:T9/U7"),
        ({"team": "T1"}, Profile(name="Eve", team="T9"), "slack:T9/U7"),
        ({"user_team": "T1"}, None, "slack:T1/U7"),
    ],
)
def test_sl11_identity_is_workspace_and_user(fields, profile, address):
    known = {"U7": profile} if profile else {"U0": ANA}
    fact = heard(event("<@UBOT> list customers", channel="CSHARED", **fields), known, is_ext_shared_channel=True)
    assert str(fact.author.address) == address


def test_sl11_in_a_shared_channel_nobody_is_heard_whose_workspace_cannot_be_told():
    assert heard(event("<@UBOT> hi"), {"U0": ANA}, is_ext_shared_channel=True) is None
    unknown = heard(event("<@UBOT> hi"), {"U0": ANA})
    assert (str(unknown.author.address), unknown.outsider) == ("slack:T1/U7", True)


# --- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [{"ts": "x"}, {"ts": None}, {"text": 5}, {"files": 5}])
def test_what_is_not_as_documented_raises_what_the_adapter_passes_over(broken):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        heard(event(**broken))


# --- sending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "#general", "C1/2", "a b"])
def test_a_route_that_is_not_slacks_is_rejected(place):
    with pytest.raises(Rejected, match="no place on Slack"):
        outgoing.message(Route(medium="slack", account="slack-T1", place=place), "x")


def refused(error, method="chat.postMessage", status=200, retry_after=None, **fields):
    return failures.refusal(method, status, {"ok": False, "error": error, **fields}, retry_after)


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (Unreachable(why="refused", left=False), SurelyNotSent, "cannot be reached"),
        (Unreachable(why="no answer", left=True), OutcomeUnknown, r"did not say whether it arrived \(no answer\)$"),
        (refused("ratelimited", status=429, retry_after="30"), SurelyNotSent, "wait 30 s"),
        (refused("invalid_auth"), SurelyNotSent, r"\(invalid_auth\): set mediums.slack.bot_token"),
        (refused("token_revoked"), SurelyNotSent, r"\(token_revoked\): set mediums.slack.bot_token"),
        (refused("missing_scope", needed="chat:write"), SurelyNotSent, "lacks the scope chat:write"),
        (refused("missing_scope", "reactions.add", needed="reactions:write"), Rejected, "the scope reactions:write"),
        (refused("missing_scope", "conversations.open", needed="im:write"), Rejected, "the scope im:write"),
        (refused("not_allowed_token_type"), SurelyNotSent, "begins with xoxb-"),
        (refused("service_unavailable"), SurelyNotSent, "service_unavailable"),
        (refused("internal_error"), OutcomeUnknown, "internal_error"),
        (failures.refusal("chat.postMessage", 502, {}, None), OutcomeUnknown, "HTTP 502"),
        (refused("channel_not_found"), Rejected, "invite it there"),
        (refused("not_in_channel"), Rejected, "/invite"),
        (refused("is_archived"), Rejected, "unarchive it"),
        (refused("msg_too_long"), Rejected, "too long for Slack"),
        (refused("something_new"), Rejected, "answered chat.postMessage with something_new"),
    ],
)
def test_what_has_become_of_a_post(failure, kind, said):
    end = failures.end(failure)
    assert type(end) is kind
    with pytest.raises(kind, match=said):
        raise end


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("invalid_auth", "set mediums.slack.app_token, an app-level token with the scope connections:write"),
        ("missing_scope", "mediums.slack.app_token lacks the scope connections:write"),
        ("not_allowed_token_type", "begins with xapp-…"),
    ],
)
def test_a_connection_that_is_refused_names_the_other_key(error, said):
    assert said in failures.describe(refused(error, failures.CONNECTING))


@pytest.mark.parametrize(("header", "seconds"), [("30", 30), ("0", 0), (None, 30), ("soon", 30)])
def test_sl10_the_stated_wait_is_kept_and_without_one_there_is_one(header, seconds):
    end = failures.end(refused("ratelimited", status=429, retry_after=header))
    assert isinstance(end, SurelyNotSent)
    assert end.retry_after_seconds == seconds


def test_sl08_every_end_of_a_connection_says_what_mends_it():
    assert "too many connections" in failures.describe(Disconnected(reason="too_many_websockets"))
    assert "turn it on" in failures.describe(Disconnected(reason="link_disabled"))
    assert "(brand_new)" in failures.describe(Disconnected(reason="brand_new"))
