"""The words of an isolation: how the first process of a sandbox is started, and what that one sees. No I/O."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from actors.sandbox.folder import Folder
from actors.sandbox.quota import Quota

Tier = Literal["hardened", "bare"]
Network = Literal["none", "proxy", "host"]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """`run`, `workspace` and `python` are paths as the first process sees them.

    `namespaced`: the command puts it in a pid namespace of its own, and writes its number to file descriptor 3 as
    bubblewrap does. `limits` are names of the module `resource`, without `RLIMIT_`; the first process sets them.
    `cgroups` are folders that the command makes, and that are left when all is over. `relay`: where in there a proxy
    of the host can be met, None without one. `quota`: what its folders may grow to, None where nobody looks.
    `packages`: folders, as seen inside, from which code can import.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    run: str
    workspace: str
    namespaced: bool
    limits: Mapping[str, int]
    cgroups: tuple[str, ...] = ()
    relay: str | None = None
    quota: Quota | None = None
    packages: tuple[str, ...] = ()


class Isolation(Protocol):
    @property
    def tier(self) -> Tier: ...

    @property
    def python(self) -> str:
        """The interpreter that runs the code."""
        ...

    def with_packages(self, packages: Path | None) -> "Isolation":
        """The same, with a folder from which all code can import."""
        ...

    def launch(self, folder: Folder) -> Launch: ...


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """Code cannot be isolated here. `why` and `mend` are sentences for an operator, without a full stop."""

    why: str
    mend: str

    def __str__(self) -> str:
        return f"{self.why}: {self.mend}"
