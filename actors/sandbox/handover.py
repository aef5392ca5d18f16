"""Files over the border of a workspace: in under safe names, out after a check. Never by a path, never through a link.

Code in the sandbox can change what is there at any moment, so each step is taken from the folder that is open, and what
is checked is what was opened. Archives are not unpacked here, nor anywhere.
"""

import errno
import os
import re
import stat
import unicodedata
from pathlib import Path

NAME_BYTES = 120
FILE_BYTES = 25 << 20  # what mail servers take as a rule
FILES_MAX, ALL_BYTES = 50, 100 << 20  # of one message
DEFAULT_NAME = "attachment"
RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(1, 10))))


class Refused(Exception):
    """This file does not pass. The text says why, for whoever wanted it."""


def safe_name(name: str) -> str:
    """A name for one folder, whatever a stranger wrote: never empty, hidden, a path, or longer than 120 bytes.

    Characters that control or turn the writing direction are left out, so that an ending is what it looks like.
    """
    name = unicodedata.normalize("NFC", name)
    name = "".join(
        "" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else character
        for character in name
    )
    name = re.split(r"[/\\]", name.rstrip("/\\ "))[-1]
    name = re.sub(r'[<>:"|?*]', "_", name).strip(". ")
    stem, dot, ending = name.rpartition(".")
    if not dot:
        stem, ending = name, ""
    if stem.split(".")[0].lower() in RESERVED:
        stem = f"_{stem}"
    ending = _cut(f".{ending}", 20) if dot else ""
    return (_cut(stem, NAME_BYTES - len(ending.encode())) + ending) or DEFAULT_NAME


def shown_name(name: str) -> str:
    """The name as it was given, for people to read: without what would disguise it."""
    return "".join(" " if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") else one for one in name)[:200]


def put_in(workspace: Path, folder: str, files: list[tuple[str, bytes]]) -> list[str]:
    """Stores the files of one message in a folder of their own, and returns their paths in the workspace.

    Two of one name are both kept. Raises Refused, with nothing stored, for too many or too much; the folder's name is
    made safe too, and must be new.
    """
    if len(files) > FILES_MAX:
        raise Refused(f"{len(files)} files are more than the {FILES_MAX} that one message may have")
    if sum(len(data) for _, data in files) > ALL_BYTES:
        raise Refused(f"the files of the message are larger than {ALL_BYTES >> 20} MB together")
    inside = _opened(workspace)
    try:
        owner = os.fstat(inside)
        place = _new_folder(inside, safe_name(folder), owner)
        try:
            return [f"{safe_name(folder)}/{_store(place, name, data, owner)}" for name, data in files]
        finally:
            os.close(place)
    except OSError as error:
        raise Refused(f"the files could not be stored: {error.strerror}") from error
    finally:
        os.close(inside)


def take_out(workspace: Path, name: str, limit: int = FILE_BYTES) -> bytes:
    """The bytes of a regular file in the workspace or a folder of it. Raises Refused for anything else."""
    parts = name.split("/")
    if len(parts) > 16 or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Refused(f"{name!r} is no path inside the workspace: give it as it stands there, like results/table.csv")
    at = _opened(workspace)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        linked = error.errno in (errno.ELOOP, errno.ENOTDIR)
        raise Refused(f"{name}: {'a link is not followed' if linked else error.strerror}") from error
    finally:
        os.close(at)
    try:
        return _read(file, name, limit)
    finally:
        os.close(file)


def _read(file: int, name: str, limit: int) -> bytes:
    seen = os.fstat(file)
    if not stat.S_ISREG(seen.st_mode):
        raise Refused(f"{name} is no file")
    data = bytearray()
    while len(data) <= limit and (more := os.read(file, 1 << 20)):
        data += more
    if len(data) > limit:
        raise Refused(f"{name} is larger than {limit >> 20} MB")
    return bytes(data)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _new_folder(inside: int, name: str, owner: os.stat_result) -> int:
    os.mkdir(name, 0o700, dir_fd=inside)
    place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
    _give(place, owner)
    return place


def _store(place: int, name: str, data: bytes, owner: os.stat_result) -> str:
    stem, dot, ending = safe_name(name).rpartition(".")
    stem, dot, ending = (stem, dot, ending) if dot else (ending, "", "")
    for number in range(1, FILES_MAX + 2):
        found = f"{stem}{f' ({number})' if number > 1 else ''}{dot}{ending}"
        try:
            file = os.open(found, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place)
        except FileExistsError:
            continue
        with open(file, "wb") as stream:
            _give(file, owner)
            stream.write(data)
        return found
    raise Refused(f"there are too many files named {safe_name(name)}")


def _give(descriptor: int, owner: os.stat_result) -> None:
    """To the workspace's owner, who is another one when the gateway is root."""
    if os.geteuid() == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
