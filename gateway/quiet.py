"""The hours in which a person wants to be left alone, as they are written: `22:00-07:00`. Pure."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.record import Record

_HOURS = re.compile(r"\s*([01]?\d|2[0-3]):([0-5]\d)\s*[-–]\s*([01]?\d|2[0-3]):([0-5]\d)\s*")


class QuietHours(Record, frozen=True, kw_only=True):
    """Minutes of the day; they may reach over midnight."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.begin // 60:02}:{self.begin % 60:02}-{self.end // 60:02}:{self.end % 60:02}"

    def until(self, moment: datetime, zone: ZoneInfo) -> datetime | None:
        """When they end, if `moment` is in them."""
        local = moment.astimezone(zone)
        minute = local.hour * 60 + local.minute
        over_midnight = self.begin > self.end
        inside = (minute >= self.begin or minute < self.end) if over_midnight else self.begin <= minute < self.end
        if not inside:
            return None
        day = local.date() + timedelta(days=1 if over_midnight and minute >= self.begin else 0)
        return datetime(day.year, day.month, day.day, self.end // 60, self.end % 60, tzinfo=zone)


def quiet_hours(text: str) -> QuietHours:
    """Raises ValueError."""
    found = _HOURS.fullmatch(text)
    hours, minutes, to_hours, to_minutes = (int(part) for part in found.groups()) if found else (0, 0, 0, 0)
    made = QuietHours(begin=hours * 60 + minutes, end=to_hours * 60 + to_minutes)
    if made.begin == made.end:
        raise ValueError(f'"{text}" are no hours: write them as in "22:00-07:00"')
    return made
