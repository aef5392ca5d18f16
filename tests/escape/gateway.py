"""A gateway for probes to attack: `python -m tests.escape.gateway <tier>`; prints what each achieved, as JSON.

It holds what a real one holds: a secret in its environment, its memory, a file of settings, a database and an open
file, sockets of every kind, and the workspace of another sandbox. Like the real one it hides its memory.
"""

import asyncio
import json
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from actors.sandbox import processes
from actors.sandbox.connection import connect
from actors.sandbox.folder import Birth, Folder
from actors.sandbox.gate.policy import Policy
from actors.sandbox.handover import Refused, take_out
from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.hardened import PROCESSES_MAX, Hardened
from actors.sandbox.isolation.probe import find_tools
from actors.sandbox.isolation.words import Isolation, Unavailable
from actors.sandbox.words import CellCalled, CellDone, CellLost
from gateway.hiding import hide_memory
from tests.escape.probes import FORGERY, FRAMES, PROBES, Probe
from tests.sandbox.desk import Desk, alive

SECRET = "a-secret-of-the-escape-suite"
DISK_MB, MEMORY_MB, FILES_MAX = 64, 256, 500
HOST_GROWTH_KB = 50 << 10
MEASURED = ("flood", "frames")  # what the host itself is at meanwhile: nothing else
FUZZED, RACES, RACES_WON, RACE_SECONDS = 9, 2_000, 100, 20
X86 = os.uname().machine == "x86_64"
GOES_ON_SECONDS, SEEN_SECONDS = 4.0, 40.0  # of bare code that nobody looks at; until the host must have looked
PATIENCE = 4  # times that of a desk


class House:
    """All that can be attacked. `names` is what the probes know of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config, self.database, self.other = folder / "config.toml", folder / "desk.db", folder / "other"
        for path in (self.config, self.database, folder / "held"):
            path.write_text(SECRET)
            path.chmod(0o600)
        self.other.mkdir(mode=0o700)
        (self.other / "private.txt").write_text(SECRET)
        self.held = os.open(folder / "held", os.O_RDONLY)
        os.set_inheritable(self.held, True)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)
        self.abstract, self.unix = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.abstract.bind(f"\0frontdesk-{os.getpid()}")
        self.unix.bind(str(folder / "socket"))
        for listening in (self.abstract, self.unix):
            listening.listen()

    def names(self, run: str, *, quota: bool) -> str:
        values = {
            "ABSTRACT": f"\0frontdesk-{os.getpid()}",
            "CONFIG": str(self.config),
            "DATABASE": str(self.database),
            "GATEWAY": os.getpid(),
            "MANY": PROCESSES_MAX + 20,
            "MANY_FILES": 2 * FILES_MAX,
            "UNTIL_SEEN": 5 if quota else 0,  # by who looks for what is too much
            "CLONE": 56 if X86 else 220,
            "FOR_THE_FEW": (321, 298, 323, 304) if X86 else (280, 241, 282, 265),
            "KEYCTL": 250 if X86 else 219,
            "OTHER": str(self.other),
            "RUN": run,
            "SECRET": SECRET,
            "SOCKET": str(self.folder / "socket"),
            "TCP": self.tcp.getsockname()[1],
            "UDP": self.udp.getsockname()[1],
        }
        return "import os\n" + "".join(f"{name} = {value!r}\n" for name, value in values.items())


async def main(tier: str) -> None:
    hide_memory()
    with tempfile.TemporaryDirectory(prefix="escape-") as place:
        house = House(Path(place))
        found: dict[str, str] = {}
        isolation = await _isolation(tier)
        for probe in [probe for probe in PROBES if probe.by_host in MEASURED]:
            await _all(house, isolation, [probe], found)
        quick = [probe for probe in PROBES if not probe.alone and probe.name not in found]
        alone = [probe for probe in PROBES if probe.alone and probe.name not in found]
        await asyncio.gather(
            _all(house, isolation, quick, found), *(_all(house, isolation, [probe], found) for probe in alone)
        )
    print(json.dumps({probe.name: found[probe.name] for probe in PROBES}))


async def _isolation(tier: str) -> Isolation:
    if tier == "bare":
        return Bare()
    tools = await find_tools(None)
    if isinstance(tools, Unavailable):
        raise SystemExit(str(tools))
    return Hardened(tools, network="proxy", memory_mb=MEMORY_MB, disk_mb=DISK_MB, files_max=FILES_MAX)


async def _all(house: House, isolation: Isolation, probes: list[Probe], found: dict[str, str]) -> None:
    folder = house.folder / f"box{PROBES.index(probes[0])}"
    desk = Desk(folder, isolation=isolation, policy=Policy(allow=("*",)))
    launch = isolation.launch(Folder(folder))
    names = house.names(launch.run, quota=launch.quota is not None)
    try:
        for probe in probes:
            look = LOOKS[probe.by_host] if probe.by_host else by_itself
            found[probe.name] = "open" if await look(house, desk, names + probe.code) else "blocked"
    finally:
        await desk.sandbox.kill()


# --- who decides -----------------------------------------------------------------------------------------------------


async def ended(desk: Desk, cell: str) -> CellDone | CellLost:
    """On a busy machine a bomb takes longer than a desk is patient."""
    for _ in range(PATIENCE - 1):
        try:
            return await desk.end(cell)
        except TimeoutError:
            continue
    return await desk.end(cell)


async def by_itself(house: House, desk: Desk, code: str) -> bool:
    end = await ended(desk, await desk.begin(code))
    return isinstance(end, CellDone) and end.status == "ok" and end.value == "True"


async def flood(house: House, desk: Desk, code: str) -> bool:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await ended(desk, await desk.begin(code))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > HOST_GROWTH_KB


async def udp(house: House, desk: Desk, code: str) -> bool:
    await ended(desk, await desk.begin(code))
    try:
        return bool(house.udp.recv(100))
    except BlockingIOError:
        return False


async def link(house: House, desk: Desk, code: str) -> bool:
    await ended(desk, await desk.begin(code))
    try:
        return SECRET in take_out(desk.sandbox.workspace, "report.txt").decode()
    except Refused:
        return False


async def socket_link(house: House, desk: Desk, code: str) -> bool:
    await ended(desk, await desk.begin(code))
    folder = Folder(desk.sandbox.workspace.parent)
    try:
        _, writer = await connect(folder.run, "s77", _zygote(desk).pid)
    except OSError:
        return False
    writer.close()
    return True


async def outlived(house: House, desk: Desk, code: str) -> bool:
    """Whether the sandbox goes on, with more on disk than it may have."""
    await ended(desk, await desk.begin(code))
    birth = _zygote(desk)
    try:
        async with asyncio.timeout(GOES_ON_SECONDS if desk.sandbox.tier == "bare" else SEEN_SECONDS):
            while alive(birth.pid):
                await asyncio.sleep(0.05)
    except TimeoutError:
        return True
    return False


async def impostor(house: House, desk: Desk, code: str) -> bool:
    await ended(desk, await desk.begin(code, stateful=True))
    folder, birth = Folder(desk.sandbox.workspace.parent), _zygote(desk)
    try:
        _, writer = await connect(folder.run, "z", birth.pid)
    except OSError:
        return False
    writer.close()
    return True


async def forged(house: House, desk: Desk, code: str) -> bool:
    victim = await desk.begin("await primitives.act('x')")
    await desk.until(lambda told: [one for one in told if isinstance(one, CellCalled) and one.cell == victim])
    await desk.end(await desk.begin(FORGERY.replace("VICTIM", victim)))
    found = victim not in desk.sandbox.running()
    desk.sandbox.interrupt(victim)
    await desk.end(victim)
    return found


async def frames(house: House, desk: Desk, code: str) -> bool:
    """Whether anything is wrong in the host afterwards."""
    wrong: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: wrong.append(context))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends = []
    for seed in range(FUZZED):
        cell = f"fuzzed{seed}"
        names = f"SEED, CELL, BAD = {seed}, {cell!r}, {seed % 3 / 50}"
        ends.append(await ended(desk, await desk.begin(names + FRAMES, cell=cell)))
    assert {type(end) for end in ends} == {CellDone, CellLost}
    loop.set_exception_handler(None)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if wrong or grown > HOST_GROWTH_KB:
        print(f"frames: {wrong}, {grown} KB more", file=sys.stderr)
    return bool(wrong) or grown > HOST_GROWTH_KB or (await desk.run("6 * 7")).value != "42"


async def race(house: House, desk: Desk, code: str) -> bool:
    cell = await desk.begin(code)
    found: list[bytes] = []
    await desk.output(cell, "going")
    tries, until = 0, asyncio.get_running_loop().time() + RACE_SECONDS
    while (tries < RACES or len(found) < RACES_WON) and asyncio.get_running_loop().time() < until:
        tries += 1
        await asyncio.sleep(0)
        try:
            found.append(take_out(desk.sandbox.workspace, "race/config.toml"))
        except Refused:
            continue
    assert found, "no race was won: nothing was tried"
    desk.sandbox.interrupt(cell)
    await desk.end(cell)
    return SECRET.encode() in b"".join(found)


async def daemons(house: House, desk: Desk, code: str) -> bool:
    cell = await desk.begin(code)
    await desk.end(cell)
    pids = [desk.outside(int(line)) for line in desk.sandbox.peek(cell).split()]
    await desk.sandbox.kill()
    return not pids or any(map(alive, pids))


async def halted(house: House, desk: Desk, code: str) -> bool:
    await desk.end(await desk.begin(code, stateful=True))
    seen = processes.look(_zygote(desk).pid)
    return seen is None or seen.state in "Tt"


def _zygote(desk: Desk) -> Birth:
    birth = Folder(desk.sandbox.workspace.parent).zygote()
    assert birth is not None
    return birth


LOOKS: dict[str, Callable[[House, Desk, str], Awaitable[bool]]] = {
    look.__name__: look
    for look in (flood, udp, link, socket_link, race, forged, frames, daemons, halted, outlived, impostor)
}

if __name__ == "__main__":
    if "GATEWAY_SECRET" not in os.environ:  # there from the start, or it is not where others would read it
        os.execve(sys.executable, sys.orig_argv, os.environ | {"GATEWAY_SECRET": SECRET})
    asyncio.run(main(sys.argv[1]))
