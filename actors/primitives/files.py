"""`primitives.files`: text files of one folder that the operator shares with the work. Reading only, names only."""

from pathlib import Path
from typing import Any

from actors.workshop import Caller, Primitive, PrimitiveError

MAX_BYTES = 64 * 1024


def shared(folder: Path) -> tuple[Primitive, Primitive]:
    """`list` and `read`; nothing outside `folder`, no links, no sub-folders."""

    def names() -> list[str]:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.is_symlink())

    async def list_files(caller: Caller, arguments: dict[str, Any]) -> list[str]:
        return names()

    async def read_file(caller: Caller, arguments: dict[str, Any]) -> str:
        name = arguments.get("name")
        if name not in names():
            raise PrimitiveError(f"there is no file {name!r}; there are: {', '.join(names())}")
        path = folder / str(name)
        if path.stat().st_size > MAX_BYTES:
            raise PrimitiveError(f"{name} is larger than {MAX_BYTES // 1024} KB")
        try:
            return path.read_text("utf-8")
        except UnicodeDecodeError:
            raise PrimitiveError(f"{name} is no UTF-8 text") from None

    return (
        Primitive(
            signature="files.list() -> list[str]",
            doc="Names of the files that are shared with you.",
            run=list_files,
            effect=False,
        ),
        Primitive(
            signature="files.read(name: str) -> str",
            doc="The text of one of them.",
            run=read_file,
            effect=False,
        ),
    )
