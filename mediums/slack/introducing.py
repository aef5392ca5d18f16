"""Whose bot a token is, before there can be a medium of it."""

import asyncio
import logging

from mediums.slack.adapter import API_BASE, Entry, SlackMedium, client_of, imported
from mediums.slack.failures import CallFailed
from mediums.slack.pace import Pace

log = logging.getLogger(__name__)


async def introduced(bot_token: str, entry: Entry, api_base: str = API_BASE, pace: Pace | None = None) -> SlackMedium:
    """The medium of this token, once Slack has said whose it is; asks until it does, and logs what is in the way.

    An account's name is for ever: its outbox and all identities hang on it. So it is the workspace's id and not made
    from a token, which is replaced; and it is asked for and not a setting, where it could be wrong.
    """
    pace = pace or Pace()
    await imported()
    client = client_of(bot_token, entry, api_base, pace)
    failed, trouble = 0, ""
    try:
        while True:
            try:
                return SlackMedium(bot_token, entry, (await client.me()).team, api_base, pace)
            except CallFailed as error:
                failed += 1
                if str(error) != trouble:
                    log.warning("slack: %s", error)
                trouble = str(error)
                await asyncio.sleep(pace.pause_seconds(failed, error.failure))
    finally:
        await client.close()
