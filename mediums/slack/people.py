"""Who is behind an id, remembered for a while. A name is a courtesy: no message waits long for one."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from mediums.slack.failures import CallFailed, Refusal
from mediums.slack.words import Profile

log = logging.getLogger(__name__)

KEPT = 5000
ASKED_AT_ONCE = 10  # of one message; who is named beyond that keeps the id as a name
FRESH_SECONDS = 3600.0
FAILED_SECONDS = 60.0  # before Slack is asked again for one that it did not tell


class People:
    def __init__(self, ask: Callable[[str], Awaitable[Profile]], within_seconds: float) -> None:
        """`ask` raises CallFailed."""
        self._ask, self._within_seconds = ask, within_seconds
        self._known: OrderedDict[str, tuple[Profile | None, float]] = OrderedDict()
        self._allowed = True  # by the token's scopes

    async def profiles(self, users: Iterable[str]) -> dict[str, Profile]:
        """Of these, those that are known or told in time. Raises nothing."""
        wanted = list(dict.fromkeys(users))[:ASKED_AT_ONCE]
        now = time.monotonic()
        missing = [user for user in wanted if self._known.get(user, (None, 0.0))[1] <= now]
        await asyncio.gather(*(self._look_up(user) for user in missing))
        return {user: found for user in wanted if (found := self._known[user][0]) is not None}

    async def _look_up(self, user: str) -> None:
        before = self._known.get(user, (None, 0.0))[0]
        try:
            async with asyncio.timeout(self._within_seconds):
                found = await self._ask(user)
        except CallFailed as error:
            self._remember(user, before, FAILED_SECONDS)
            self._say_once(error)
        except TimeoutError:
            self._remember(user, before, FAILED_SECONDS)
        else:
            self._allowed = True
            self._remember(user, found, FRESH_SECONDS)

    def _say_once(self, error: CallFailed) -> None:
        """Without the right to ask, everybody but the contacts is taken for a guest, for as long as it lasts."""
        failure = error.failure
        if self._allowed and isinstance(failure, Refusal) and failure.error == "missing_scope":
            self._allowed = False
            log.warning("only contacts are answered, and nobody has a name: %s", error)

    def _remember(self, user: str, profile: Profile | None, seconds: float) -> None:
        self._known[user] = (profile, time.monotonic() + seconds)
        self._known.move_to_end(user)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
