"""Runs a Python module of the tests as an ordinary user: `python -I ordinary.py <uid> <root> <module> …`, as root.

The tests may lie where only root can go. So in a mount namespace of its own each folder on the way that others cannot
enter is replaced by an empty one, in which what is needed stands at its old path.
"""

import ctypes
import os
import sys

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x0002_0000, 4096, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def main(uid: int, root: str, *arguments: str) -> None:
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", MS_REC | MS_PRIVATE)
    needed = sorted({root, sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)})
    opened = {path: os.open(path, os.O_PATH) for path in needed}
    for closed in sorted({found for path in needed if (found := first_closed(path))}):
        mount("tmpfs", closed, 0, b"tmpfs", b"mode=0755")
    for path, descriptor in opened.items():
        if not os.path.exists(path):
            os.makedirs(path)
            mount(f"/proc/self/fd/{descriptor}", path, MS_BIND | MS_REC)
        os.close(descriptor)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.chdir(root)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, [sys.executable, "-m", *arguments], environment)


def first_closed(path: str) -> str | None:
    """The highest folder above `path` that others cannot enter."""
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]
    return next((folder for folder in above if not os.stat(folder).st_mode & 0o001), None)


def mount(source: str, target: str, flags: int, kind: bytes | None = None, data: bytes | None = None) -> None:
    if libc.mount(source.encode(), target.encode(), kind, flags, data):
        raise OSError(ctypes.get_errno(), f"mount {target}")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
