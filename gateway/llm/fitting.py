"""A `Model` that is given any history: repairs it, makes it fit, and shrinks it when the provider says it is too long.

Here: when `healed` and `fitted` are applied, and how often. Not here: what is kept for good. The caller's history is
never changed; the next request starts from it again.
"""

import msgspec

from gateway.llm.attempt import estimated_prompt_tokens
from gateway.llm.history import fitted, healed
from gateway.llm.model import Generation, Model, ModelError, OnSpent, Request

SHRINKS_MAX = 3
SHRINK = 0.5  # of what was sent: the estimate was wrong by an unknown factor


class Fitting:
    """Asks `model` with at most about `budget_tokens` of prompt, tools included."""

    def __init__(self, model: Model, *, budget_tokens: int) -> None:
        self._model = model
        self._budget_tokens = budget_tokens

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        """See `Model.generate`. After context_too_long it is asked again with half, SHRINKS_MAX times, never unchanged;
        raises it when that does not help or nothing more can be left out."""
        request = msgspec.structs.replace(request, messages=healed(request.messages))
        tools = estimated_prompt_tokens(msgspec.structs.replace(request, messages=[]))
        budget = self._budget_tokens - tools
        for shrunk in range(SHRINKS_MAX + 1):
            asked = msgspec.structs.replace(request, messages=fitted(request.messages, budget))
            try:
                return await self._model.generate(asked, on_spent)
            except ModelError as error:
                if error.kind != "context_too_long" or shrunk == SHRINKS_MAX:
                    raise
                size = estimated_prompt_tokens(asked) - tools
                budget = int(min(size, budget) * SHRINK)
                if fitted(request.messages, budget) == asked.messages:
                    raise
        raise AssertionError("the last try returns or raises")
