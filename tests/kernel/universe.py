"""The product with one rule taken away: all of its modules loaded once more, one of them with a changed text.

Nothing of the real modules is touched; the tests' own modules of this folder are loaded anew as well, so that they run
on the changed product.
"""

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

ANEW = ("gateway", "brain", "actors", "mediums", "tests.kernel")


@dataclass(frozen=True)
class Change:
    """In `module`, `old` (which must be there, once) becomes `new`."""

    module: str
    old: str
    new: str


class _Changed(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, changes: list[Change]) -> None:
        super().__init__(name, path)
        self._changes = changes

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        text = self.get_data(path).decode()
        for change in self._changes:
            if text.count(change.old) != 1:
                raise LookupError(f"{fullname} has {text.count(change.old)} times: {change.old}")
            text = text.replace(change.old, change.new)
        code: CodeType = compile(text, path, "exec")
        return code


class _Finder:
    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        mine = [change for change in self._changes if change.module == name]
        found = importlib.machinery.PathFinder.find_spec(name, path) if mine else None
        if found is None or found.origin is None:
            return None
        return importlib.util.spec_from_file_location(name, found.origin, loader=_Changed(name, found.origin, mine))


@contextmanager
def changed(*changes: Change) -> Iterator[None]:
    """Inside, imports give the changed product; afterwards the real one is there as it was."""
    kept = {name: module for name, module in sys.modules.items() if _is_anew(name)}
    for name in kept:
        del sys.modules[name]
    finder = _Finder(changes)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_anew(name)]:
            del sys.modules[name]
        sys.modules.update(kept)


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def _is_anew(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in ANEW)
