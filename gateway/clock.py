"""The two clocks: wall time for people, and a clock for deadlines that goes on while the machine sleeps."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
