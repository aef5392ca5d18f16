"""`primitives.packages`: what code needs beside the packages that are there, where the operator allows it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from actors.sandbox.packages.install import NotInstalled
from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.package_names import is_allowed, wanted


def installing(allowed: Sequence[str], add: Callable[[Caller, str], Awaitable[list[str]]]) -> list[Primitive]:
    """None where nothing is allowed. `add` installs for the caller's sandbox; raises NotInstalled."""

    async def install(caller: Caller, arguments: dict[str, Any]) -> list[str]:
        try:
            name = wanted(str(arguments.get("name") or ""))
        except ValueError as why:
            raise PrimitiveError(str(why)) from why
        if not is_allowed(name, allowed):
            raise PrimitiveError(
                f"{name} may not be installed; these may: {', '.join(allowed)}. Whoever runs this assistant can add it "
                "to [sandbox] install"
            )
        try:
            return await add(caller, name)
        except NotInstalled as why:
            raise PrimitiveError(f"{name} was not installed: {why}") from why

    which = "any package" if "*" in allowed else ", ".join(allowed)
    return [
        Primitive(
            signature="packages.install(name: str) -> list[str]",
            doc=f"Install a package that can then be imported, with what it needs: {which}. Only such as come built "
            "(wheels). Returns what is new.",
            run=install,
            effect=False,
        )
    ] * bool(allowed)
