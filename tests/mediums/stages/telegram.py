"""Telegram: a Bot API on a socket, and Ana, who writes to the bot in private."""

import contextlib
from collections.abc import AsyncIterator

from gateway.addresses import Route
from mediums.telegram import TelegramMedium
from mediums.telegram.adapter import Pace
from tests.mediums.stages import Stage
from tests.servers.telegram import LOST_ANSWER, BotApi, Refuse

QUICK = Pace(
    poll_seconds=5, call_seconds=2.0, first_pause_seconds=0.01, longest_pause_seconds=0.05, typing_seconds=0.02
)


class TelegramStage(Stage):
    def __init__(self, server: BotApi) -> None:
        self.server = server
        self.made: list[TelegramMedium] = []
        self.ana = server.person("Ana")
        self.route = Route(medium="telegram", account=self.medium().account, place=str(self.ana.id))

    def medium(self, pace: Pace = QUICK) -> TelegramMedium:
        """Closed with the stage."""
        self.made.append(TelegramMedium(self.server.token, self.server.base_url, pace))
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
        self.server.script("sendMessage", Refuse(429, "Too Many Requests: retry after 3", retry_after=3))

    async def next_send_is_refused(self) -> None:
        self.ana.blocks()

    async def next_send_loses_its_answer(self) -> None:
        self.server.script("sendMessage", LOST_ANSWER)

    async def goes_down(self) -> None:
        await self.server.goes_down()

    async def comes_back(self) -> None:
        await self.server.comes_back()


@contextlib.asynccontextmanager
async def open_stage() -> AsyncIterator[TelegramStage]:
    async with BotApi() as server:
        stage = TelegramStage(server)
        try:
            yield stage
        finally:
            for medium in stage.made:
                await medium.close()
