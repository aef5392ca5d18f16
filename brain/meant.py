"""Which calls a model means: by a tool's name as it stands, or nearly; written where it should have called. Pure."""

import re
from collections.abc import Container

from brain.tools import ABOUT, Legal
from gateway.llm.model import RawCall
from gateway.llm.written_calls import written_calls

# None goes on over another that begins: a model that repeats itself may open thousands, and close none.
_FENCED = re.compile(
    r"```(?:\w+)?\s*[\[{](?:(?!```\w*\s*[\[{]).)*?[\]}]\s*```|<(tool_calls?|function_calls)>(?:(?!<\1>).)*?</\1>"
    r"|<function=(?:(?!<function=).)*?</function>|<invoke (?:(?!<invoke ).)*?</invoke>|```tool_code.*?```"
    r"|(?:\[TOOL_CALLS\]|<\|(?:python_tag|tool_calls?_)|<｜tool▁call).*",
    re.DOTALL,
)
_STEERING = re.compile(rf"(?:{'|'.join(ABOUT)}|answer_clarification)(?:_\w+__a\d+\w*)?$|(?:act|recall|remind|react)$")


def found_in_text(text: str, by_name: dict[str, Legal], *, whole: bool) -> tuple[str, tuple[RawCall, ...]]:
    """What is said, and the calls that stand in the text: as all of it, or fenced off from what is said. A call of what
    is no tool now is one too, to be refused and not shown."""
    if alone := written_calls(text, _Callable(by_name), whole=whole):
        return "", alone
    calls: list[RawCall] = []
    for found in _FENCED.finditer(text):
        calls += written_calls(found[0], by_name, whole=whole)
    rest = _FENCED.sub(lambda found: "" if written_calls(found[0], by_name) else found[0], text)
    return rest.strip(), tuple(calls)


class _Callable(Container[str]):
    """The names of tools, now or at another time."""

    def __init__(self, now: dict[str, Legal]) -> None:
        self._now = now

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (tool_named(name, self._now) is not None or _STEERING.match(name) is not None)


def tool_named(name: str, by_name: dict[str, Legal]) -> Legal | None:
    """Also without the reference behind it, where that leaves no doubt."""
    longer = [one for one in by_name if one.startswith(f"{name}__")]
    return by_name.get(name) or (by_name[longer[0]] if len(longer) == 1 else None)
