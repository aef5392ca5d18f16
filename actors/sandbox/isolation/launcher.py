"""The program that becomes bubblewrap: takes from itself what the sandbox must not have. Standard library only.

    python -I -S launcher.py '<order as JSON>'

Standard input is the zygote's socket, 1 and 2 are its log, 3 is where bubblewrap writes the number of its child; all
other descriptors are closed. As root it first makes a mount namespace of its own in which the folders of the sandbox
can be reached by another user (they may lie below a folder that only root can enter), joins the cgroups, and becomes
that user. What fails is said on standard error, and nothing is started.
"""

import contextlib
import ctypes
import json
import os
import resource
import sys

CLONE_NEWNS = 0x0002_0000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
CHILD_PID_FD = 3
STAGE = "/tmp"  # noqa: S108 - in a mount namespace of our own

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    order = json.loads(sys.argv[1])
    os.closerange(CHILD_PID_FD + 1, os.sysconf("SC_OPEN_MAX"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # the sandbox is the first to go when the machine runs out of memory
        _write("/proc/self/oom_score_adj", "1000")
    places = {source: source for source, _, _ in order["binds"]}
    for group in order["cgroups"]:
        _join(group["path"], group["limits"], group["enable"])
    if order["uid"] is not None:
        for owned in order["owned"]:
            os.chown(owned, order["uid"], order["uid"], follow_symlinks=False)
        places = _stage([source for source, _, _ in order["binds"]])
        os.setgroups([])
        os.setresgid(order["uid"], order["uid"], order["uid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
    os.umask(0o077)
    arguments = [*order["before"]]
    for source, target, writable in order["binds"]:
        arguments += ["--bind" if writable else "--ro-bind", places[source], target]
    for target, text in order["texts"].items():
        arguments += ["--ro-bind-data", str(_handed(text.encode())), target]
    arguments += ["--seccomp", str(_handed(bytes.fromhex(order["filter"]))), "--info-fd", str(CHILD_PID_FD)]
    os.set_inheritable(CHILD_PID_FD, True)
    os.execv(order["bubblewrap"], [order["bubblewrap"], *arguments, *order["after"], *order["command"]])  # noqa: S606


def _stage(sources: list[str]) -> dict[str, str]:
    """Each source under a name that anyone can reach, in a mount namespace that nobody else sees."""
    _checked(_libc.unshare(CLONE_NEWNS), "unshare")
    _mount("none", "/", MS_REC | MS_PRIVATE)
    opened = {source: os.open(source, os.O_PATH) for source in sources}
    _checked(_libc.mount(b"tmpfs", STAGE.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=0755,size=1m"), "a stage")
    places: dict[str, str] = {}
    for number, (source, descriptor) in enumerate(opened.items()):
        places[source] = place = f"{STAGE}/{number}"
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(f"/proc/self/fd/{descriptor}", place, MS_BIND)
        os.close(descriptor)
    return places


def _join(path: str, limits: dict[str, str], enable: list[str]) -> None:
    """A cgroup bounds all processes together. Where none can be made, each is still bounded by itself."""
    with contextlib.suppress(OSError):
        os.makedirs(path, exist_ok=True)
        for file in enable:
            _write(file, "+memory +pids")
        for name, value in limits.items():
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap, or an older one
                _write(f"{path}/{name}", value)
        _write(f"{path}/cgroup.procs", str(os.getpid()))


def _mount(source: str, target: str, flags: int) -> None:
    _checked(_libc.mount(source.encode(), target.encode(), None, flags, None), f"mount {target}")


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _handed(data: bytes) -> int:
    """A descriptor from which bubblewrap reads them."""
    descriptor = os.memfd_create("frontdesk")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.set_inheritable(descriptor, True)
    return descriptor


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"launcher: {error.strerror or error}")
