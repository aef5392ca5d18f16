"""The command line. Each command imports what it needs when it runs: `--help` and a start cost nothing more."""

import asyncio
import os
import shlex
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from gateway.settings import Settings

DEFAULT_CONFIG = "config.toml"
ROLES = ("mediums", "brain", "actors")
ROLES_TEXT = ",".join(ROLES)
PAGE = ("mediums.web",)
SECRETS_OF = {"mediums": ("mediums",), "brain": ("model",), "actors": ("model", "sandbox")}
config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help=f"The settings; {DEFAULT_CONFIG} in this folder where there is one.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="frontdesk")
def main() -> None:
    """One assistant on every medium: someone is always there to answer while the work goes on."""


@main.command()
@click.option("--plain", is_flag=True, help="As from a pipe: lines in, a transcript out, exit code 0 if all is well.")
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another sales.csv.")
@click.option("--model", default=None, help='A litellm name, or "rehearsal"; found by itself where nothing is said.')
@click.option("--pace", type=click.FloatRange(0, 60), default=1.0, show_default=True, help="Seconds at each step.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Where the page is.")
def demo(plain: bool, data: Path | None, model: str | None, pace: float, listen: str) -> None:
    """A conversation that can be tried at once, without any account or key."""
    from frontdesk.demo.stage import DemoFailed, Options
    from frontdesk.demo.tour import run

    options = Options(plain=plain or not sys.stdin.isatty(), data=data, model=model, pace_seconds=pace, listen=listen)
    try:
        sys.exit(asyncio.run(run(options)))
    except DemoFailed as error:
        raise click.ClickException(str(error)) from error


@main.command()
@config_option
@click.option("--yes", is_flag=True, help="Ask nothing: take what is found, and the defaults.")
def init(config: Path | None, yes: bool) -> None:
    """Write the settings, question by question."""
    from frontdesk.demo.find_model import find
    from frontdesk.init import CannotInit, Interview, write

    path = config or Path(DEFAULT_CONFIG)
    if path.exists():
        raise click.ClickException(f"{path} is there already: move it away, or name another file with --config.")
    interview = Interview(os.environ, ask=not yes)
    settings = interview.settings(asyncio.run(find(None, os.environ)))
    try:
        written = write(path, settings, interview.typed)
    except (CannotInit, OSError) as error:
        raise click.ClickException(str(error)) from error
    _settings(path)
    name = "" if path == Path(DEFAULT_CONFIG) else f" --config {path}"
    click.echo(f"Written: {', '.join(map(str, written))}")
    click.echo(f"Next: `frontdesk doctor{name}` tries each part, then `frontdesk run{name}` starts it.")


def _roles(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    roles = tuple(dict.fromkeys(role.strip() for role in text.split(",")))
    if unknown := [role for role in roles if role not in ROLES]:
        raise click.BadParameter(f"there is no role {unknown[0]!r}: write some of {ROLES_TEXT}")
    return roles


@main.command()
@config_option
@click.option("--roles", default=ROLES_TEXT, show_default=True, callback=_roles, help="Which parts run here.")
@click.option("--verbose", is_flag=True, help="Log everything, still without secrets.")
def run(config: Path | None, roles: tuple[str, ...], verbose: bool) -> None:
    """Start the gateway."""
    from frontdesk.serve import CannotStart, serve

    settings = _settings(config, _secrets_of(roles))
    try:
        asyncio.run(serve(settings, roles=roles, verbose=verbose))
    except CannotStart as error:
        raise click.ClickException(str(error)) from error


@main.command()
@config_option
@click.option("--plain", is_flag=True, help="As from a pipe: lines in, a transcript out.")
def chat(config: Path | None, plain: bool) -> None:
    """Talk to the running gateway in this terminal."""
    from frontdesk.talk import converse

    sys.exit(asyncio.run(converse(_settings(config, PAGE), plain=plain or not sys.stdin.isatty())))


@main.command()
@config_option
def actions(config: Path | None) -> None:
    """What is in flight, and what has ended, in each conversation."""
    _look(config, "actions", "all")


@main.command()
@config_option
@click.argument("message", nargs=-1)
def trace(config: Path | None, message: tuple[str, ...]) -> None:
    """Why: what was seen, decided and sent about MESSAGE (m12), or about the last ones.

    Of the owner's conversation, or of another with its name before, as `search` shows it: p-ben m12.
    """
    _look(config, "trace", " ".join(message))


@main.group(invoke_without_command=True)
@config_option
@click.pass_context
def people(context: click.Context, config: Path | None) -> None:
    """Who is who; with a command, a change of it. The gateway must run."""
    context.default_map = {name: {"config": config} for name in ("link", "unlink", "merge")}
    if context.invoked_subcommand is None:
        _look(config, "people", "")


@people.command()
@config_option
@click.argument("name")
@click.argument("address")
def link(config: Path | None, name: str, address: str) -> None:
    """ADDRESS (telegram:42) is NAME's: what was said there joins their conversation."""
    _look(config, "people", shlex.join(["link", name, address]))


@people.command()
@config_option
@click.argument("address")
def unlink(config: Path | None, address: str) -> None:
    """ADDRESS is nobody's any more: nothing more of their conversation goes there."""
    _look(config, "people", shlex.join(["unlink", address]))


@people.command()
@config_option
@click.argument("name")
@click.argument("into")
def merge(config: Path | None, name: str, into: str) -> None:
    """NAME is the same person as INTO: their conversations become one, for good."""
    _look(config, "people", shlex.join(["merge", name, into]))


@main.command()
@config_option
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def search(config: Path | None, text: str, limit: int) -> None:
    """Find messages with these words, in all conversations. For whoever runs the gateway."""
    from frontdesk import upkeep
    from gateway.keeping import ViewsFailed

    try:
        lines = upkeep.search(_settings(config, ()).store.path, text, limit)
    except ViewsFailed as error:
        raise click.ClickException(str(error)) from error
    _say("\n".join(lines) or "Nothing was found.")


@main.command()
@config_option
@click.option("--days", type=click.IntRange(1, 3660), default=7, show_default=True, help="Today, and the days before.")
def costs(config: Path | None, days: int) -> None:
    """What it cost, by day (UTC) and person, talk and work."""
    from datetime import UTC, datetime

    from frontdesk.costs import lines
    from gateway.keeping import ViewsFailed

    try:
        found = lines(_settings(config, ()), days, datetime.now(UTC).date())
    except ViewsFailed as error:
        raise click.ClickException(str(error)) from error
    _say("\n".join(found) or "Nothing was spent.")


@main.command()
@config_option
def rebuild(config: Path | None) -> None:
    """Make the search index and the other views anew from the journals. No gateway may run on this machine."""
    from frontdesk import upkeep
    from gateway.broker.protocol import BrokerUnusable, Deposed, Unconfirmed
    from gateway.keeping import ViewsFailed

    try:
        number = asyncio.run(upkeep.rebuild(_settings(config, ("broker",))))
    except (BrokerUnusable, Deposed, Unconfirmed, ViewsFailed) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Made anew from {number} entries.")


@main.command()
@config_option
@click.argument("address")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(config: Path | None, address: str, yes: bool) -> None:
    """Erase what ADDRESS (telegram:42) said, and what was made of it, for good, also while the gateway runs."""
    from frontdesk.erasing import erase_person
    from gateway.addresses import Address
    from gateway.broker.protocol import BrokerUnusable, Stale, Unconfirmed
    from gateway.keeping import ViewsFailed
    from gateway.record import Undecodable

    try:
        person = Address.parse(address)
        if not yes:
            click.confirm(f"Erase all that {person} said, and the work done for them? It cannot be undone", abort=True)
        text = asyncio.run(erase_person(_settings(config, ("broker",)), person))
    except (ValueError, BrokerUnusable, Stale, Unconfirmed, ViewsFailed, Undecodable) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text)


@main.command()
@config_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(config: Path | None, file: Path) -> None:
    """Copy the store to FILE (and its views beside it), also while the gateway runs."""
    from frontdesk import upkeep
    from gateway.broker.protocol import BrokerUnusable

    try:
        text = upkeep.backup(_settings(config, ()), file)
    except (BrokerUnusable, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text)


@main.command()
@config_option
@click.option("--roles", default=ROLES_TEXT, show_default=True, callback=_roles, help="What only they need.")
def doctor(config: Path | None, roles: tuple[str, ...]) -> None:
    """Check the settings, the store, the model and the mediums; say what to mend."""
    from frontdesk.doctor import check

    sys.exit(asyncio.run(check(_settings(config, _secrets_of(roles)), roles)))


@main.command()
@config_option
@click.option("--again", is_flag=True, help="Also if they are there already.")
def packages(config: Path | None, again: bool) -> None:
    """Install what the workers' code can import: [sandbox] packages, from wheels, by pip as it is set up here."""
    from frontdesk.packages import NotInstalled, make

    try:
        asyncio.run(make(_settings(config, ()), again=again))
    except NotInstalled as error:
        raise click.ClickException(str(error)) from error


@main.command(name="eval")
@config_option
@click.option("--model", default=None, help="Another one than config.toml's, with its key and address.")
@click.option("--tool-calls", type=click.Choice(["native", "schema"]), default=None, help="Else as config.toml says.")
@click.option(
    "--scenarios", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Yours, instead of ours."
)
@click.option("--half", type=click.Choice(["tuning", "held-out"]), default=None, help="Only these of them.")
@click.option("--parallel", type=click.IntRange(0, 64), default=0, help="So many at once; 0: what suits its server.")
@click.option("--again", is_flag=True, help="Ask also what was asked before.")
@click.option("--json", "as_json", is_flag=True, help="Print each decision and all figures, as JSON.")
def evaluation(
    config: Path | None,
    model: str | None,
    tool_calls: Literal["native", "schema"] | None,
    scenarios: Path | None,
    half: str | None,
    parallel: int,
    again: bool,
    as_json: bool,
) -> None:
    """How often a model decides right: to speak, wait, start, steer or ask.

    Puts scenarios through the real prompt and tools, prints a table by axis with each wrong decision beside the right
    ones, and says what that cost. Needs no gateway; nothing is started or sent. Run again it goes on where it was
    broken off. docs/eval.md has the form of the files and of the JSON.
    """
    from frontdesk.evaluation.command import CannotEvaluate, Options, evaluate

    options = Options(
        model=model,
        tool_calls=tool_calls,
        scenarios=scenarios,
        half=half or "",
        parallel=parallel,
        again=again,
        as_json=as_json,
    )
    try:
        sys.exit(asyncio.run(evaluate(_settings(config, ("model",)), options)))
    except CannotEvaluate as error:
        raise click.ClickException(str(error)) from error


def _secrets_of(roles: tuple[str, ...]) -> list[str]:
    return ["broker", *(table for role in roles for table in SECRETS_OF[role])]


def _settings(config: Path | None, secrets_of: Collection[str] | None = None) -> "Settings":
    from gateway.config import ConfigError, load

    path = config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)
    try:
        return load(path, os.environ, secrets_of)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def _say(text: str) -> None:
    """What people wrote, or a server said, must not rewrite the terminal of whoever looks."""
    from mediums.visible import printable

    click.echo(printable(text))


def _look(config: Path | None, what: str, about: str) -> None:
    from frontdesk.talk import look_up

    text, found = asyncio.run(look_up(_settings(config, PAGE), what, about))
    _say(text)
    sys.exit(0 if found else 1)
