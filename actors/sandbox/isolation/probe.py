"""Finds out whether code can be isolated on this machine, by really isolating some. The answer holds for the process.

Every way in which it can fail has a mend, in words for whoever runs the machine.
"""

import asyncio
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from actors.sandbox.host import Sandbox
from actors.sandbox.isolation import cgroups
from actors.sandbox.isolation.hardened import Hardened, Interpreter, Tools
from actors.sandbox.isolation.seccomp import MACHINES
from actors.sandbox.isolation.words import Network, Unavailable
from actors.sandbox.words import CellDone, Happening

SECONDS = 20.0
OLDEST_PYTHON = (3, 11)
FIRST_THAT_CLOSES = (0, 8)  # --disable-userns
OLDEST_BUBBLEWRAP = (0, 5)  # --perms
PREFERRED_PYTHON = "/usr/bin/python3"
ASK_PYTHON = "import json, sys; print(json.dumps([sys.version_info[:2], sys.executable, sys.prefix, sys.base_prefix]))"
NO_ROOTS = frozenset(("/", "/home", "/root", "/etc", "/var", "/tmp"))  # noqa: S108

# Run inside. The host believes it only what it cannot see itself.
INSIDE = """
import ctypes, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
libc = ctypes.CDLL(None, use_errno=True)
[os.getppid(), status["Seccomp"].strip(), status["NoNewPrivs"].strip(), status["CapBnd"].strip(), libc.unshare(1 << 28)]
"""
EXPECTED = [1, "2", "1", "0000000000000000", -1]

Setting = Callable[[str], str]

_known: dict[tuple[str | None, Network, int, int], Hardened | Unavailable] = {}


async def probe(
    python: str | None = None, *, network: Network = "none", memory_mb: int = 2048, disk_mb: int = 2048
) -> Hardened | Unavailable:
    """`python`: the interpreter for the code; None looks for one that others than the gateway's user can read."""
    key = (python, network, memory_mb, disk_mb)
    if key not in _known:
        tools = await find_tools(python)
        if isinstance(tools, Unavailable):
            _known[key] = tools
        else:
            await asyncio.to_thread(cgroups.sweep)
            _known[key] = await _tried(Hardened(tools, network=network, memory_mb=memory_mb, disk_mb=disk_mb))
    return _known[key]


async def find_tools(python: str | None) -> Tools | Unavailable:
    """What is needed to isolate, without trying it."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        why = f"code is isolated on Linux only, on {' and '.join(MACHINES)}"
        return Unavailable(why=why, mend="run Frontdesk in such a virtual machine")
    bubblewrap = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    if bubblewrap is None:
        return Unavailable(why="bubblewrap (bwrap) is not installed", mend="apt-get install bubblewrap")
    said, interpreter = await asyncio.gather(_run(bubblewrap, "--version"), _interpreter(python))
    version = _version(said)
    if version < OLDEST_BUBBLEWRAP:
        return Unavailable(why=f"bubblewrap is too old ({said})", mend="install version 0.5 or newer")
    if isinstance(interpreter, Unavailable):
        return interpreter
    return Tools(bubblewrap=bubblewrap, can_close=version >= FIRST_THAT_CLOSES, interpreter=interpreter)


async def _interpreter(python: str | None) -> Interpreter | Unavailable:
    wanted = [python] if python else [PREFERRED_PYTHON, getattr(sys, "_base_executable", sys.executable)]
    told = ""
    for path in wanted:
        told = await _run(path, "-I", "-c", ASK_PYTHON)
        try:
            version, executable, *prefixes = json.loads(told)
        except ValueError:
            continue
        if tuple(version) >= OLDEST_PYTHON:
            roots = _roots(prefixes)
            if NO_ROOTS.isdisjoint(roots):
                return Interpreter(path=executable, roots=roots)
            told = f"it is installed in {' and '.join(roots)}, which the sandbox must not see as a whole"
    mend = 'set [sandbox] python to one of 3.11 or newer, as "/usr/bin/python3" (apt-get install python3)'
    return Unavailable(why=f"{wanted[0]} cannot run the code ({told or 'it does not start'})", mend=mend)


def _roots(prefixes: list[str]) -> tuple[str, ...]:
    """A virtual environment has two; either may be a link."""
    real = [os.path.realpath(prefix) for prefix in prefixes]
    return tuple(sorted({root for root in (*prefixes, *real) if not f"{root}/".startswith("/usr/")}))


async def _run(*command: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError:
        return ""
    output, _ = await process.communicate()
    return output.decode(errors="replace").strip()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


async def _tried(hardened: Hardened) -> Hardened | Unavailable:
    """Runs code, and looks from both sides at what holds it."""
    done: asyncio.Future[Happening] = asyncio.get_running_loop().create_future()
    with tempfile.TemporaryDirectory(prefix="frontdesk-probe-") as folder:
        box = Sandbox(Path(folder), lambda told: None if done.done() else done.set_result(told), hardened, preload=())
        try:
            await box.execute("probe", INSIDE, stateful=False)
            async with asyncio.timeout(SECONDS):
                told = await done
        except TimeoutError:
            return unavailable("nothing ran in 20 seconds")
        finally:
            await box.kill()
    if isinstance(told, CellDone) and told.status == "ok":
        return hardened if told.value == repr(EXPECTED) else unavailable(f"it holds less than it must: {told.value}")
    return unavailable(told.value if isinstance(told, CellDone) else getattr(told, "why", ""))


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    sign: str
    mend: str


CAUSES = (
    Cause(
        sign="masked|mount proc",
        mend="this container hides parts of /proc: run it with --security-opt systempaths=unconfined",
    ),
    Cause(
        sign="setting up uid map|new namespace|unshare|user namespace|clone|No space left",
        mend="",  # depends on the machine
    ),
    Cause(sign="seccomp|prctl", mend="the kernel needs CONFIG_SECCOMP_FILTER: use a distribution's kernel"),
    Cause(
        sign="a stage|mount /tmp|chown|Operation not permitted",
        mend="root lacks a capability here: run the container with --cap-add SYS_ADMIN, or Frontdesk as another user",
    ),
)


def unavailable(said: str) -> Unavailable:
    """`said` is what bubblewrap, the launcher or the host gave as the reason."""
    why = f"bubblewrap cannot isolate here ({' '.join(said.split()) or 'it said nothing'})"
    for cause in CAUSES:
        if re.search(cause.sign, said, re.IGNORECASE):
            return Unavailable(why=why, mend=cause.mend or namespaces_mend(_setting))
    return Unavailable(why=why, mend="run `frontdesk doctor` as the user that runs Frontdesk, and look at what it says")


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def namespaces_mend(setting: Setting) -> str:
    """Why this machine gives an ordinary user no namespace of its own, as its settings tell."""
    if setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor refuses user namespaces: allow them for bubblewrap with a profile /etc/apparmor.d/bwrap that "
            'reads "abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap flags=(unconfined) '
            '{ userns, }", then systemctl reload apparmor'
        )
    if setting("kernel/unprivileged_userns_clone") == "0":
        return "sysctl -w kernel.unprivileged_userns_clone=1, and the same in a file of /etc/sysctl.d"
    if setting("user/max_user_namespaces") == "0":
        return "sysctl -w user.max_user_namespaces=15000, and the same in a file of /etc/sysctl.d"
    return (
        "user namespaces are refused here; in a container they are with Docker's own list of system calls: run it with "
        "--security-opt seccomp=unconfined (and apparmor=unconfined), or run Frontdesk outside of one"
    )
