"""Which packages may be asked for by which names. Pure."""

import re
from collections.abc import Iterable

# A name, extras, versions (packaging.python.org, dependency specifiers): no address, no path, no option of pip.
_VERSION = r"(?:===?|~=|!=|<=|>=|<|>)[A-Za-z0-9][A-Za-z0-9.*+!_-]{0,50}"
_WANTED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,80}[A-Za-z0-9])?)"
    rf"(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+){{0,9}}\])?(?:{_VERSION}(?:,{_VERSION}){{0,4}})?"
)


def plain(name: str) -> str:
    """As an index compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(text: str) -> str:
    """What is asked for, in the form that pip takes. Raises ValueError for anything but a name with its versions."""
    found = "".join(text.split())
    if not _WANTED.fullmatch(found):
        raise ValueError(f'"{text}" is no name of a package: write it as in "polars" or "polars==1.9"')
    return found


def is_allowed(asked: str, allowed: Iterable[str]) -> bool:
    """`asked` as `wanted` returns it. `*` allows all."""
    match = _WANTED.fullmatch(asked)
    return match is not None and any(one == "*" or plain(one) == plain(match["name"]) for one in allowed)
