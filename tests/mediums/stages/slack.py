"""Slack: a server of Slack's on sockets, and Ana, who writes to the bot in a direct message."""

import contextlib
from collections.abc import AsyncIterator

from gateway.addresses import Route
from mediums.slack import SlackMedium
from mediums.slack.pace import Pace
from tests.mediums.stages import Stage
from tests.servers.slack import LOST_ANSWER, Refuse, SlackServer

QUICK = Pace(
    call_seconds=2.0,
    ping_seconds=0.1,
    closing_seconds=0.2,
    settled_seconds=0.0,
    first_pause_seconds=0.01,
    longest_pause_seconds=0.05,
)


class SlackStage(Stage):
    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.made: list[SlackMedium] = []
        self.ana = server.person("Ana")
        self.route = Route(medium="slack", account=self.medium().account, place=self.ana.chat.id)

    def medium(self, pace: Pace = QUICK) -> SlackMedium:
        """Closed with the stage."""
        server = self.server
        self.made.append(SlackMedium(server.bot_token, server.app_token, server.team, server.api_base, pace))
        return self.made[-1]

    async def says(self, text: str) -> None:
        self.ana.says(text)

    async def sees(self, text: str) -> None:
        await self.server.sees(self.ana, lambda shown: shown.text == text)

    def seen(self) -> list[str]:
        return self.server.seen_by(self.ana)

    async def settled(self) -> None:
        await self.server.until(lambda: not self.server.unconfirmed)

    async def next_send_fails_surely(self) -> None:
        self.server.script("chat.postMessage", Refuse("ratelimited", 429, retry_after=3))

    async def next_send_is_refused(self) -> None:
        self.ana.chat.archived = True

    async def next_send_loses_its_answer(self) -> None:
        self.server.script("chat.postMessage", LOST_ANSWER)

    async def goes_down(self) -> None:
        await self.server.goes_down()

    async def comes_back(self) -> None:
        await self.server.comes_back()


@contextlib.asynccontextmanager
async def open_stage() -> AsyncIterator[SlackStage]:
    async with SlackServer() as server:
        stage = SlackStage(server)
        try:
            yield stage
        finally:
            for medium in stage.made:
                await medium.close()
