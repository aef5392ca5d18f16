"""How code of actors runs here, decided at start: isolated, bare because the operator allowed it, or not at all."""

import sys

import msgspec

from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.probe import probe
from actors.sandbox.isolation.words import Isolation, Unavailable
from gateway.settings import SandboxSettings


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """`missing` says why code cannot be isolated, None where it is."""

    isolation: Isolation
    missing: Unavailable | None
    allowed: bool
    network: str

    @property
    def refused(self) -> str:
        """Why code does not run, for the model to tell; "" when it runs."""
        if self.missing is None or self.allowed:
            return ""
        return (
            f"code does not run here, because it cannot be isolated. {self.missing}. Tell the person that whoever runs "
            "this assistant must do that, or set [sandbox] allow_unisolated = true and bear the risk"
        )

    @property
    def signs_requests(self) -> bool:
        """Whether granted secrets are used for the code: only a proxy can."""
        return self.missing is None and self.network == "proxy"

    @property
    def careful(self) -> list[str]:
        """For whoever starts the gateway."""
        if self.refused:
            return [f"Code of actors does not run: {self.missing}."]
        if self.missing is not None:
            return [
                "Careful: code of actors runs on this machine without isolation (sandbox.allow_unisolated): "
                f"it can read and change what you can. {self.missing}."
            ]
        if self.network == "host":
            return ["Careful: code of actors reaches all that this machine can reach (sandbox.network)."]
        return []

    @property
    def signs(self) -> list[str]:
        """The same in a few words."""
        if self.refused:
            return ["code does not run"]
        return ["code runs without isolation"] if self.missing is not None else []

    @property
    def tag(self) -> str:
        """For every result of code."""
        return "" if self.missing is None else " (without isolation)"


async def choose(settings: SandboxSettings) -> Choice:
    """Tries it for real, once in a process."""
    python = str(settings.python) if settings.python else None
    found = await probe(python, network=settings.network, memory_mb=settings.memory_mb, disk_mb=settings.disk_mb)
    missing = found if isinstance(found, Unavailable) else None
    isolation = Bare(python or sys.executable) if isinstance(found, Unavailable) else found
    return Choice(isolation=isolation, missing=missing, allowed=settings.allow_unisolated, network=settings.network)
