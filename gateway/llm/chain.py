"""A `Model` made of several: retries the one, then asks the next, and tells the operator once.

Here: the one layer that repeats a call, and its bounds. Not here: how a call is made (`client`). A call is repeated
whole: nothing of a broken answer is kept, so no text comes twice and no arguments are glued.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from gateway.llm.model import Generation, Model, ModelError, OnSpent, Request

TRIES_MAX = 3
BACKOFF_SECONDS = 0.5  # doubled for each try, and half of it up to all of it is waited
RETRY_AFTER_SECONDS_MAX = 30.0  # a model that wants more time is given up for this call
PATIENCE_SECONDS = 5.0  # the same while another model could answer at once
CLOSED_SECONDS_MAX = 3600.0  # and is not asked at all until then, but not longer than this
REST_SECONDS = 30.0  # a model that failed is left alone so long
REST_AFTER_REFUSAL_SECONDS = 300.0  # and so long if only the operator can mend it
NOT_FOR_ANOTHER = frozenset({"context_too_long"})  # the caller shortens and asks again; never unchanged
ABOUT_THE_REQUEST = frozenset({"content_filtered"})  # says nothing about the model's health
FOR_OPERATOR_ONLY = frozenset({"key_refused", "model_unknown"})


class _Rest(msgspec.Struct, frozen=True, kw_only=True):
    """Why a model is left alone, since when and until when (by the chain's clock)."""

    since: float
    until: float


class _Closed(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said that wants to be left alone, and until when."""

    error: ModelError
    until: float

    def still(self, now: float) -> ModelError:
        said = self.error
        return ModelError(
            said.kind, said.for_operator, retryable=said.retryable, retry_after_seconds=max(0.0, self.until - now)
        )


class Chain:
    """The first of `models` that answers, in their order.

    `notice(text)` is called once when another model than before answers, and once when an earlier one is back.
    What failed tries cost is reported by the models themselves.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        notice: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not models:
            raise ValueError("a chain needs at least one model")
        self._models = tuple(models)
        self._notice = notice
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._resting: dict[int, _Rest] = {}
        self._closed: dict[int, _Closed] = {}
        self._announced = 0

    @property
    def name(self) -> str:
        """The first model's name, whichever answers."""
        return self._models[0].name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        """See `Model.generate`. Raises the first model's error if none answers; context_too_long at once."""
        errors: list[ModelError] = []
        for place in self._order():
            started = self._clock()
            try:
                generation = await self._tried(place, request, on_spent)
            except ModelError as error:
                if error.kind in NOT_FOR_ANOTHER:
                    raise
                errors.append(error)
                self._rest(place, error)
                continue
            self._announce(place, started, errors)
            return generation
        raise errors[0]

    def _order(self) -> list[int]:
        """The models that are not resting; all of them if every one is."""
        now = self._clock()
        places = range(len(self._models))
        awake = [p for p in places if p not in self._resting or self._resting[p].until <= now]
        return awake or list(places)

    async def _tried(self, place: int, request: Request, on_spent: OnSpent | None) -> Generation:
        patience = PATIENCE_SECONDS if place + 1 < len(self._models) else RETRY_AFTER_SECONDS_MAX
        tries = 1 if place in self._resting else TRIES_MAX  # one that failed lately has to show itself first
        if (closed := self._closed.get(place)) is not None and (left := closed.until - self._clock()) > 0:
            if left > patience:
                raise closed.still(self._clock())
            await self._sleep(left)
        for tried in range(1, tries + 1):
            try:
                return await self._models[place].generate(request, on_spent)
            except ModelError as error:
                pause = self._pause(tried, error)
                self._close(place, error)
                if not error.retryable or tried == tries or pause > patience:
                    raise
            await self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _close(self, place: int, error: ModelError) -> None:
        if error.retry_after_seconds:
            until = self._clock() + min(error.retry_after_seconds, CLOSED_SECONDS_MAX)
            self._closed[place] = _Closed(error=error, until=until)

    def _pause(self, tried: int, error: ModelError) -> float:
        backoff = BACKOFF_SECONDS * 2.0 ** (tried - 1) * (0.5 + self._jitter() / 2)
        return backoff if error.retry_after_seconds is None else error.retry_after_seconds + backoff * 0.1

    def _rest(self, place: int, error: ModelError) -> None:
        if error.kind in ABOUT_THE_REQUEST or len(self._models) == 1:
            return  # an only model is always asked, with all its tries
        seconds = REST_AFTER_REFUSAL_SECONDS if error.kind in FOR_OPERATOR_ONLY else REST_SECONDS
        now = self._clock()
        since = self._resting[place].since if place in self._resting else now
        self._resting[place] = _Rest(since=since, until=now + max(seconds, error.retry_after_seconds or 0.0))

    def _announce(self, place: int, started: float, errors: list[ModelError]) -> None:
        rest = self._resting.get(place)
        if rest is not None:
            if started < rest.since:
                return  # it was asked before it failed for others: no sign that it is back
            del self._resting[place]
        ill = [error for error in errors if error.kind not in ABOUT_THE_REQUEST]
        if place > self._announced and ill:
            self._notice(f"{ill[0].for_operator}; answering with {self._models[place].name}")
            self._announced = place
        elif place < self._announced:
            self._notice(f"{self._models[place].name} is back and answers again")
            self._announced = place
