"""What an action and all below it have cost: in all, and since a person's last word to it. Pure."""

from actors.entries import Briefed, Generated, Interjected, JobEnded, Resumed, Spent
from actors.transcript import Transcript
from gateway.llm.model import Usage


class Spending:
    """A price that is not known counts as nothing; the tokens are counted all the same."""

    def __init__(self) -> None:
        self.usd = self.usd_since_word = 0.0
        self.tokens = self.tokens_since_word = 0

    def apply(self, entry: object, before: Transcript) -> None:
        match entry:
            case Generated(usage=Usage() as usage) | Spent(usage=usage):
                self._add(usage)
            case Briefed() | Interjected() | Resumed():
                self._word()
            case JobEnded(job=job, command=command) if command is not None and before.jobs[job].kind == "question":
                self._word()
            case _:
                pass

    def _add(self, usage: Usage) -> None:
        usd, tokens = usage.usd or 0.0, usage.prompt_tokens + usage.completion_tokens
        self.usd += usd
        self.usd_since_word += usd
        self.tokens += tokens
        self.tokens_since_word += tokens

    def _word(self) -> None:
        self.usd_since_word, self.tokens_since_word = 0.0, 0
