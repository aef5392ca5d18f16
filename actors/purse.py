"""What the generations under way in a tree are expected to cost: reserved at its root before each of them.

So several at once exceed a budget no further than one alone does. In memory only: after a crash none is under way.
"""

from actors.spending import Spending
from actors.workshop import Limits
from gateway.llm.model import Usage

DIGITS = 9  # of a dollar: what adding and taking away leaves beyond them is nothing


class Purse:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._under_way: dict[str, tuple[float, int]] = {}  # action -> what it is expected to cost
        self._unheard: tuple[float, int] = (0.0, 0)  # spent below, and not yet in the root's log
        self._usual: tuple[float, int] = (0.0, 0)  # of the last generation in the tree
        self.refused = False

    def reserve(self, key: str, spending: Spending) -> bool:
        """False while those under way may use up what is left; the root, which has heard of all, says when it is used
        up. `spending` is the root's."""
        usd = spending.usd_since_word + self._unheard[0] + sum(usd for usd, _ in self._under_way.values())
        tokens = spending.tokens_since_word + self._unheard[1] + sum(n for _, n in self._under_way.values())
        waits = bool(self._under_way or any(self._unheard))
        if waits and (round(usd, DIGITS) >= self._limits.max_usd or tokens >= self._limits.max_tokens):
            self.refused = True
            return False
        self._under_way[key] = self._usual
        return True

    def release(self, key: str, usage: Usage | None, *, below: bool) -> None:
        """It has ended. What one `below` has cost the root's log is yet to hear."""
        self._under_way.pop(key, None)
        if usage is not None:
            self._usual = _cost(usage)
        if usage is not None and below:
            self._unheard = self._unheard[0] + self._usual[0], self._unheard[1] + self._usual[1]

    def heard(self, usage: Usage) -> None:
        usd, tokens = _cost(usage)
        self._unheard = max(0.0, self._unheard[0] - usd), max(0, self._unheard[1] - tokens)

    def forget(self) -> None:
        """One that failed tells its cost with its end, and not before."""
        self._unheard = (0.0, 0)


def _cost(usage: Usage) -> tuple[float, int]:
    return usage.usd or 0.0, usage.prompt_tokens + usage.completion_tokens
