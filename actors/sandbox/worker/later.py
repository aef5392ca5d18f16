"""Modules that are loaded when somebody wants something of them, not when another module imports them.

`importlib.util.LazyLoader` loads at the second `import`, and two modules of asyncio import `ssl`; another thread sees
half of what it loads. Here the imports inside `put_off` load nothing, and all later ones do. Not here: which modules.
"""

import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

_own_loaders: dict[str, Any] = {}  # of those that are not loaded yet
_loading = threading.RLock()  # one for all: they may need each other


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Whoever is the first to import one of them in here gets a module that is empty until it is looked at."""
    _finder.names = names
    sys.meta_path.insert(0, _finder)
    try:
        yield
    finally:
        sys.meta_path.remove(_finder)
        _finder.names = ()


class _Finder:
    """Finds them where Python does, and is their loader too."""

    names: tuple[str, ...] = ()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.names or (spec := PathFinder.find_spec(name, path, target)) is None:
            return None
        _own_loaders[name] = spec.loader
        spec.loader = self  # type: ignore[assignment]  # as much of one as is needed
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = _own_loaders[module.__name__]
        module.__class__ = _Later


_finder = _Finder()


class _Later(types.ModuleType):
    def __getattribute__(self, attribute: str) -> Any:
        """An import looks at `__spec__`; who goes through all modules looks at the like of `__version__`."""
        plain = types.ModuleType.__getattribute__
        name = plain(self, "__name__")
        if not attribute.startswith("__") or (attribute == "__spec__" and name not in _finder.names):
            _load(self, name)
        return plain(self, attribute)


def _load(module: types.ModuleType, name: str) -> None:
    """Once. Another thread that comes meanwhile waits."""
    with _loading:
        if (loader := _own_loaders.pop(name, None)) is None:
            return
        try:
            loader.exec_module(module)
        except BaseException:  # perhaps an interrupt: whoever comes next begins anew
            _own_loaders[name] = loader
            raise
        module.__class__ = types.ModuleType
