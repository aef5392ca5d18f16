"""How many mails of one thread or one person are taken within an hour: what ends two robots that answer each other.

Nothing is lost: what is over it waits in the mailbox until its time comes. The count is kept in memory; a restart
begins anew, which costs one more hour's mails at most.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

SECONDS = 3600.0
KEPT = 5000  # threads and people; of the longest silent ones the count is forgotten


class Budget:
    def __init__(self, of_a_thread: int, of_a_person: int, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = {"thread": of_a_thread, "person": of_a_person}
        self._now = now
        self._taken: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def wait_seconds(self, thread: str, person: str) -> float:
        """0 when one more may be taken now, which is then counted; else how long it must wait."""
        now = self._now()
        counts = [(kind, self._times(kind, key)) for kind, key in (("thread", thread), ("person", person))]
        waits = [times[0] + SECONDS - now for kind, times in counts if self._recent(times, now) >= self._limits[kind]]
        if waits:
            return max(waits)
        for _, times in counts:
            times.append(now)
        return 0.0

    def _times(self, kind: str, key: str) -> deque[float]:
        times = self._taken.setdefault((kind, key), deque())
        self._taken.move_to_end((kind, key))
        if len(self._taken) > KEPT:
            self._taken.popitem(last=False)
        return times

    def _recent(self, times: deque[float], now: float) -> int:
        while times and times[0] <= now - SECONDS:
            times.popleft()
        return len(times)
