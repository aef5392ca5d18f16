"""All that a cell has written, in a file of the workspace, once it is more than a model is shown at once.

    .output/cell3.txt    what it has printed
    .output/cell3.value  the value of its last expression

Only the newest few are kept, each up to a bound. A file that cannot be written is done without: the output itself is
shown, shortened.
"""

import contextlib
import os
from io import FileIO

FOLDER = ".output"
SHOWN_CHARACTERS = 16_000
FILE_BYTES = 16 << 20
FILES_MAX = 8


class WholeOutput:
    """Of one cell."""

    def __init__(self, workspace: str, cell: str) -> None:
        self._path = os.path.join(workspace, FOLDER, f"{cell}.txt")
        self._few: list[str] = []  # the text so far, until it is too much to be shown
        self._length = 0
        self._file: FileIO | None = None
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
        with _new(os.path.join(workspace, FOLDER, name)) as file:
            file.write(text.encode(errors="replace")[:FILE_BYTES])
    except OSError:
        return ""
    return where(name)


def where(name: str) -> str:
    return f"\n(All of it, up to {FILE_BYTES >> 20} MB: {FOLDER}/{name})"


def _new(path: str) -> FileIO:
    folder = os.path.dirname(path)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    there = sorted(os.scandir(folder), key=lambda one: one.stat(follow_symlinks=False).st_mtime_ns)
    for old in there[: -FILES_MAX + 1]:
        os.unlink(old)  # a link, if the code made one: not what it points to
    return FileIO(path, "w")
