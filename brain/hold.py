"""When a commit is held: only after a message that breaks off. A whole message is never held. Pure."""

from collections.abc import Mapping

from brain.parts import Heard
from gateway.events import MessageReceived
from gateway.record import Record

SPLIT_UNITS = 4000  # clients split a long paste near 4096 UTF-16 units
ENDS = (".", "!", "?", "…", "。", "！", "？", ":)", "```")


class Pace(Record, frozen=True, kw_only=True):
    """How patient a turn is. After `max_restarts` or `turn_seconds` a generation runs to its end.

    A model that gives nothing is asked again after `outage_seconds`, then after twice that, up to
    `longest_outage_seconds`. Work that takes `card_seconds` gets a status card, whose small changes wait for
    `card_rest_seconds`; other progress is gathered for `progress_seconds`. Who wrote within `awake_seconds` is told
    things in quiet hours too. A conversation in which nothing happens leaves the memory `closes_after_seconds` later,
    or twice that.
    """

    quiet_seconds: float = 1.0
    burst_seconds: float = 3.0
    turn_seconds: float = 10.0
    max_restarts: int = 3
    outage_seconds: float = 5.0
    closes_after_seconds: float = 900.0
    longest_outage_seconds: float = 300.0
    card_seconds: float = 10.0
    card_rest_seconds: float = 5.0
    progress_seconds: float = 2.0
    awake_seconds: float = 1800.0


Voice = tuple[object, object]  # who, and where


def voice_of(message: MessageReceived) -> Voice:
    return message.author.address, message.route.room


def quiet_in_seconds(
    heard: tuple[Heard, ...], arrived: Mapping[str, float], before: Mapping[Voice, float], now: float, pace: Pace
) -> float:
    """How long the commit still waits. `arrived` and `now` are seconds on one monotonic clock; `before` is when each
    said the last of what is decided on already."""
    voices: dict[Voice, list[MessageReceived]] = {}
    for item in heard:
        if isinstance(item.fact, MessageReceived) and item.fact.identity in arrived:
            voices.setdefault(voice_of(item.fact), []).append(item.fact)
    waits = [
        arrived[said[-1].identity]
        for voice, said in voices.items()
        if _breaks_off(said, arrived, before.get(voice), pace)
    ]
    return max(waits) + pace.quiet_seconds - now if waits else 0.0


def _breaks_off(said: list[MessageReceived], arrived: Mapping[str, float], before: float | None, pace: Pace) -> bool:
    """What one person said in one place: the platform split it or tells it in pieces, or it comes in a burst and does
    not end as a sentence ends."""
    last = said[-1]
    if last.album is not None:
        return True
    if last.text.rstrip().endswith(ENDS):
        return False
    if len(last.text.encode("utf-16-le", "surrogatepass")) // 2 >= SPLIT_UNITS:
        return True
    if len(said) > 1:
        before = arrived[said[-2].identity]
    return before is not None and arrived[last.identity] - before <= pace.burst_seconds
