"""All that a cell has written, in a file of the workspace, once it is more than a model is shown at once.

    .output/cell3.txt    what it has printed
    .output/cell3.value  the value of its last expression

Only the newest few are kept, each up to a bound. A file that cannot be written is done without: the output itself is
shown, shortened.
"""

import contextlib
from pathlib import Path
from typing import BinaryIO

FOLDER = ".output"
SHOWN_CHARACTERS = 16_000
FILE_BYTES = 16 << 20
FILES_MAX = 8


class WholeOutput:
    """Of one cell."""

    def __init__(self, workspace: str, cell: str) -> None:
        self._path = Path(workspace, FOLDER, f"{cell}.txt")
        self._few: list[str] = []  # the text so far, until it is too much to be shown
        self._length = 0
        self._file: BinaryIO | None = None
        self._left = FILE_BYTES

    def write(self, text: str) -> None:
        if self._left <= 0:
            return
        if self._file is None:
            self._few.append(text)
            self._length += len(text)
            if self._length <= SHOWN_CHARACTERS:
                return
            text = "".join(self._few)
        try:
            self._file = self._file or _new(self._path)
            data = text.encode(errors="replace")[: self._left]
            self._file.write(data)
            self._left -= len(data)
        except OSError:
            self._left = 0
        if self._left <= 0:
            self.close()

    def close(self) -> None:
        self._left = 0
        self._few.clear()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def kept(workspace: str, name: str, text: str) -> str:
    """Where it is then, for the model; "" where it cannot be written."""
    try:
        with _new(Path(workspace, FOLDER, name)) as file:
            file.write(text.encode(errors="replace")[:FILE_BYTES])
    except OSError:
        return ""
    return where(name)


def where(name: str) -> str:
    return f"\n(All of it, up to {FILE_BYTES >> 20} MB: {FOLDER}/{name})"


def _new(path: Path) -> BinaryIO:
    path.parent.mkdir(exist_ok=True)
    for old in sorted(path.parent.iterdir(), key=lambda one: one.lstat().st_mtime_ns)[: -FILES_MAX + 1]:
        old.unlink()  # a link, if the code made one: not what it points to
    return path.open("wb", buffering=0)
