"""Whether a model fails in the same way again and again: an error of its code, a refusal, silence. Pure."""

import re
from collections import deque

from actors.entries import CallClosed, Generated, Interjected, JobEnded, Nudged
from actors.transcript import Transcript

SAME_MAX = 3
NOTHING = "it answered nothing"
CUT = "its answer was cut off"
NOT_RUN = "Not run: "
_NUMBER = re.compile(r"\d+")


class Step:
    """What came of one generation."""

    def __init__(self, failures: list[str] | None = None, *, went_well: bool = False) -> None:
        self.failures = failures or []
        self.went_well = went_well


class Struggle:
    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=SAME_MAX)

    def freeze(self) -> list[tuple[list[str], bool]]:
        return [(step.failures, step.went_well) for step in self._steps]

    @classmethod
    def thawed(cls, kept: list[tuple[list[str], bool]]) -> "Struggle":
        struggle = cls()
        struggle._steps.extend(Step(failures, went_well=went_well) for failures, went_well in kept)
        return struggle

    @property
    def stuck(self) -> str | None:
        """What has failed SAME_MAX times in a row, with nothing else between; its last words."""
        steps = self._steps
        if len(steps) < SAME_MAX or any(step.went_well or not step.failures for step in steps):
            return None
        same = {_NUMBER.sub("#", failure) for failure in steps[0].failures}
        for step in steps:
            same &= {_NUMBER.sub("#", failure) for failure in step.failures}
        return steps[-1].failures[-1] if same else None

    def apply(self, entry: object, before: Transcript) -> None:
        match entry:
            case Generated():
                self._steps.append(Step())
            case Nudged(empty=empty, cut=cut) if empty or cut:
                self._steps.append(Step([NOTHING if empty else CUT]))
            case CallClosed(text=text) if text.startswith(NOT_RUN):
                self._fail(text)
            case JobEnded(job=job, command=command, failed=failed, text=text):
                if command is not None:
                    self._steps.clear()
                elif failed:
                    self._fail(text)
                elif before.jobs[job].kind in ("cell", "child"):
                    self._succeed()
            case Interjected():
                self._steps.clear()
            case _:
                pass

    def _fail(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if self._steps and lines:
            self._steps[-1].failures.append(lines[-1])

    def _succeed(self) -> None:
        if self._steps:
            self._steps[-1].went_well = True
