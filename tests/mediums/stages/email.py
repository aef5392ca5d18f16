"""Email: real servers, and Ana, who writes to the assistant in one thread without a subject."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from gateway.addresses import Route
from mediums.email import EmailMedium, wire
from mediums.email.adapter import Pace
from tests.mediums.stages import Stage
from tests.servers.mail import END, LOST_ANSWER, Mail, Refuse, Sent

QUICK = Pace(
    idle_seconds=10.0,
    poll_seconds=0.05,
    call_seconds=3.0,
    first_pause_seconds=0.01,
    longest_pause_seconds=0.05,
)


class EmailStage(Stage):
    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.ana = mail.person("ana@example.org")
        self.begun = Sent("<begun@example.org>", "")
        self.route = Route(
            medium="email",
            account=mail.account().key,
            place=wire.place("<begun@example.org>", ["ana@example.org"], mail.account()),
            reply_to="mailto:ana@example.org?in-reply-to=%3Cbegun%40example.org%3E",
        )

    def medium(self, pace: Pace = QUICK, **changes: Any) -> EmailMedium:
        return EmailMedium(self.mail.account(**changes), pace)

    async def says(self, text: str) -> None:
        self.ana.sends(text, thread=self.begun)

    async def sees(self, text: str) -> None:
        await self.mail.sees(self.ana.address, lambda seen: seen.text == text)

    def seen(self) -> list[str]:
        return [seen.text for seen in self.mail.seen_by(self.ana.address)]

    async def settled(self) -> None:
        await self.mail.taken()

    async def next_send_fails_surely(self) -> None:
        self.mail.smtp.script("RCPT", Refuse(451, "4.7.1 greylisted, try again later"))

    async def next_send_is_refused(self) -> None:
        self.mail.smtp.script("RCPT", Refuse(550, "5.1.1 there is no such mailbox here"))

    async def next_send_loses_its_answer(self) -> None:
        self.mail.smtp.script(END, LOST_ANSWER)

    async def goes_down(self) -> None:
        await self.mail.goes_down()

    async def comes_back(self) -> None:
        await self.mail.comes_back()


@contextlib.asynccontextmanager
async def open_stage() -> AsyncIterator[EmailStage]:
    async with Mail() as mail:
        yield EmailStage(mail)
