"""Bounds for all programs of a sandbox together: cgroups, of version 2 or 1, where they can be made.

As root: below the top of the tree. As an ordinary user: beside the gateway's own, in a folder that the system has given
over to that user (systemd's Delegate=, with DelegateSubgroup= so that the folder itself holds no process: cgroups(7)).
The launcher makes and joins them; where that fails it goes on without, and each program is bounded by itself.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TypedDict

TOP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
NAME_CHARACTERS = 16
LIMITS = ("memory.max", "memory.limit_in_bytes")


class Group(TypedDict):
    """As the launcher reads it: a folder, what is written to its files, and where its controllers are switched on."""

    path: str
    limits: dict[str, str]
    enable: list[str]


def of(
    sandbox: Path, memory_mb: int, processes_max: int, *, root: bool, top: Path = TOP, own: Path = OWN
) -> list[Group]:
    """For the sandbox in that folder; none where this user, or root, can make none."""
    name = hashlib.sha256(str(sandbox).encode()).hexdigest()[:NAME_CHARACTERS]
    memory, processes = str(memory_mb << 20), str(processes_max)
    if (top / "cgroup.controllers").exists():
        limits = {"memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": processes}
        parents = [top, top / "frontdesk"] if root else _delegated(top, own)
        enable = [str(parent / "cgroup.subtree_control") for parent in parents]
        return [{"path": str(parents[-1] / name), "limits": limits, "enable": enable}] if parents else []
    if not root:
        return []
    return [
        {"path": str(top / kind / "frontdesk" / name), "limits": limits, "enable": []}
        for kind, limits in (("memory", {"memory.limit_in_bytes": memory}), ("pids", {"pids.max": processes}))
    ]


def hold(paths: tuple[str, ...]) -> bool:
    """Whether they are there and bound memory, while a sandbox runs."""
    return any((Path(path) / limit).exists() for path in paths for limit in LIMITS)


def sweep(top: Path = TOP) -> None:
    """Removes those that nothing runs in: of sandboxes that ended while no gateway looked. May take milliseconds."""
    for parent in (top / "frontdesk", top / "memory" / "frontdesk", top / "pids" / "frontdesk"):
        for left in parent.glob("[0-9a-f]" * NAME_CHARACTERS):
            with contextlib.suppress(OSError):  # busy, or somebody else's
                left.rmdir()


def mend() -> str:
    """For the operator, where they do not."""
    if os.geteuid() == 0:
        return "this machine, or the container, has no memory controller for new cgroups"
    return "have systemd run Frontdesk as a service with Delegate=yes and DelegateSubgroup=gateway"


def _delegated(top: Path, own: Path) -> list[Path]:
    """The folder above the gateway's own, if this user may make others there."""
    lines = own.read_text().splitlines() if own.exists() else []
    inside = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    above = (top / inside).parent
    files = [above / name for name in ("cgroup.procs", "cgroup.subtree_control")]
    free = (
        bool(inside) and all(os.access(file, os.W_OK) for file in (above, *files)) and not files[0].read_text().strip()
    )
    return [above] if free else []
