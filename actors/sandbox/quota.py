"""How much a sandbox may keep: measured from outside, because no file system here has quotas for us.

What is found in its folders may be a link, and may change while it is looked at: nothing is followed, and what is gone
is passed over. Every function may take as long as its bound allows: call them in a thread.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

CHECK_SECONDS = 2.0
SHARE = 20  # at most one part in so many of the time goes into looking


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """Of the workspace and the run folder together; `files` holds for `/tmp` too, whose bytes the kernel bounds."""

    bytes: int
    files: int


def exceeded(folders: tuple[Path, ...], tmp: Path | None, quota: Quota) -> str:
    """What is too much, as a sentence's beginning; "" if nothing is."""
    size = files = 0
    for folder in folders:
        for _, seen in _walk(folder):
            files += 1
            size += seen.st_blocks * 512
            if size > quota.bytes:
                return f"its files took more than {quota.bytes >> 20} MB of disk"
            if files > quota.files:
                return f"it kept more than {quota.files} files"
    return f"it kept more than {quota.files} files in /tmp" if tmp and _files_in(tmp) > quota.files else ""


def room(folder: Path, tmp: Path | None) -> Quota:
    """What is left in the whole file system of the folder, less the files in `/tmp`: quickly seen, and less with each
    file that is written."""
    seen = os.statvfs(folder)
    return Quota(bytes=seen.f_bavail * seen.f_frsize, files=seen.f_favail - (_files_in(tmp) if tmp else 0))


def trim(folder: Path, since: float) -> None:
    """Removes what was made or changed after that time; the clock is that of the inode's change, which nobody sets."""
    for path, seen in _walk(folder):
        if seen.st_ctime >= since and not stat.S_ISDIR(seen.st_mode):
            name, parent = path
            try:
                os.unlink(name, dir_fd=parent)
            except OSError:
                continue


def _walk(folder: Path) -> Iterator[tuple[tuple[str, int], os.stat_result]]:
    """All below, as names in open folders: while one is looked at, its path cannot be led elsewhere."""
    if not folder.is_dir():
        return
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            try:
                seen = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                    _open_up(name, descriptor)
                yield (name, descriptor), seen
            except OSError:
                continue


def _open_up(name: str, parent: int) -> None:
    """A folder that its owner has closed would not be counted."""
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{folder}", stat.S_IRWXU)
    finally:
        os.close(folder)


def _files_in(tmp: Path) -> int:
    try:
        seen = os.statvfs(tmp)
    except OSError:
        return 0
    return seen.f_files - seen.f_ffree
