"""The whole product, reached by mail: real servers, the real broker, and a model that follows a script."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from brain.hold import Pace
from frontdesk.app import App, Parts
from gateway.config import load
from gateway.events import SendClosed
from gateway.llm.model import Generation, ModelError, Request
from gateway.record import decode
from tests.mediums.waiting import LOOK_AGAIN_SECONDS, eventually
from tests.patience import PATIENCE_SECONDS
from tests.servers.mail import Mail
from tests.servers.mail_processes import PASSWORD

CONFIG = """\
[model]
name = "openai/scripted"

[store]
path = "frontdesk.db"

[mediums.email]
address = "{address}"
imap_host = "127.0.0.1"
imap_port = {imap}
imap_security = "none"
smtp_host = "127.0.0.1"
smtp_port = {smtp}
smtp_security = "none"
password = "env:PASSWORD"
authserv_id = "mx.bots.example"

[[contacts]]
name = "Ana"
role = "owner"
addresses = ["email:Ana@Example.org"]

[[contacts]]
name = "Bo"
addresses = ["email:bo@example.org"]

[[contacts]]
name = "Gil"
addresses = ["email:gone@example.org"]
"""


class Scripted:
    """Answers by a rule; keeps what it was asked."""

    name = "openai/scripted"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rule: Callable[[str], str] = lambda events: "Noted."

    async def generate(self, request: Request, on_spent=None) -> Generation:
        events = "\n".join(str(one["content"]) for one in request.messages if one["role"] == "user")
        self.asked.append(events)
        return Generation(text=self.rule(events), finish="stop", model=self.name)


class House:
    def __init__(self, folder, mail: Mail) -> None:
        self.mail, self.model = mail, Scripted()
        self.notices: list[str] = []
        path = folder / "config.toml"
        path.write_text(CONFIG.format(address=mail.address, imap=mail.imap.port, smtp=mail.smtp.port))
        self.settings = load(path, {"PASSWORD": PASSWORD})

    @contextlib.asynccontextmanager
    async def open(self):
        """From its start to its end, as often as wanted."""
        parts = Parts(
            brain_model=self.model, actor_model=self.model, operator=self.notices.append, pace=Pace(quiet_seconds=0.05)
        )
        app = App(self.settings, parts)
        running = asyncio.create_task(app.run())
        try:
            yield app
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def sent(self, app: App, count: int) -> None:
        """Waits until so many sends have ended well: only then a clean stop leaves nothing open."""
        account = "email-" + self.mail.address.replace("@", "-").replace(".", "-")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                ended = await app.broker.read(f"evt.out.{account}") if app.broker else []
                outcomes = [decode(one.data, SendClosed).outcome for one in ended]
                if len(outcomes) >= count:
                    assert {*outcomes} == {"sent"}
                    return
                await asyncio.sleep(LOOK_AGAIN_SECONDS)


@pytest.fixture
async def house(tmp_path):
    async with Mail() as mail:
        yield House(tmp_path, mail)


async def test_a_mail_is_answered_in_its_thread_also_after_a_restart(house):
    ana = house.mail.person("ana@example.org", "Ana")
    house.model.rule = lambda events: "On **Friday**." if "And Monday?" not in events else "Monday too."
    async with house.open() as app:
        sent = ana.sends("When is the office closed?", subject="Holidays")
        answer = await house.mail.sees("ana@example.org", "On Friday.")
        await house.sent(app, 1)
        await house.mail.taken()
    assert (answer.subject, answer["in-reply-to"], answer["auto-submitted"]) == (
        "Re: Holidays",
        sent.id,
        "auto-replied",
    )
    assert "[subject: Holidays]" in house.model.asked[-1]
    assert "When is the office closed?" in house.model.asked[-1]
    async with house.open():
        sent = ana.sends("And Monday?", thread=answer)
        again = await house.mail.sees("ana@example.org", "Monday too.")
        await house.mail.taken()
    assert again["in-reply-to"] == sent.id
    assert again.references == (*sent.references, sent.id)
    assert [seen.text for seen in house.mail.seen_by("ana@example.org")] == ["On Friday.", "Monday too."]


async def test_what_was_never_taken_is_answered_by_the_next_start_once(house):
    house.mail.person("ana@example.org").sends("while you were away")
    async with house.open() as app:
        await house.mail.sees("ana@example.org", "Noted.")
        await house.sent(app, 1)
        await house.mail.taken()
    house.mail.number_anew()
    async with house.open():
        await house.mail.taken()
        house.mail.person("bo@example.org").sends("and now")
        await house.mail.sees("bo@example.org", "Noted.")
    assert [seen.text for seen in house.mail.seen_by("ana@example.org")] == ["Noted."]


async def test_a_mail_that_no_entry_could_hold_is_cut_and_holds_nobody_up(house):
    """A digest of a list: each of its mails is quoted, and a letter of Chinese takes three bytes."""
    one = "From: list@example.cn\r\nSubject: one\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + "字" * 2500
    digest = "".join(f"--z\r\nContent-Type: message/rfc822\r\n\r\n{one}\r\n" for _ in range(60))
    head = f"From: ana@example.org\r\nTo: {house.mail.address}\r\nMessage-ID: <d1@example.org>\r\nMIME-Version: 1.0\r\n"
    ana = house.mail.person("ana@example.org", "Ana")
    house.model.rule = lambda events: "Second." if "And this?" in events else "First."
    async with house.open() as app:
        mail = f"{head}Content-Type: multipart/digest; boundary=z\r\n\r\n{digest}--z--\r\n"
        house.mail.deliver(ana.received(mail.encode()), ana.address)
        await house.mail.sees("ana@example.org", "First.")
        await house.sent(app, 1)
        ana.sends("And this?", subject="New")
        await house.mail.sees("ana@example.org", "Second.")
        await house.sent(app, 2)
    assert house.notices == []


async def test_two_threads_of_one_person_are_answered_each_in_its_own(house):
    ana = house.mail.person("ana@example.org")
    house.model.rule = lambda events: (
        "Closed on Friday." if "closed" in events.rpartition("[m")[2] else "Half is spent."
    )
    async with house.open():
        budget = ana.sends("How much is left?", subject="Budget")
        await house.mail.sees("ana@example.org", "Half is spent.")
        holidays = ana.sends("When is it closed?", subject="Holidays")
        await house.mail.sees("ana@example.org", "Closed on Friday.")
    answers = {seen.text: (seen.subject, seen["in-reply-to"]) for seen in house.mail.seen_by("ana@example.org")}
    assert answers == {
        "Half is spent.": ("Re: Budget", budget.id),
        "Closed on Friday.": ("Re: Holidays", holidays.id),
    }
    assert "How much is left?" in house.model.asked[-1], "they are one conversation"


async def test_a_forged_mail_is_nobodys(house):
    async with house.open():
        house.mail.person("ana@example.org", "Ana").sends("Pay 900 to account 1", verified=False)
        await eventually(lambda: house.notices)
        await house.mail.taken()
    assert "UNVERIFIED:ana@example.org" in house.notices[0]
    assert house.model.asked == []
    assert house.mail.seen_by("ana@example.org") == []


async def test_a_shared_thread_is_answered_to_who_asked_and_knows_nothing_private(house):
    ana, bo = house.mail.person("ana@example.org"), house.mail.person("bo@example.org")
    async with house.open():
        ana.sends("My salary is 900")
        await house.mail.sees("ana@example.org", "Noted.")
        house.model.rule = lambda events: "Hello, both."
        to = f"{house.mail.address}, ana@example.org"
        sent = bo.sends("Who are you?", subject="Us three", to=to)
        answer = await house.mail.sees("bo@example.org", "Hello, both.")
        ana.sends("Only for Bo's eyes", thread=sent, to="bo@example.org", cc=house.mail.address)
        await house.mail.taken()
    assert answer["in-reply-to"] == sent.id
    assert answer["to"] == "bo@example.org"
    assert "salary" not in house.model.asked[-1]
    assert len(house.model.asked) == 2, "who is only in Cc is not asked"
    assert [seen.text for seen in house.mail.seen_by("ana@example.org")] == ["Noted."]


async def test_em09_a_mail_that_comes_back_was_not_delivered_and_is_not_answered_for_ever(house):
    """The model is told, once, and what it then says to the same dead mailbox is the last."""
    gil = house.mail.person("gone@example.org")
    house.model.rule = lambda events: "I will try again." if "a send failed" in events else "Noted."

    async def closed(app, count):
        account = f"email-{house.mail.address.replace('@', '-').replace('.', '-')}"
        while len(ended := await app.broker.read(f"evt.out.{account}") if app.broker else []) < count:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        return [decode(one.data, SendClosed) for one in ended]

    async with house.open() as app, asyncio.timeout(PATIENCE_SECONDS):
        gil.sends("Hello")
        first, back, second, again = await closed(app, 4)
        await house.mail.taken()
        assert app.broker is not None
        told = await app.broker.read("log.lane.p-gil")
    assert [one.outcome for one in (first, back, second, again)] == ["sent", "failed", "sent", "failed"]
    assert (back.send, again.send) == (first.send, second.send)
    assert "the mail came back (to gone@example.org): " in back.why
    assert len(house.model.asked) == 2
    assert "“Noted.” on email" in house.model.asked[1]
    assert told


async def test_a_command_works_by_mail(house):
    async with house.open():
        house.mail.person("ana@example.org").sends("/status", subject="Re: Budget")
        answer = await house.mail.sees("ana@example.org", lambda seen: seen.subject == "Re: Budget")
    assert answer.text
    assert house.model.asked == []


async def test_plain_words_are_commands_also_while_the_model_is_down(house):
    ana = house.mail.person("ana@example.org")

    def down(events):
        raise ModelError("unreachable", "the model is down", retryable=True)

    house.model.rule = down
    async with house.open():
        for words, shown in (
            ("Status", "Nothing is in flight."),
            ("help", "Without the model"),
            ("/stop", "nothing to"),
        ):
            ana.sends(f"{words}\n\nOn Monday, Frontdesk wrote:\n> Stop all of it\n", subject="Re: Budget")
            await house.mail.sees("ana@example.org", lambda seen, shown=shown: shown in seen.text)
    assert house.model.asked == []
