"""Which sandboxes run on this machine, whoever started them."""

from pathlib import Path

from actors.sandbox import processes
from actors.sandbox.folder import Folder


def running(parent: Path) -> list[str]:
    """The names of the folders in `parent` whose sandbox lives. Looks at /proc: call it in a thread."""
    if not parent.is_dir():
        return []
    births = ((folder.name, Folder(folder).zygote()) for folder in parent.iterdir() if folder.is_dir())
    return sorted(name for name, birth in births if birth and processes.is_running(birth.pid, birth.started))
