"""The arguments of a call, checked: what a model wrote is not trusted. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from brain.tools import LISTS, Legal
from gateway.llm.model import RawCall
from gateway.record import whole_text

MAX_TEXT = 60_000  # a command must fit into one entry
_FROM_NOW = re.compile(
    r"\s*(?:in )?(\d+(?:\.\d+)?)\s*"
    r"(?:(s)(?:ec(?:ond)?s?)?|(m)(?:in(?:ute)?s?)?|(h)(?:(?:ou)?rs?)?|(d)(?:ays?)?|(w)(?:eeks?)?)\s*",
    re.IGNORECASE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class Refusal(Exception):
    """A call that is not taken; the text is for the model."""


def checked(call: RawCall, tool: Legal) -> dict[str, Any]:
    """The arguments, only those that the tool has, each of its type."""
    arguments = call.parsed()
    if arguments is None:
        why = "it was cut off" if not call.complete else "its arguments are no JSON object"
        raise Refusal(f"{why}; call {tool.name} again, whole")
    good: dict[str, Any] = {}
    for name in (*tool.required, *tool.optional):
        value = arguments.get(name)
        if name in LISTS and value is not None:
            good[name] = _list(name, value, tool)
            continue
        if value is None or (isinstance(value, str) and not value.strip()):
            if name in tool.required and not (name == "text" and arguments.get("attach")):
                raise Refusal(f"{tool.name} needs {name}")
            continue
        wanted = bool if name == "persist" else str
        if wanted is bool:
            value = {"true": True, "false": False}.get(str(value).lower(), value)
        if not isinstance(value, wanted):
            raise Refusal(f"{name} of {tool.name} must be a {'boolean' if wanted is bool else 'string'}")
        if isinstance(value, str) and value not in tool.choices.get(name, (value,)):
            value = value.strip("[] ").replace("\ufe0f", "")  # as it stands in the prompt; as phones write an emoji
        if name in tool.choices and value not in tool.choices[name]:
            raise Refusal(f"{name} must be one of {', '.join(tool.choices[name])}")
        good[name] = whole_text(value)[:MAX_TEXT] if isinstance(value, str) else value
    return good


def _list(name: str, value: Any, tool: Legal) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if isinstance(value, str) and value.lstrip().startswith("["):
        values = [one.strip(" \"'") for one in value.strip(" []").split(",")]
    if not (isinstance(values, list) and all(isinstance(one, str) for one in values)):
        raise Refusal(f'{name} of {tool.name} must be a list of references, as in ["f1"]')
    return tuple(one for one in values if one)


def time_of(arguments: dict[str, Any], name: str, now: datetime, farthest: timedelta) -> datetime | None:
    """An ISO time in the person's zone (that of `now`), or a time from now as in 90s, 10m, 2h, 1d."""
    text = arguments.get(name)
    if text is None:
        return None
    instant = now.astimezone(UTC)
    try:
        if found := _FROM_NOW.fullmatch(text):
            unit = found[found.lastindex or 0].lower()
            span = timedelta(seconds=min(float(found[1]) * _SECONDS[unit], 2 * farthest.total_seconds()))
            at = now + span if unit in "dw" else instant + span  # a day may be longer than its hours
        else:
            at = datetime.fromisoformat(text)
            at = at if at.tzinfo else at.replace(tzinfo=now.tzinfo)
        at = at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refusal(f"{name} is neither an ISO time nor like 10m or 2h: {text}") from None
    if not instant < at <= instant + farthest:
        raise Refusal(f"{name} must be after now ({now.isoformat(timespec='minutes')}) and within {farthest.days} days")
    return at
