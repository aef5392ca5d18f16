"""The email medium on real servers: what it survives, and what it says of it. Cases are named by their ids."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from gateway.addresses import Route
from gateway.files import attachment
from gateway.outbox_state import mark_of
from gateway.written import Secret
from mediums.email import EmailMedium, Server, letter, trial
from mediums.medium import Carried, OutcomeUnknown, Rejected, SurelyNotSent
from tests.mediums.stages.email import QUICK
from tests.mediums.waiting import Inbox, eventually, receiving
from tests.patience import PATIENCE_SECONDS
from tests.servers.mail import DROPPED, END, LOST_ANSWER, Refuse
from tests.servers.mail_processes import PASSWORD


def paced(**changes):
    return msgspec.structs.replace(QUICK, **changes)


def identities(inbox):
    return [fact.identity for fact in inbox.facts]


# --- EM12: a connection that has died --------------------------------------------------------------------------------


async def test_em12_a_connection_that_went_silent_is_replaced(email):
    medium, inbox = email.medium(paced(idle_seconds=0.1, call_seconds=0.3)), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        email.mail.imap.silent()
        await email.says("are you deaf?")
        await inbox.has(1)
        await eventually(lambda: medium.health().well)
    assert email.mail.imap.connections >= 2


async def test_em12_health_says_that_nothing_comes_back(email):
    medium = email.medium(paced(idle_seconds=0.1, call_seconds=0.2))
    async with receiving(medium, Inbox()):
        await eventually(lambda: medium.health().well)
        email.mail.imap.silent()
        await email.mail.imap.down()
        await eventually(lambda: not medium.health().well)
        assert "cannot be reached" in medium.health().text or "ended" in medium.health().text


async def test_em12_a_goodbye_leads_to_a_new_connection(email):
    medium, inbox = email.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        before = email.mail.imap.connections
        email.mail.imap.says(b"* BYE shutting down\r\n")
        email.mail.imap.silent()
        await email.says("and now?")
        await inbox.has(1)
    assert email.mail.imap.connections > before


async def test_em12_a_goodbye_instead_of_a_greeting_is_told(email):
    email.mail.imap.replaces(b"* OK [CAPABILITY", b"* BYE [UNAVAILABLE")
    medium = email.medium()
    async with receiving(medium, Inbox()):
        await eventually(lambda: "the server says: BYE [UNAVAILABLE" in medium.health().text)


async def test_em12_what_came_in_the_gap_is_found(email):
    medium, inbox = email.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await email.goes_down()
        await email.says("in the gap")
        await email.comes_back()
        await inbox.has(1)
    assert inbox.texts == ["in the gap"]


async def test_em12_a_mail_that_comes_during_another_command_is_not_overlooked(email):
    """Its news comes with that command's answer, and the server then thinks that we know."""
    inbox = Inbox()

    async def slow(fact):
        if fact.text == "first":
            await email.says("second")
        await inbox(fact)

    async with receiving(email.medium(paced(idle_seconds=60.0)), slow):
        await email.says("first")
        await inbox.has(2)
    assert inbox.texts == ["first", "second"]


@pytest.mark.parametrize(
    "told",
    [b"* 7 EXPUNGE\r\n", b"* OK Still here\r\n", b"* 1 FETCH (FLAGS (\\Seen $Odd))\r\n", b"* VANISHED 3:5\r\n", b"\r\n",
     b"* FLAGS (\\Seen)\r\n", b"* 1 FETCH (UID 9 BODY[] {3}\r\nabc)\r\n"],
)  # fmt: skip
async def test_em12_what_else_a_server_tells_while_it_waits_is_no_harm(email, told):
    medium, inbox = email.medium(paced(idle_seconds=60.0)), Inbox()
    async with receiving(medium, inbox):
        await email.says("first")
        await inbox.has(1)
        await email.settled()
        email.mail.imap.says(told)
        await email.says("second")
        await inbox.has(2)
    assert inbox.texts == ["first", "second"]


async def test_em12_without_idle_it_looks_again(email):
    email.mail.imap.replaces(b" IDLE", b" XDLE")
    medium, inbox = email.medium(), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: medium.health().well)
        await email.says("no push")
        await inbox.has(1)


# --- EM13: durable, then marked --------------------------------------------------------------------------------------


async def test_em13_nothing_is_marked_before_it_is_durable_and_nothing_is_read(email):
    durable, inbox = asyncio.Event(), Inbox()

    async def slow(fact):
        await inbox(fact)
        await durable.wait()

    await email.says("one")
    await email.says("two")
    async with receiving(email.medium(), slow):
        await inbox.has(1)
        assert email.mail.untaken() == 2
        durable.set()
        await email.settled()
    assert inbox.texts == ["one", "two"]
    assert not [path for path in email.mail._files(email.mail.address) if "S" in path.name.partition(":2,")[2]]


async def test_em13_a_broken_mail_holds_up_no_other_and_is_not_lost(email):
    await email.says("before")
    broken = b"From: ana@example.org\r\nContent-Type: multipart/mixed\r\n\r\n\x00\xff--"
    email.mail.deliver(email.ana.received(broken), "ana@example.org")
    email.mail.deliver(b"\x00\xff\xfe no header at all", "ana@example.org")
    await email.says("after")
    inbox = Inbox()
    async with receiving(email.medium(), inbox):
        await inbox.has(3)
        await email.settled()
    assert [inbox.texts[0], inbox.texts[2]] == ["before", "after"]


async def test_em13_a_mail_that_the_server_cannot_give_holds_up_no_other(email):
    await email.says("unreadable")
    (file,) = email.mail._files(email.mail.address)
    file.chmod(0)
    await email.says("after")
    inbox = Inbox()
    async with receiving(email.medium(paced(idle_seconds=0.1, unreadable_seconds=0.2)), inbox):
        await inbox.has(1)
        assert inbox.texts == ["after"]
        for file in email.mail._files(email.mail.address):
            file.chmod(0o600)
        await inbox.has(2)
    assert inbox.texts == ["after", "unreadable"]


@pytest.mark.parametrize("instead", [b" BODY[] NIL", b""])
async def test_em13_a_mail_that_comes_without_its_text_is_not_lost(email, instead):
    """Some servers answer so while a mail is not at hand."""
    await email.says("held back")
    (file,) = email.mail._files(email.mail.address)
    raw = file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    email.mail.imap.replaces(b" BODY[] {%d}\r\n%s" % (len(raw), raw), instead)
    medium, inbox = email.medium(paced(idle_seconds=0.1, unreadable_seconds=0.2)), Inbox()
    async with receiving(medium, inbox):
        await eventually(lambda: "without its text" in medium.health().text)
        assert email.mail.untaken() == 1
        email.mail.imap.replaces(b"", b"")
        await inbox.has(1)
    assert inbox.texts == ["held back"]


async def test_em13_a_connection_that_ends_while_a_mail_is_fetched(email):
    big = "a long line of text\r\n" * 20_000
    await email.says("small")
    await email.says(big)
    inbox = Inbox()

    async def cutting(fact):
        await inbox(fact)
        if len(inbox.facts) == 1:
            await email.mail.imap.down()

    medium = email.medium()
    async with receiving(medium, cutting):
        await inbox.has(1)
        await eventually(lambda: not medium.health().well)
        await email.mail.imap.up()
        await inbox.has(3)
    assert inbox.texts[:2] == ["small", "small"], "it was not marked, so it comes again"
    assert len({*identities(inbox)}) == 2


async def test_em13_an_outage_is_not_an_empty_mailbox(email):
    medium = email.medium()
    await email.goes_down()
    async with receiving(medium, Inbox()):
        await eventually(lambda: "cannot be reached" in medium.health().text)
        assert "mediums.email.imap_host" in medium.health().text


async def test_em13_where_no_keyword_is_kept_seen_is_the_mark(email):
    email.mail.imap.replaces(b" \\*)]", b")]")
    first, second = Inbox(), Inbox()
    async with receiving(email.medium(), first):
        await email.says("one")
        await first.has(1)
        await eventually(lambda: [path for path in email.mail._files(email.mail.address) if path.name.endswith(":2,S")])
    async with receiving(email.medium(), second):
        await email.says("two")
        await second.has(1)
    assert second.texts == ["two"]


async def test_a_mailbox_numbered_anew_brings_the_same_identities(email):
    first, second = Inbox(), Inbox()
    async with receiving(email.medium(), first):
        for text in ("one", "two"):
            await email.says(text)
        await first.has(2)
        await email.settled()
    email.mail.number_anew()
    async with receiving(email.medium(), second):
        await second.has(2)
    assert identities(first) == identities(second)


async def test_a_mailbox_that_was_never_watched_does_not_pour_out_its_years(email, caplog):
    caplog.set_level(logging.INFO)
    for text in ("years ago", "years ago too"):
        await email.says(text)
    for path in email.mail._files(email.mail.address):
        os.utime(path, (time.time() - 5 * 86400, time.time() - 5 * 86400))
    await email.says("today")
    inbox = Inbox()
    async with receiving(email.medium(paced(old_mails=1)), inbox):
        await inbox.has(1)
        await email.settled()
    assert inbox.texts == ["today"]
    assert "2 older mails are left alone" in caplog.text


async def test_health_says_so_when_mails_are_not_stored(email):
    async def hanging(_):
        await asyncio.Event().wait()

    medium = email.medium(paced(publishing_seconds=0.02))
    async with receiving(medium, hanging):
        await email.says("hello?")
        await eventually(lambda: "to be stored" in medium.health().text)


# --- EM07, EM09: too large, too many, and no person's ----------------------------------------------------------------


async def test_em07_a_mail_that_is_too_large_is_not_fetched_and_says_so(email):
    inbox = Inbox()
    async with receiving(email.medium(paced(largest_bytes=100_000)), inbox):
        email.ana.sends("x" * 150_000, subject="The film")
        await email.says("next")
        await inbox.has(2)
    assert inbox.texts[0].startswith("[subject: The film]\n[a mail of 0 MB: too large")
    assert inbox.texts[1] == "next"
    assert inbox.facts[0].author.address.user == "ana@example.org"


async def test_em09_two_robots_in_one_thread_come_to_an_end_and_nothing_is_lost(email, caplog):
    inbox = Inbox()
    async with receiving(email.medium(paced(of_a_thread=3)), inbox):
        for n in range(6):
            await email.says(f"ping {n}")
        await inbox.has(3)
        email.ana.sends("another thread", subject="Other")
        await inbox.has(4)
    assert inbox.texts[3] == "[subject: Other]\nanother thread"
    assert email.mail.untaken() == 3
    assert "as between two robots" in caplog.text


async def test_em09_a_bounce_is_told_to_the_operator_and_not_answered(email, caplog):
    medium, inbox = email.medium(), Inbox()
    route = Route(medium="email", account=medium.account, place="mailto:gone@example.org")
    async with receiving(medium, inbox):
        await medium.send(route, "are you there?", "s/1/0")
        await email.mail.sees(email.mail.address, lambda seen: "multipart/report" in seen["content-type"])
        await eventually(lambda: "was not delivered (to gone@example.org)" in caplog.text)
        await email.says("a person's")
        returned, said = await inbox.holds(2)
    assert returned.mark == mark_of(medium.account, "s/1/0")
    assert said.text == "a person's"


async def test_em09_own_mails_are_not_heard(email):
    medium, inbox = email.medium(), Inbox()
    async with receiving(medium, inbox):
        sent = letter.letter(email.mail.account(), email.route, "I said", "s/1/0", medium._now())
        email.mail.deliver(sent.data)
        await email.says("a person's")
        await inbox.has(1)
        await email.settled()
    assert inbox.texts == ["a person's"]


# --- sending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA", END])
@pytest.mark.parametrize(("code", "end"), [(451, SurelyNotSent), (550, Rejected)])
async def test_a_refusal_ends_as_its_code_says(email, verb, code, end):
    medium = email.medium()
    email.mail.smtp.script(verb, Refuse(code, "5.7.1 not from you"))
    with pytest.raises(end, match=f"answered {code} for ana@example.org: 5.7.1 not from you"):
        await medium.send(email.route, "wanted", "s/1/0")
    assert email.seen() == []
    assert "5.7.1" not in medium.health().text, "it is this mail's trouble, not the server's"


@pytest.mark.parametrize(
    ("verb", "fault", "end", "seen"),
    [
        ("EHLO", DROPPED, SurelyNotSent, []),
        ("AUTH", DROPPED, SurelyNotSent, []),
        ("RCPT", DROPPED, SurelyNotSent, []),
        (END, DROPPED, OutcomeUnknown, []),
        (END, LOST_ANSWER, OutcomeUnknown, ["sent?"]),
    ],
)
async def test_a_connection_that_ends_leaves_it_open_only_after_the_mail(email, verb, fault, end, seen):
    medium = email.medium()
    email.mail.smtp.script(verb, fault)
    with pytest.raises(end):
        await medium.send(email.route, "sent?", "s/1/0")
    assert email.seen() == seen


async def test_a_real_server_refuses_an_address(email):
    medium = email.medium()
    route = Route(medium="email", account=medium.account, place="mailto:nobody@example.org")
    with pytest.raises(Rejected, match="there is no such mailbox here"):
        await medium.send(route, "hello", "s/1/0")
    assert "no such mailbox" not in medium.health().text


async def test_an_answer_stands_in_its_thread_and_the_next_mail_too(email):
    medium, inbox = email.medium(), Inbox()
    async with receiving(medium, inbox):
        sent = email.ana.sends("When is the office closed?", subject="Holidays")
        (asked,) = await inbox.has(1)
        await medium.send(asked.route, "On **Friday**.", "s/1/0")
        answer = await email.mail.sees("ana@example.org", "On Friday.")
        assert (answer.subject, answer["in-reply-to"]) == ("Re: Holidays", sent.id)
        assert "<strong>Friday</strong>" in answer.html
        email.ana.sends("And Monday?", thread=answer)
        again = (await inbox.has(2))[1]
    assert again.route.place == asked.route.place
    assert again.text == "[subject: Re: Holidays]\nAnd Monday?"


# --- encryption, logins, secrets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_with_tls_both_ways_work(email, security):
    servers = email.mail.processes
    imap, smtp = (servers.imaps, servers.smtps) if security == "tls" else (servers.imap, servers.smtp)
    medium, inbox = (
        email.medium(
            imap=Server(host="localhost", port=imap, security=security),
            smtp=Server(host="localhost", port=smtp, security=security),
            ca_file=servers.ca_file,
        ),
        Inbox(),
    )
    async with receiving(medium, inbox):
        await email.says("in secret")
        (fact,) = await inbox.has(1)
        await medium.send(fact.route, "also in secret", "s/1/0")
        await email.sees("also in secret")


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_that_is_not_trusted_names_the_setting(email, security):
    servers = email.mail.processes
    imap, smtp = (servers.imaps, servers.smtps) if security == "tls" else (servers.imap, servers.smtp)
    medium = email.medium(
        imap=Server(host="localhost", port=imap, security=security),
        smtp=Server(host="localhost", port=smtp, security=security),
    )
    async with receiving(medium, Inbox()):
        await eventually(lambda: "mediums.email.ca_file" in medium.health().text)
    with pytest.raises(SurelyNotSent, match=r"mediums\.email\.ca_file"):
        await medium.send(email.route, "hello", "s/1/0")


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_the_other_kind_of_port_names_the_setting(email, security):
    servers = email.mail.processes
    one, other = (servers.imap, servers.smtp) if security == "tls" else (servers.imaps, servers.smtps)
    account = email.mail.account(
        imap=Server(host="localhost", port=one, security=security),
        smtp=Server(host="localhost", port=other, security=security),
        ca_file=servers.ca_file,
    )
    imap, smtp = await asyncio.gather(trial.try_imap(account, 0.5), trial.try_smtp(account, 0.5))
    assert "imap_port and imap_security" in imap.text
    assert "smtp_port and smtp_security" in smtp.text


async def test_a_refused_login_names_the_settings_and_no_password_is_told(email, caplog):
    caplog.set_level(logging.DEBUG)
    wrong = 'a"wrong\\password'
    medium = email.medium(password=Secret(wrong))
    async with receiving(medium, Inbox()):
        await eventually(lambda: "refused the login" in medium.health().text)
        assert "set mediums.email.username and mediums.email.password" in medium.health().text
    with pytest.raises(SurelyNotSent, match=r"mediums\.email\.password") as refused:
        await medium.send(email.route, "hello", "s/1/0")
    assert refused.value.retry_after_seconds == 30
    told = [caplog.text, repr(medium), medium.health().text, repr(refused.value), repr(email.mail.account())]
    for text in told:
        assert wrong not in text
        assert PASSWORD not in text


async def test_the_trial_says_what_is_well_and_what_is_not(email):
    account = email.mail.account()
    assert "is empty" in (await trial.try_imap(account, 3.0)).text
    email.ana.sends("hello", verified=False)
    imap = await trial.try_imap(account, 3.0)
    assert not imap.well
    assert "set mediums.email.authserv_id (names found there: none at all)" in imap.text
    email.ana.sends("hello")
    other = await trial.try_imap(email.mail.account(authserv_id="mx.other.example"), 3.0)
    assert "names found there: mx.bots.example" in other.text
    assert (await trial.try_imap(account, 3.0)).well
    assert (await trial.try_smtp(account, 3.0)).well
    assert "refused the login" in (await trial.try_smtp(email.mail.account(password=Secret("no")), 3.0)).text
    assert email.mail.untaken() == 2
    assert "ID sent: name=Frontdesk" in email.mail.processes.folder.joinpath("dovecot.log").read_text()


def test_a_start_without_mail_does_not_pay_for_it():
    loaded = (
        "import sys, mediums.email; "
        "sys.exit(bool({'aioimaplib', 'aiosmtplib', 'inscriptis', 'lxml'} & sys.modules.keys()))"
    )
    root = Path(__file__).parents[2]
    assert (
        subprocess.run([sys.executable, "-c", loaded], cwd=root, check=False, timeout=PATIENCE_SECONDS).returncode == 0
    )


def test_the_account_is_known_before_any_connection(email):
    account = email.mail.account(address="Desk+Help@bots.example")
    assert EmailMedium(account).account == "email-desk-help-bots-example"


async def test_files_come_with_a_mail_and_go_with_the_answer(email):
    inbox, medium = Inbox(), email.medium()
    async with receiving(medium, inbox):
        email.ana.sends("Please sum it", subject="Figures", files=[("zahlung für März.csv", "text/csv", b"1,2")])
        (fact,) = await inbox.has(1)
        (file,) = fact.files
        assert (file.name, file.kind, inbox.blobs[file.digest]) == ("zahlung für März.csv", "text/csv", b"1,2")
        assert "Please sum it" in fact.text
        assert file.name not in fact.text
        picture = Carried(file=attachment("größe.png", "image/png", 6, "d" * 64), data=b"\x89PNG\r\n")
        await medium.send_files(fact.route, "Here it is", [picture], "p-ana/1/0/0")
        seen = await email.mail.sees(email.ana.address, "Here it is")
    (sent,) = seen.message.iter_attachments()
    assert (sent.get_filename(), sent.get_content_type()) == ("größe.png", "image/png")
    assert sent.get_content() == b"\x89PNG\r\n"
    assert seen["in-reply-to"]
