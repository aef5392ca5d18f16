"""`frontdesk init`: asks what it must know and writes config.toml; tokens that were typed go in files of their own.

What it writes is read again before it says that it is done. It never overwrites anything.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import tomli_w

from frontdesk.demo.find_model import KEYS, Found
from frontdesk.models import REHEARSAL
from gateway.written import contact_address

HEADER = "# Made by `frontdesk init`. Every setting there is, with its default: config.example.toml.\n\n"
SECRETS = "secrets"  # beside the file, for its owner's eyes alone
LOCALTIME = Path("/etc/localtime")


class CannotInit(Exception):
    """In words for whoever runs it."""


class Interview:
    """One run of questions. With `ask` false it takes every default, and no medium but the page."""

    def __init__(self, environ: Mapping[str, str], ask: bool) -> None:
        self._environ, self._ask = environ, ask
        self.typed: dict[str, str] = {}  # file's name to what belongs in it
        self._addresses: list[str] = []

    def settings(self, found: Found) -> dict[str, Any]:
        said: dict[str, Any] = {
            "assistant": {
                "name": self._text("What is the assistant called", "Frontdesk"),
                "timezone": self._text("In which time zone", here(self._environ), ZoneInfo),
            },
            "model": self._model(found),
        }
        mediums = {
            name: table
            for name, about in (("telegram", self._telegram), ("slack", self._slack), ("email", self._email))
            if self._yes(f"Connect {name.capitalize()}") and (table := about())
        }
        said["mediums"] = {"web": {"listen": "127.0.0.1:8765"}, **mediums}
        if self._addresses:
            owner = {"name": self._text("What is your name", "Owner"), "role": "owner", "addresses": self._addresses}
            said["contacts"] = [owner]
        return said

    def _model(self, found: Found) -> dict[str, Any]:
        known = found if found.name != REHEARSAL else None
        if known is not None and self._ask:
            click.echo(f"Model: {known.name}, because {known.why}.")
        name = self._text("Which model (any name that litellm knows)", known.name if known else KEYS["OPENAI_API_KEY"])
        table: dict[str, Any] = {"name": name}
        if known is not None and known.name == name:
            return table | ({"api_base": known.api_base} if known.api_base else {"api_key": f"env:{known.key}"})
        if base := self._text("Address of its server (empty: the provider's)", ""):
            table["api_base"] = base
        variable = f"{name.split('/')[0].upper()}_API_KEY"
        if key := self._secret("Its API key (empty: none)", variable, "model-key"):
            table["api_key"] = key
        return table

    def _telegram(self) -> dict[str, Any]:
        click.echo("Talk to @BotFather on Telegram, send /newbot, and copy the token that it gives you.")
        token = self._secret("Its token (empty: not now)", "TELEGRAM_BOT_TOKEN", "telegram-token")
        if not token:
            return {}
        self._own("Your own numeric id there (@userinfobot tells it; empty: later)", "telegram")
        return {"token": token}

    def _slack(self) -> dict[str, Any]:
        click.echo("Make the app from the manifest in docs/slack.md, and install it in your workspace.")
        table = {
            "bot_token": self._secret("Its bot token (xoxb-…; empty: not now)", "SLACK_BOT_TOKEN", "slack-bot-token"),
            "app_token": self._secret("Its app-level token (xapp-…)", "SLACK_APP_TOKEN", "slack-app-token"),
        }
        if not all(table.values()):
            return {}
        self._own("Your own team and user id there, as T1/U7 (empty: later)", "slack")
        return table

    def _email(self) -> dict[str, Any]:
        click.echo("A mailbox of its own, which nobody else reads mail in; docs/email.md leads through it.")
        table = {
            "address": self._text("Its address"),
            "imap_host": self._text("IMAP server"),
            "smtp_host": self._text("SMTP server"),
            "authserv_id": self._text("The server that says who wrote a mail (docs/email.md: authserv_id)"),
            "password": self._secret(
                "Its password (often an app password)", "FRONTDESK_MAIL_PASSWORD", "mail-password"
            ),
        }
        self._own("Your own address (empty: later)", "email")
        return {key: value for key, value in table.items() if value}

    def _own(self, question: str, medium: str) -> None:
        def checked(user: str) -> None:
            if user:
                contact_address(f"{medium}:{user}")

        if user := self._text(question, "", checked):
            self._addresses.append(str(contact_address(f"{medium}:{user}")))

    def _text(self, question: str, default: str | None = None, check: Any = str) -> str:
        if not self._ask:
            return default or ""

        def checked(text: str) -> str:
            try:
                check(text.strip())
            except (ValueError, LookupError) as error:
                raise click.BadParameter(str(error)) from error
            return text.strip()

        said: str = click.prompt(question, default=default, value_proc=checked, show_default=bool(default))
        return said

    def _yes(self, question: str) -> bool:
        return self._ask and click.confirm(question, default=False)

    def _secret(self, question: str, variable: str, file: str) -> str:
        """Where it is: in the environment, or in a file that is written at the end."""
        if self._environ.get(variable):
            click.echo(f"{variable} is set: it is read from there.")
            return f"env:{variable}"
        typed = click.prompt(question, default="", hide_input=True, show_default=False).strip() if self._ask else ""
        if not typed:
            return ""
        self.typed[file] = typed
        return f"file:{SECRETS}/{file}"


def write(path: Path, settings: dict[str, Any], secrets: Mapping[str, str]) -> list[Path]:
    """The files written. Raises CannotInit when one is there already."""
    files = {path.parent / SECRETS / name: value + "\n" for name, value in secrets.items()}
    files[path] = HEADER + tomli_w.dumps(settings)
    if there := [file for file in files if file.exists()]:
        raise CannotInit(f"{there[0]} is there already: move it away, or name another file with --config.")
    for file, text in files.items():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
            written.write(text)
    return list(files)


def here(environ: Mapping[str, str]) -> str:
    """This machine's time zone by its name in the database, or UTC."""
    _, _, name = str(LOCALTIME.resolve()).partition("zoneinfo/")
    for candidate in (environ.get("TZ", ""), name):
        try:
            return ZoneInfo(candidate).key
        except (ValueError, LookupError):
            continue
    return "UTC"
