"""The functions and classes that a session's cells have defined, as they were written. Not here: keeping them."""

import ast
from typing import Any


class Definitions:
    """The source of what cells have defined at their top level, by name."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}

    def note(self, tree: ast.Module, code: str) -> None:
        lines = code.splitlines()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._sources[node.name] = "\n".join(lines[first - 1 : node.end_lineno]) + "\n"

    def source(self, name: str, value: Any) -> str | None:
        """Of the function or class of that name, if `value` is what the cell has defined."""
        if callable(value) and getattr(value, "__module__", None) == "__main__":
            return self._sources.get(name)
        return None
