"""No isolation: the first process is a plain child, of the gateway's own user. For whoever has said that it may be."""

import os
import sys
from pathlib import Path

from actors.sandbox.folder import WORKER, Folder
from actors.sandbox.isolation.words import Launch, Tier


class Bare:
    tier: Tier = "bare"

    def __init__(
        self, python: str = sys.executable, wrapper: tuple[str, ...] = (), packages: Path | None = None
    ) -> None:
        """`wrapper` is put before the command; `packages` can be imported."""
        self.python = python
        self._wrapper, self._packages = wrapper, packages

    def with_packages(self, packages: Path | None) -> "Bare":
        return Bare(self.python, self._wrapper, packages)

    def launch(self, folder: Folder) -> Launch:
        return Launch(
            command=(*self._wrapper, self.python, "-I", str(WORKER / "__main__.py")),
            environment={"PATH": path_of(self.python), "HOME": str(folder.workspace)},
            run=str(folder.run),
            workspace=str(folder.workspace),
            namespaced=False,
            limits={"CORE": 0},
            packages=tuple(str(path) for path in (folder.packages, self._packages) if path),
        )


def path_of(python: str) -> str:
    """What the code has as PATH: beside its interpreter are the programs that belong to it."""
    return os.pathsep.join(dict.fromkeys((str(Path(python).parent), "/usr/local/bin", "/usr/bin", "/bin")))
