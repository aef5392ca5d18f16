"""What a model gets to see of a value: text, and for a picture a file in the current folder with its name.

Known by their looks, not imported: a figure can save itself, a picture too, a table can write itself as text.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

from .output import shorten
from .wire import clean

VALUE_CHARACTERS = 16_000
TABLE_ROWS, TABLE_COLUMNS = 40, 20
PICTURES_MAX = 20  # of one cell
FILES_MAX = 10_000


def shown(value: Any, keep: Callable[[str], str]) -> str:
    """At most 16,000 characters; if it is more, `keep` puts all of it somewhere and says where. "" for None."""
    if value is None:
        return ""
    home = type(value).__module__.partition(".")[0]
    if home == "matplotlib" and (figure := _figure(value)) is not None:
        saved = _saved(figure)
        if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
            pyplot.close(figure)  # or it would be saved once more, as one that is still open
        return saved
    if home == "PIL" and hasattr(value, "save"):
        return _saved(value)
    if home == "pandas" and hasattr(value, "to_string"):
        return clean(shorten(_table(value), VALUE_CHARACTERS))
    text = repr(value)
    return clean(shorten(text, VALUE_CHARACTERS) + (keep(text) if len(text) > VALUE_CHARACTERS else ""))


def kind_of(value: Any) -> str:
    """Its type's name, whatever that type says of itself."""
    return clean(str(vars(type)["__name__"].__get__(type(value))))


def open_figures() -> list[str]:
    """Saves and closes what the code has drawn with pyplot and not shown; a line for each."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    numbers = [*pyplot.get_fignums()][:PICTURES_MAX]
    lines = [_saved(pyplot.figure(number)) for number in numbers]
    if numbers:
        pyplot.close("all")
    return lines


def _figure(value: Any) -> Any:
    """A figure itself, or that of an axes; None for anything else of that library."""
    if hasattr(value, "savefig"):
        return value
    figure = getattr(value, "figure", None)
    return figure if hasattr(figure, "savefig") else None


def _saved(picture: Any) -> str:
    name = next(name for n in range(1, FILES_MAX) if not os.path.exists(name := f"figure-{n}.png"))
    (picture.savefig if hasattr(picture, "savefig") else picture.save)(name)
    return f"<picture saved as {name}>"


def _table(value: Any) -> str:
    """Its first and last rows, and how large it is; a column of one takes no limit for columns."""
    shape = " × ".join(str(number) for number in value.shape)
    limits = {"max_rows": TABLE_ROWS} | ({"max_cols": TABLE_COLUMNS} if len(value.shape) > 1 else {})
    return f"{value.to_string(**limits)}\n[{shape}]"
