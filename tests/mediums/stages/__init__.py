"""One stage for each medium: the platform, a person on it, and the wire between, which can be broken.

A new medium adds a module with a `Stage` and its name in `STAGES`; then `test_contract.py` holds for it too. What a
platform does not have, its stage leaves as it is here: the test that needs it is skipped and says why.
"""

import contextlib
import importlib
from abc import ABC, abstractmethod
from typing import NoReturn

import pytest

from gateway.addresses import Route
from mediums.medium import Medium

STAGES = {
    "local": "tests.mediums.stages.local",
    "slack": "tests.mediums.stages.slack",
    "telegram": "tests.mediums.stages.telegram",
}


class Stage(ABC):
    route: Route  # where the person is answered

    @abstractmethod
    def medium(self) -> Medium:
        """A new one on the same account and platform, as after a restart."""

    @abstractmethod
    async def says(self, text: str) -> None:
        """The person sends it; it is at the platform when this returns."""

    @abstractmethod
    async def sees(self, text: str) -> None:
        """Waits until the person sees a message with just this text."""

    @abstractmethod
    def seen(self) -> list[str]:
        """All that the person sees from the assistant, in order, as it is read."""

    async def settled(self) -> None:
        """Waits until the platform knows as received all that was said."""
        self._cannot("confirm what it has received")

    async def next_send_fails_surely(self) -> None:
        """The next send is not done, and can be tried again."""
        self._cannot("fail a send surely")

    async def next_send_is_refused(self) -> None:
        """The next send is not done, and never will be."""
        self._cannot("refuse a send")

    async def next_send_loses_its_answer(self) -> None:
        """The next send is done, and nobody hears of it."""
        self._cannot("lose an answer")

    async def goes_down(self) -> None:
        self._cannot("go down")

    async def comes_back(self) -> None:
        self._cannot("go down")

    def _cannot(self, what: str) -> NoReturn:
        pytest.skip(f"the platform of {type(self).__name__} does not {what}")


def open_stage(name: str) -> contextlib.AbstractAsyncContextManager[Stage]:
    opened: contextlib.AbstractAsyncContextManager[Stage] = importlib.import_module(STAGES[name]).open_stage()
    return opened
