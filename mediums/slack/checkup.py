"""What `frontdesk doctor` asks of Slack: are the tokens good, and may they do what is needed. Posts nothing."""

from mediums.medium import Health
from mediums.slack.client import Client
from mediums.slack.failures import CallFailed
from mediums.slack.pace import Pace
from mediums.slack.wire import MORE_SCOPES, NEEDED_SCOPES, THREAD_SCOPES
from mediums.slack.words import Me


async def look(bot_token: str, app_token: str | None, api_base: str) -> Health:
    """Opens no connection: one of a gateway that runs would lose events to it."""
    client = Client(bot_token, app_token or "", api_base, Pace())
    try:
        me = await client.me()
        if app_token is not None:
            await client.socket_address()
    except CallFailed as error:
        return Health(well=False, text=str(error))
    finally:
        await client.close()
    return _allowed(me)


def _allowed(me: Me) -> Health:
    who = f"this is @{me.name} in {me.workspace} ({me.team})"
    if not me.scopes:
        return Health(well=True, text=f"{who}; Slack does not say which scopes it has")
    missing = [scope for scope in NEEDED_SCOPES if scope not in me.scopes]
    if missing:
        mend = "add them under OAuth & Permissions and reinstall the app"
        return Health(well=False, text=f"{who}, without the scopes {', '.join(missing)}: {mend}")
    deaf = [scope for scope in THREAD_SCOPES if scope not in me.scopes]
    without = f"; without {', '.join(deaf)} it does not hear what follows in a thread" if deaf else ""
    unable = [f"; without {scope} it cannot {what}" for scope, what in MORE_SCOPES.items() if scope not in me.scopes]
    return Health(well=True, text=who + without + "".join(unable))
