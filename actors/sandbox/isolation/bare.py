"""No isolation: the first process is a plain child, of the gateway's own user. For whoever has said that it may be."""

import os
import sys
from pathlib import Path

from actors.sandbox.folder import WORKER, Folder
from actors.sandbox.isolation.words import Launch, Tier


class Bare:
    tier: Tier = "bare"

    def __init__(self, python: str = sys.executable, wrapper: tuple[str, ...] = ()) -> None:
        """`wrapper` is put before the command."""
        self._python, self._wrapper = python, wrapper

    def launch(self, folder: Folder) -> Launch:
        return Launch(
            command=(*self._wrapper, self._python, "-I", str(WORKER / "__main__.py")),
            environment={"PATH": path_of(self._python), "HOME": str(folder.workspace)},
            run=str(folder.run),
            workspace=str(folder.workspace),
            namespaced=False,
            limits={"CORE": 0},
        )


def path_of(python: str) -> str:
    """What the code has as PATH: beside its interpreter are the programs that belong to it."""
    return os.pathsep.join(dict.fromkeys((str(Path(python).parent), "/usr/local/bin", "/usr/bin", "/bin")))
