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
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        _strip(report)
        text = "".join(report.format()).rstrip()
    except Exception as why:  # noqa: BLE001 - the code's own objects say what they are, and its result is to be told
        text = f"{type(error).__name__} (which could not be described: {type(why).__name__})"
    return clean(shorten(text, TRACEBACK_CHARACTERS))


def said(end: SystemExit) -> str:
    """The argument of SystemExit."""
    try:
        text = "" if end.code is None else str(end.code)
    except Exception as why:  # noqa: BLE001 - it may be any object of the code's own
        return describe(why)
    return clean(shorten(text, TRACEBACK_CHARACTERS))


def _strip(report: traceback.TracebackException) -> None:
    """A chain of causes may be longer than calls can be deep."""
    left = [report]
    while left:
        one = left.pop()
        frames = list(one.stack)
        first = next((n for n, frame in enumerate(frames) if frame.filename.startswith(CELL_FILE)), len(frames))
        one.stack = traceback.StackSummary.from_list(
            [frame for frame in frames[first:] if not frame.filename.startswith(HERE)]
        )
        left += [other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other is not None]
