"""What an action and all below it have cost: in all, and since a person's last word to it. Pure."""

from actors.entries import Briefed, Generated, Interjected, JobEnded, Resumed, Spent
from actors.transcript import Transcript
from gateway.llm.model import Usage
from gateway.record import Record


class SpendingFrozen(Record, frozen=True, kw_only=True):
    """Its part of a snapshot, name by name."""

    usd: float
    usd_since_word: float
    tokens: int
    tokens_since_word: int
    below: dict[str, tuple[float, int]]


class Spending:
    """A price that is not known counts as nothing; the tokens are counted all the same."""

    def __init__(self) -> None:
        self.usd = self.usd_since_word = 0.0
        self.tokens = self.tokens_since_word = 0
        self._below: dict[str, tuple[float, int]] = {}  # child -> what was heard of its cost

    def freeze(self) -> SpendingFrozen:
        return SpendingFrozen(
            usd=self.usd,
            usd_since_word=self.usd_since_word,
            tokens=self.tokens,
            tokens_since_word=self.tokens_since_word,
            below=self._below,
        )

    @classmethod
    def thawed(cls, kept: SpendingFrozen) -> "Spending":
        spending = cls()
        spending.usd, spending.usd_since_word = kept.usd, kept.usd_since_word
        spending.tokens, spending.tokens_since_word = kept.tokens, kept.tokens_since_word
        spending._below = kept.below
        return spending

    def apply(self, entry: object, before: Transcript) -> None:
        match entry:
            case Generated(usage=Usage() as usage) | Spent(usage=usage, child=""):
                self._add(usage.usd or 0.0, usage.prompt_tokens + usage.completion_tokens)
            case Spent(usage=usage, child=child):
                self._add_below(child, usage.usd or 0.0, usage.prompt_tokens + usage.completion_tokens)
            case JobEnded(job=job) if before.jobs[job].kind == "child":  # not all was heard of, if it crashed meanwhile
                usd, tokens = self._below.pop(job, (0.0, 0))
                self._add(max(0.0, entry.usd - usd), max(0, entry.tokens - tokens))
            case Briefed() | Interjected() | Resumed():
                self._word()
            case JobEnded(job=job, command=command) if command is not None and before.jobs[job].kind == "question":
                self._word()
            case _:
                pass

    def _add_below(self, child: str, usd: float, tokens: int) -> None:
        usd_before, tokens_before = self._below.get(child, (0.0, 0))
        self._below[child] = usd_before + usd, tokens_before + tokens
        self._add(usd, tokens)

    def _add(self, usd: float, tokens: int) -> None:
        self.usd += usd
        self.usd_since_word += usd
        self.tokens += tokens
        self.tokens_since_word += tokens

    def _word(self) -> None:
        self.usd_since_word, self.tokens_since_word = 0.0, 0
