"""From the settings to the two models: one helper process for the conversation, one for the actors.

`rehearsal` is a name like any other: rules instead of a language model, in this process.
"""

import asyncio
from collections.abc import Callable, Collection

from frontdesk.rehearsal import desk_model, worker_model
from gateway.llm.chain import Chain
from gateway.llm.client import HelperModel, HelperProcess
from gateway.llm.fitting import Fitting
from gateway.llm.in_text import InText
from gateway.llm.model import Model
from gateway.settings import ModelSettings, Settings, endpoints

REHEARSAL = "rehearsal"
BRAIN = "brain"
ACTORS_AFTER_SECONDS = 2.0
PACE_SECONDS = 1.0
BUDGET_TOKENS = 100_000  # of a prompt; a provider that takes less says so, and gets less


class Models:
    """`start` them inside the loop, `close` them at the end."""

    def __init__(
        self,
        settings: Settings,
        notice: Callable[[str], None],
        *,
        pace_seconds: float = PACE_SECONDS,
        roles: Collection[str] = ("brain", "actors"),
    ) -> None:
        self._roles = roles
        self._helpers: dict[str, HelperProcess] = {}
        self.brain = self._model(settings.model, BRAIN, "model", desk_model, notice)
        actors = self._model(settings.actor_model, "actors", "model.actor", lambda: worker_model(pace_seconds), notice)
        self.actors = InText(actors) if settings.actor_model.tool_calls == "schema" else actors

    @property
    def helpers(self) -> dict[str, HelperProcess]:
        """By whom they serve; their memory is not the gateway's."""
        return self._helpers

    def start(self) -> None:
        """The conversation's at once; the actors' a little later, so that it does not slow down the start."""
        loop = asyncio.get_running_loop()
        for label, helper in self._helpers.items():
            if label in self._roles:
                later = label != BRAIN and BRAIN in self._roles
                loop.call_later(ACTORS_AFTER_SECONDS if later else 0.0, helper.start)

    async def close(self) -> None:
        for helper in self._helpers.values():
            await helper.close()

    def _model(
        self,
        settings: ModelSettings,
        label: str,
        section: str,
        rehearsal: Callable[[], Model],
        notice: Callable[[str], None],
    ) -> Model:
        name = settings.name
        assert name is not None
        if name == REHEARSAL:
            return rehearsal()
        found = endpoints(settings, section)
        helper = self._helpers[label] = HelperProcess(label, warm=tuple(one.name for one in found))
        chain = Chain([HelperModel(helper, endpoint) for endpoint in found], notice=notice)
        return Fitting(chain, budget_tokens=BUDGET_TOKENS)
