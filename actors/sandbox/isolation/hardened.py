"""Isolation by bubblewrap: what a sandbox sees, as the order to the launcher. Pure but for looking at paths.

Own user, pid, net, ipc, uts and cgroup namespaces; a root of nothing but the read-only system, one interpreter and the
workspace; `/tmp` in memory, with a size; no capability, no way to gain one, no further user namespace; a list of
refused system calls. The zygote is process 1 in there: no signal from inside reaches it, and when it is killed from
outside, the kernel ends everything with it.
"""

import json
import os
import platform
import sys
from copy import copy
from pathlib import Path

import msgspec

from actors.sandbox.folder import WORKER, Folder
from actors.sandbox.gate import trust
from actors.sandbox.isolation import cgroups, seccomp
from actors.sandbox.isolation.bare import path_of
from actors.sandbox.isolation.words import Launch, Network, Tier
from actors.sandbox.quota import Quota
from actors.sandbox.worker.relay import PORT

LAUNCHER = Path(__file__).with_name("launcher.py")
RUN, WORKSPACE, WORKER_INSIDE, GATE = "/run/frontdesk", "/workspace", "/opt/frontdesk/worker", "/run/gate"
PACKAGES, OWN_PACKAGES = "/opt/frontdesk/packages", "/opt/frontdesk/own-packages"
UID_OUTSIDE = 61_000  # no distribution gives it out; not one of the ranges of systemd
UID_INSIDE = "1000"
PROCESSES_MAX = 256
OPEN_FILES_MAX = 1024
FILES_MAX = 50_000
TMP_SHARE, SHARED_SHARE = 4, 8  # of the memory: what is in there is memory too
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/matplotlibrc",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
)
NAMES_OF_THE_HOST = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
TEXTS = {
    "/etc/passwd": f"actor:x:{UID_INSIDE}:{UID_INSIDE}::{WORKSPACE}:/bin/sh\n",
    "/etc/group": f"actor:x:{UID_INSIDE}:\n",
}
PROXY_NAMES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://127.0.0.1:{PORT}")
IN_TMP = {"TMPDIR": "/tmp", "XDG_CACHE_HOME": "/tmp/.cache", "MPLCONFIGDIR": "/tmp/.matplotlib"}  # noqa: S108
NO_NAMES = {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n", "/etc/nsswitch.conf": "hosts: files\n"}


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """`roots`: the folders that it consists of, beside /usr."""

    path: str
    roots: tuple[str, ...]


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe has found. `can_close`: this bubblewrap can forbid further user namespaces."""

    bubblewrap: str
    can_close: bool
    interpreter: Interpreter


class Hardened:
    tier: Tier = "hardened"

    def __init__(
        self, tools: Tools, *, network: Network, memory_mb: int, disk_mb: int, files_max: int = FILES_MAX
    ) -> None:
        self.tools, self._network = tools, network
        self._memory_mb, self._disk_mb, self._files_max = memory_mb, disk_mb, files_max
        self._packages: Path | None = None

    @property
    def python(self) -> str:
        return self.tools.interpreter.path

    def with_packages(self, packages: Path | None) -> "Hardened":
        other = copy(self)
        other._packages = packages
        return other

    def launch(self, folder: Folder) -> Launch:
        python = self.tools.interpreter.path
        uid = UID_OUTSIDE if os.geteuid() == 0 else None
        groups = cgroups.of(folder.directory, self._memory_mb, PROCESSES_MAX, root=uid is not None)
        relay = f"{GATE}/{folder.gate_socket.name}" if self._network == "proxy" else None
        order = {
            "bubblewrap": self.tools.bubblewrap,
            "uid": uid,
            "owned": [str(folder.run), str(folder.workspace)],
            "cgroups": groups,
            "filter": seccomp.program(platform.machine()).hex(),
            "before": self._before(),
            "binds": self._binds(folder),
            "texts": TEXTS | ({} if self._network == "host" else NO_NAMES),
            "after": ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKSPACE, "--"],
            "command": [python, "-I", f"{WORKER_INSIDE}/__main__.py"],
        }
        return Launch(
            command=(sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(order)),
            environment={"PATH": path_of(python), "HOME": WORKSPACE, "USER": "actor", **IN_TMP}
            | (PROXY_NAMES | dict.fromkeys(trust.NAMES, f"{GATE}/{folder.trusted.name}") if relay else {}),
            run=RUN,
            workspace=WORKSPACE,
            namespaced=True,
            limits={
                "CORE": 0,
                "DATA": self._memory_mb << 20,
                "FSIZE": self._disk_mb << 20,
                "MEMLOCK": 1 << 20,
                "MSGQUEUE": 1 << 20,
                "NOFILE": OPEN_FILES_MAX,
                "NPROC": PROCESSES_MAX,
            },
            cgroups=tuple(group["path"] for group in groups),
            relay=relay,
            packages=(OWN_PACKAGES, *([PACKAGES] if self._packages else [])),
            quota=Quota(bytes=self._disk_mb << 20, files=self._files_max),
        )

    def _before(self) -> list[str]:
        arguments = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if self._network != "host":
            arguments.append("--unshare-net")
        if self.tools.can_close:
            arguments.append("--disable-userns")
        arguments += ["--as-pid-1", "--hostname", "sandbox", "--uid", UID_INSIDE, "--gid", UID_INSIDE]
        arguments += ["--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"]
        for path in SYSTEM_LINKS:
            if os.path.islink(path):
                arguments += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                arguments += ["--ro-bind", path, path]
        for path in (*SYSTEM_FILES, *(NAMES_OF_THE_HOST if self._network == "host" else ())):
            arguments += ["--ro-bind-try", path, path]
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        arguments += ["--size", str((self._memory_mb << 20) // SHARED_SHARE), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
        return [*arguments, "--size", str((self._memory_mb << 20) // TMP_SHARE), "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108

    def _binds(self, folder: Folder) -> list[tuple[str, str, bool]]:
        """Source, where it is seen, whether it can be written."""
        binds = [(root, root, False) for root in self.tools.interpreter.roots]
        binds += [(str(WORKER), WORKER_INSIDE, False), (str(folder.run), RUN, True)]
        binds.append((str(folder.packages), OWN_PACKAGES, False))
        if self._packages is not None:
            binds.append((str(self._packages), PACKAGES, False))
        if self._network == "proxy":
            binds.append((str(folder.gate), GATE, False))
        return [*binds, (str(folder.workspace), WORKSPACE, True)]
