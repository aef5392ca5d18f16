"""What the rules understand of plain English about sales figures. Pure."""

import re

from gateway.record import Record

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_THANKS = re.compile(
    r"^\W*((great|perfect|ok|okay|super|cool|nice)\W+)?(many )?(thanks|thank you|thx|ta|cheers)\b[^?]*$", re.I
)
_GREETING = re.compile(r"^(/start|\W*(hi|hello|hey|good (morning|afternoon|evening)))\b", re.I)
_PROGRESS = re.compile(
    r"\b(how far|how is it going|how's it going|status|progress|are you done|what are you doing|still there)\b", re.I
)
_ASKS = re.compile(r"^\W*ask (it|the worker|them)\b", re.I)
_STEER = re.compile(r"^\W*(please )?(stop|cancel|pause|hold|resume|go on|continue|carry on)\b", re.I)
_MAIL = re.compile(r"\b(?:[Ss]end|[Mm]ail|[Ee]mail|[Ff]orward)\b.*?\bto ([A-Z][\w'-]+(?: [A-Z][\w'-]+)?|\w+)")
_WORK = re.compile(
    r"\b(total|totals|sum|average|mean|highest|lowest|best|worst|how much|how many|figures|sales)\b", re.I
)
_CORRECTION = re.compile(r"^\W*(no\b|not\b|net\b|gross\b|instead|actually|i meant|only|without|by )", re.I)
_FOLLOW_UP = re.compile(r"\b(now|next|also|then|same|again|do)\b", re.I)

VERBS = {
    "stop": "stop",
    "cancel": "stop",
    "pause": "pause",
    "hold": "pause",
    "resume": "resume",
    "go on": "resume",
    "continue": "resume",
    "carry on": "resume",
}


class Spec(Record, frozen=True, kw_only=True):
    """A figure that can be computed. `month` is 1 to 12, None for all."""

    month: int | None = None
    measure: str = "gross"
    group: str = "region"
    stat: str = "total"


def is_thanks(text: str) -> bool:
    return bool(_THANKS.match(text))


def is_greeting(text: str) -> bool:
    return bool(_GREETING.match(text))


def asks_for_progress(text: str) -> bool:
    return bool(_PROGRESS.search(text))


def wants_the_worker_asked(text: str) -> bool:
    return bool(_ASKS.match(text))


def steering(text: str) -> str | None:
    """stop, pause or resume, where that is what a text says."""
    found = _STEER.match(text)
    return VERBS[found[2].lower()] if found and not named_spec(text) else None


def is_next(text: str) -> bool:
    """A further piece of work, rather than a change to the one that is not done."""
    return not is_correction(text) and bool(_FOLLOW_UP.search(text))


def recipient(text: str) -> str | None:
    found = _MAIL.search(text)
    return found[1].strip() if found else None


def is_work(text: str) -> bool:
    return bool(_WORK.search(text)) or (bool(named_spec(text)) and bool(_FOLLOW_UP.search(text)))


def is_correction(text: str) -> bool:
    return bool(_CORRECTION.match(text)) and bool(named_spec(text))


def is_follow_up(text: str) -> bool:
    return recipient(text) is not None or bool(named_spec(text))


def named_spec(text: str) -> dict[str, int | str]:
    """The parts of a figure that a text names."""
    words = re.findall(r"[a-z]+", text.lower())
    found: dict[str, int | str] = {}
    for n, month in enumerate(MONTHS, 1):
        if month in words and not (month == "may" and "may" in words and not re.search(r"\bMay\b", text)):
            found["month"] = n
    said = re.sub(r"\bnot (the )?(net|gross)\b", "", text.lower())
    for measure in ("net", "gross"):
        if re.search(rf"\b{measure}\b", said):
            found["measure"] = measure
    for group in ("region", "product"):
        if re.search(rf"\b{group}s?\b", text.lower()):
            found["group"] = group
    if re.search(r"\b(average|mean)\b", text.lower()):
        found["stat"] = "average"
    elif re.search(r"\b(total|totals|sum)\b", text.lower()):
        found["stat"] = "total"
    return found


def figure(texts: list[str]) -> Spec:
    """What is wanted after all that was said, the later words counting more."""
    parts: dict[str, int | str] = {}
    for text in texts:
        parts |= named_spec(text)
    return Spec(**parts)  # type: ignore[arg-type]


def title(spec: Spec) -> str:
    month = MONTHS[spec.month - 1].capitalize() if spec.month else "all months"
    return f"{spec.stat} {spec.measure} for {month} by {spec.group}"
