"""The rehearsal model: rules, not a language model, behind the same protocol, prompt and tools as a real one.

It exists so that the product can be tried without an account, and says what it is. It knows sales figures and nothing
else; every number it tells was computed by Python in an actor's sandbox.
"""

from collections.abc import Callable

from frontdesk.rehearsal import desk, worker
from gateway.llm.model import Generation, OnSpent, Request

NAME = "rehearsal (rules, not a language model)"


class RehearsalModel:
    """Deterministic: the same request has the same answer."""

    name = NAME

    def __init__(self, rules: Callable[[Request], Generation]) -> None:
        self._rules = rules

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return self._rules(request)


def desk_model() -> RehearsalModel:
    return RehearsalModel(desk.decide)


def worker_model(pace_seconds: float) -> RehearsalModel:
    """`pace_seconds` is how long its code rests at each step, so that there is a middle to interrupt."""
    return RehearsalModel(lambda request: worker.decide(request, pace_seconds))
