"""What a model is shown of an error: its own lines, and those of the libraries that it called; none of ours."""

import linecache
import os
import traceback

from .output import shorten
from .wire import clean

CELL_FILE = "<cell "
TRACEBACK_CHARACTERS = 8_000
HERE = os.path.dirname(__file__) + os.sep


def file_of(cell: str) -> str:
    """The name that a cell's code is compiled under."""
    return f"{CELL_FILE}{cell}>"


def remember(cell: str, code: str) -> None:
    """Lets every later traceback quote this cell's lines."""
    name = file_of(cell)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)


def describe(error: BaseException) -> str:
    """As Python prints it, from the first line of a cell on, with causes."""
    report = traceback.TracebackException.from_exception(error, compact=True)
    _strip(report)
    return clean(shorten("".join(report.format()).rstrip(), TRACEBACK_CHARACTERS))


def _strip(report: traceback.TracebackException) -> None:
    frames = list(report.stack)
    first = next((n for n, frame in enumerate(frames) if frame.filename.startswith(CELL_FILE)), len(frames))
    report.stack = traceback.StackSummary.from_list(
        [frame for frame in frames[first:] if not frame.filename.startswith(HERE)]
    )
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            _strip(other)
