"""What code of actors can import: the environment the operator has made, and what it may have installed beside it."""

from pathlib import Path

import click

from actors.sandbox.folder import Folder
from actors.sandbox.isolation.words import Isolation
from actors.sandbox.packages.install import Curated, NotInstalled, Own, installed
from actors.workshop import Caller
from frontdesk.isolation import Choice, choose
from frontdesk.store import workspaces
from gateway.settings import Settings

FIRST_NAMES = 5


def curated(settings: Settings, choice: Choice) -> Curated:
    path = settings.store.path
    return Curated(path.parent / f"{path.name}.packages", choice.isolation.python, settings.sandbox.packages)


def furnished(settings: Settings, choice: Choice) -> Isolation:
    """The isolation with what there is to import."""
    environment = curated(settings, choice)
    return choice.isolation.with_packages(environment.path if environment.is_there else None)


class Installer:
    """For `primitives.packages`."""

    def __init__(self, settings: Settings, choice: Choice) -> None:
        self._workspaces, self._curated = workspaces(settings.store.path), curated(settings, choice)
        self._python = choice.isolation.python

    async def __call__(self, caller: Caller, wanted: str) -> list[str]:
        own = Folder(self._workspaces / caller.action).packages
        there = self._curated.path if self._curated.is_there else None
        return await Own(own, self._python, there).add(wanted)


async def make(settings: Settings, *, again: bool) -> None:
    """`frontdesk packages`. Raises NotInstalled."""
    choice = await choose(settings.sandbox)
    environment = curated(settings, choice)
    if environment.is_there and not again:
        click.echo(f"They are there already, in {environment.path}; --again makes them anew:")
    else:
        click.echo(f"Installing {', '.join(environment.asked()) or 'nothing'} for {choice.isolation.python}")
        await environment.make()
    for name, version in installed(environment.path).items():
        click.echo(f"  {name} {version}")


def told(settings: Settings, choice: Choice) -> str:
    """For the model: what it need not do without."""
    environment = curated(settings, choice)
    names = ", ".join(environment.asked()) if environment.is_there else ""
    return f"\n\nInstalled beside Python's own libraries: {names}." if names else ""


def described(path: Path) -> str:
    """In a few words, for the operator."""
    names = [*installed(path)]
    more = f" and {len(names) - FIRST_NAMES} more" if len(names) > FIRST_NAMES else ""
    return ", ".join(names[:FIRST_NAMES]) + more


__all__ = ["Installer", "NotInstalled", "curated", "described", "furnished", "make", "told"]
