"""Slack and mail as places where a story plays: settings for them, and people who speak and read there."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.servers.mail import AUTHSERV_ID, Mail, Seen
from tests.servers.mail_processes import PASSWORD
from tests.servers.slack import SlackServer

SLACK_SETTINGS = """
[mediums.slack]
bot_token = "{bot_token}"
app_token = "{app_token}"
api_base = "{slack}"
"""
MAIL_SETTINGS = """
[mediums.email]
address = "{address}"
imap_host = "127.0.0.1"
imap_port = {imap}
imap_security = "none"
smtp_host = "127.0.0.1"
smtp_port = {smtp}
smtp_security = "none"
password = "{password}"
authserv_id = "{authserv_id}"
"""


def slack_settings(server: SlackServer) -> str:
    return SLACK_SETTINGS.format(bot_token=server.bot_token, app_token=server.app_token, slack=server.api_base)


def mail_settings(mail: Mail) -> str:
    lines = {"imap": mail.imap.port, "smtp": mail.smtp.port}
    return MAIL_SETTINGS.format(address=mail.address, password=PASSWORD, authserv_id=AUTHSERV_ID, **lines)


class OnSlack:
    medium = "slack"

    def __init__(self, server: SlackServer) -> None:
        self._server, self.settings = server, slack_settings(server)
        self._people = {name: server.person(name) for name in ("Ana", "Cleo")}

    def address(self, name: str) -> str:
        return f"slack:{self._server.team}/{self._people[name].id}"

    def says(self, text: str, who: str = "Ana") -> None:
        self._people[who].says(text)

    def seen(self, who: str = "Ana") -> list[str]:
        return self._server.seen_by(self._people[who])

    async def sees(self, text: str, who: str = "Ana") -> None:
        await self._server.sees(self._people[who], text, 30.0)


class ByMail:
    medium = "email"

    def __init__(self, mail: Mail) -> None:
        self._mail, self.settings, self._last = mail, mail_settings(mail), dict[str, Seen]()
        self._people = {name: mail.person(f"{name.lower()}@example.org", name) for name in ("Ana", "Cleo")}

    def address(self, name: str) -> str:
        return f"email:{self._people[name].address}"

    def says(self, text: str, who: str = "Ana") -> None:
        """In answer to the mail that they saw last, if there is one."""
        self._people[who].sends(text, subject="Work", thread=self._last.get(who))

    def seen(self, who: str = "Ana") -> list[str]:
        """Without what the mails quote."""
        mails = self._mail.seen_by(self._people[who].address)
        return [one.text.partition("\n\nOn ")[0] for one in mails]

    async def sees(self, text: str, who: str = "Ana") -> None:
        self._last[who] = await self._mail.sees(self._people[who].address, text)


Place = OnSlack | ByMail


@contextlib.asynccontextmanager
async def opened(medium: Any) -> AsyncIterator[Place]:
    if medium == "slack":
        async with SlackServer() as server:
            yield OnSlack(server)
    else:
        async with Mail() as mail:
            yield ByMail(mail)
