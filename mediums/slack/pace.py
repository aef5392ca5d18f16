"""How long things may take on the way to Slack, and how long to wait before the next try. Pure but for the jitter."""

import random

from gateway.record import Record
from mediums.slack.failures import Failure, Refusal, wait_seconds

IN_A_ROW = 3  # answers that ask for no wait at all


class Pace(Record, frozen=True, kw_only=True):
    """In seconds. The defaults are right for slack.com."""

    call_seconds: float = 15.0
    lookup_seconds: float = 1.0  # of a name; an event is to be confirmed within three seconds
    greeting_seconds: float = 10.0
    ping_seconds: float = 5.0
    closing_seconds: float = 3.0
    settled_seconds: float = 20.0  # a connection that lived so long begins the back-off anew
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0
    publishing_seconds: float = 10.0

    def pause_seconds(self, failed: int, failure: Failure) -> float:
        """Before the next try, after `failed` in a row: as long as Slack asks; the longest where somebody must mend
        something first; else doubling, with jitter."""
        asked = failure.retry_after_seconds if isinstance(failure, Refusal) else None
        if asked is not None and (asked > 0 or failed < IN_A_ROW):
            return asked
        if asked is None and wait_seconds(failure) is not None:
            return self.longest_pause_seconds
        grown: float = self.first_pause_seconds * 2 ** min(max(failed - 1, 0), 16)
        return min(grown, self.longest_pause_seconds) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret
