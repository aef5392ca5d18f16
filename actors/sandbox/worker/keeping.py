"""The variables of a stateful session on disk, one by one: what is kept of it while nothing of it runs.

    <folder>/<name>.module    the name of a module, which is imported again
    <folder>/<name>.py        the source of a function or class that a cell has defined, which is run again
    <folder>/<name>.pickle    any other value: by cloudpickle where the interpreter has it, else by pickle

Written and read inside the sandbox only: unpickling runs code. What cannot be kept is named, with the reason.
"""

import ast
import contextlib
import importlib
import os
import pickle
import shutil
import time
import types
from pathlib import Path
from typing import Any

from .definitions import Definitions
from .output import shorten
from .tracebacks import remember
from .values import kind_of
from .wire import clean

FOLDER = ".session"
VALUE_BYTES_MAX = 64 << 20
ALL_BYTES_MAX = 512 << 20
WHY_CHARACTERS = 160
TOO_LATE = "saving the others took all the time there was"

Lost = tuple[str, str, str]  # name, kind, why


def place(workspace: str) -> Path:
    return Path(workspace) / FOLDER


def save(
    names: dict[str, Any], definitions: Definitions, folder: Path, seconds: float
) -> tuple[list[tuple[str, str]], list[Lost]]:
    """(name and kind of what is kept, what is lost). Nothing is begun after that many seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kept: list[tuple[str, str]] = []
    lost: list[Lost] = []
    deadline, room = time.monotonic() + seconds, ALL_BYTES_MAX
    for name, value in names.items():
        kind = kind_of(value)
        try:
            room -= _write(folder, name, value, definitions, room if time.monotonic() < deadline else -1)
            kept.append((name, kind))
        except BaseException as error:  # noqa: BLE001 - the code's own objects say how they are pickled
            lost.append((name, kind, _why(error)))
    return kept, lost


def load(names: dict[str, Any], definitions: Definitions, folder: Path) -> tuple[list[str], list[Lost]]:
    """(what is there again, what is lost). Again harmless while no cell has run since."""
    found = {path.stem: path for path in sorted(folder.glob("*"))} if folder.is_dir() else {}
    by_kind = {kind: [path for path in found.values() if path.suffix == kind] for kind in (".module", ".py", ".pickle")}
    failed: dict[str, str] = {}
    for path in [*by_kind[".module"], *by_kind[".py"], *by_kind[".pickle"]]:
        _try(path, names, definitions, failed)
    for path in [path for path in by_kind[".py"] if path.stem in failed]:  # it needed a value, or another definition
        _try(path, names, definitions, failed)
    return [name for name in found if name not in failed], [
        (name, found[name].suffix[1:], why) for name, why in failed.items()
    ]


def _write(folder: Path, name: str, value: Any, definitions: Definitions, room: int) -> int:
    if room < 0:
        raise TimeoutError(TOO_LATE)
    if not name.isidentifier():
        raise ValueError("its name is no identifier")
    if isinstance(value, types.ModuleType):
        kind, data = "module", value.__name__.encode()
    elif (source := definitions.source(name, value)) is not None:
        kind, data = "py", source.encode()
    else:
        kind, data = "pickle", _pickled(value)
    if len(data) > min(room, VALUE_BYTES_MAX):
        raise ValueError(f"it takes {len(data) >> 20} MB, more than there is room for")
    fresh = folder / f"{name}.{kind}.new"
    fresh.write_bytes(data)
    fresh.replace(folder / f"{name}.{kind}")
    return len(data)


def _pickled(value: Any) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":
            raise ValueError("a lambda cannot be kept; a function with a name can") from None
        return pickle.dumps(value)
    data: bytes = cloudpickle.dumps(value)
    return data


def _try(path: Path, names: dict[str, Any], definitions: Definitions, failed: dict[str, str]) -> None:
    name = path.stem
    failed.pop(name, None)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            _read(path, name, names, definitions)
    except BaseException as error:  # noqa: BLE001 - whatever the code's own objects do when they come back
        failed[name] = _why(error)


def _read(path: Path, name: str, names: dict[str, Any], definitions: Definitions) -> None:
    data = path.read_bytes()
    if path.suffix == ".module":
        names[name] = importlib.import_module(data.decode())
    elif path.suffix == ".py":
        source, cell = data.decode(), f"kept {name}"
        remember(cell, source)
        tree = ast.parse(source)
        exec(compile(source, f"<cell {cell}>", "exec", dont_inherit=True), names)  # noqa: S102 - as the cell did
        definitions.note(tree, source)
    else:
        names[name] = pickle.loads(data)  # noqa: S301 - in the sandbox, what the sandbox has written


def _why(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return clean(shorten(text, WHY_CHARACTERS))
