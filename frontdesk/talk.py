"""The command line's way into a running gateway: over its local page, with the token that lies beside the store."""

import asyncio
import sys

from frontdesk.serve import local_token
from gateway.settings import Settings
from mediums.local import wire
from mediums.local.client import AccessDenied, Disconnected, LocalClient

PATIENCE_SECONDS = 5.0


def client_of(settings: Settings) -> LocalClient:
    web = settings.mediums.web
    listen = web.listen if web is not None else None
    if listen is None:
        raise SystemExit("[mediums.web] is not in the settings: the terminal talks to the gateway through it.")
    return LocalClient(f"http://{listen}", local_token(settings))


async def converse(settings: Settings, *, plain: bool) -> int:
    from mediums.local.plain import lines_of, run_plain
    from mediums.local.terminal import run_terminal

    try:
        async with client_of(settings) as client:
            if plain:
                result = await run_plain(client, lines_of(sys.stdin), sys.stdout)
                return 0 if result.ok else 1
            await run_terminal(client)
    except AccessDenied as error:
        print(f"The gateway refused the token: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


async def look_up(settings: Settings, what: str, about: str) -> tuple[str, bool]:
    """The answer in Markdown, and whether there was one."""
    async with client_of(settings) as client:
        asked = client.look(what, about)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                async for event in client:
                    if isinstance(event, wire.Looked) and event.id == asked:
                        return event.text, True
                    if isinstance(event, wire.Refused) and event.id == asked:
                        return event.why, False
                    if isinstance(event, Disconnected):
                        return f"No gateway answers: {event.why}. Start one with `frontdesk run`.", False
        except AccessDenied as error:
            return f"{error}. If that is the gateway of another config.toml, name it with --config.", False
        except TimeoutError:
            pass
    return "The gateway did not answer in time.", False
