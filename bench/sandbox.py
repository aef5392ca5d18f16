"""The figures of the sandbox: `python -m bench.sandbox`. Beside them ipykernel's in the same run, as it is installed
(`pip install ipykernel`), or from a folder of its own that is filled for the run.
"""

import asyncio
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.sandbox import processes
from actors.sandbox.folder import Folder
from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.probe import probe
from actors.sandbox.isolation.words import Isolation, Unavailable
from actors.sandbox.words import CellCalled, CellDone, CellLost, Happening

CALLS, STARTS = 100, 10
CHILDREN = "import subprocess\nfor _ in range(20): subprocess.Popen(['sleep', '600'], start_new_session=True)"
BUDGETS_MS = {
    "actor cold start, first result": 250.0,
    "ready from a started zygote (warm pool)": 30.0,
    "clean-slate call": 25.0,
    "stateful call": 1.0,
    "RPC": 0.5,
    "interrupt, busy loop": 20.0,
    "interrupt, in a subprocess": 300.0,
    "kill with 20 setsid children": 50.0,
}
BUDGETS_MB = {"idle actor with a session": 20.0, "extra session": 5.0}


class Owner:
    """Answers each call at once."""

    def __init__(self, directory: Path, isolation: Isolation) -> None:
        self.box = Sandbox(directory, self._hear, isolation)
        self._ends: dict[str, asyncio.Future[Happening]] = {}
        self._count = 0

    def _hear(self, told: Happening) -> None:
        if isinstance(told, CellCalled):
            self.box.reply(told.rpc)
        elif isinstance(told, CellDone | CellLost) and not self._ends[told.cell].done():
            self._ends[told.cell].set_result(told)

    async def begin(self, code: str, *, stateful: bool = True) -> str:
        self._count += 1
        cell = f"cell{self._count}"
        self._ends[cell] = asyncio.get_running_loop().create_future()
        await self.box.execute(cell, code, stateful=stateful)
        return cell

    async def end(self, cell: str) -> str:
        told = await self._ends[cell]
        self.box.recorded(cell)
        return told.value if isinstance(told, CellDone) else told.why if isinstance(told, CellLost) else ""

    async def run(self, code: str, *, stateful: bool = True) -> str:
        return await self.end(await self.begin(code, stateful=stateful))


async def timed(work: Callable[[], Any], times: int) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        found.append((time.perf_counter() - began) * 1000)
    return found


def p50(values: list[float]) -> float:
    return round(statistics.median(values), 2)


async def figures(isolation: Isolation, place: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    cold, warm, kill = [], [], []
    survivors = 0
    for number in range(STARTS):
        owner = Owner(place / f"cold{number}", isolation)
        cold += await timed(lambda owner=owner: owner.run("1"), 1)
        await owner.run(CHILDREN)
        birth = Folder(owner.box.workspace.parent).zygote()
        assert birth is not None
        below = processes.below(birth.pid)
        kill += await timed(owner.box.kill, 1)
        survivors += sum(processes.is_running(seen.pid, seen.started) for seen in below)
        pooled = Owner(place / f"pool{number}", isolation)
        await pooled.box.start()
        warm += await timed(lambda owner=pooled: owner.run("1"), 1)
        await pooled.box.kill()
    found["actor cold start, first result"], found["ready from a started zygote (warm pool)"] = p50(cold), p50(warm)
    found["kill with 20 setsid children"], found["survivors"] = p50(kill), survivors
    owner = Owner(place / "one", isolation)
    try:
        await owner.run("1")
        found["idle actor with a session"] = await memory(owner)
        found["clean-slate call"] = p50(await timed(lambda: owner.run("1", stateful=False), CALLS))
        found["stateful call"] = p50(await timed(lambda: owner.run("1"), CALLS))
        rpcs = "import time\nts = []\nfor _ in range(300):\n    a = time.perf_counter(); await primitives.notify('x')\n"
        rpcs += "    ts.append(time.perf_counter() - a)\nsorted(ts)[150] * 1000"
        found["RPC"] = round(float(await owner.run(rpcs)), 2)
        for name, code in (("busy loop", "while True: pass"), ("in a subprocess", "subprocess.run(['sleep', '600'])")):
            found[f"interrupt, {name}"] = p50([await interrupted(owner, code) for _ in range(STARTS)])
        before = await memory(owner)
        for _ in range(5):
            await owner.begin("import time; time.sleep(600)", stateful=False)
        await asyncio.sleep(1)
        found["extra session"] = round((await memory(owner) - before) / 5, 1)
    finally:
        await owner.box.kill()
    return found


async def interrupted(owner: Owner, code: str) -> float:
    cell = await owner.begin(f"import subprocess\nprint('going', flush=True)\n{code}")
    while "going" not in owner.box.peek(cell):
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    owner.box.interrupt(cell)
    await owner.end(cell)
    return (time.perf_counter() - began) * 1000


async def memory(owner: Owner) -> float:
    """PSS of all its processes, MB."""
    gc.collect()
    birth = Folder(owner.box.workspace.parent).zygote()
    assert birth is not None
    pids = [birth.pid, *(seen.pid for seen in processes.below(birth.pid)), *([birth.keeper] if birth.keeper else ())]
    return round(sum(pss(pid) for pid in pids), 1)


def pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def ipykernel() -> dict[str, float]:
    """The same by a Jupyter kernel and its blocking client."""
    from jupyter_client.manager import start_new_kernel

    found: dict[str, float] = {}
    began = time.perf_counter()
    manager, client = start_new_kernel(kernel_name="python3")
    client.execute_interactive("1", output_hook=lambda _: None)
    found["actor cold start, first result"] = round((time.perf_counter() - began) * 1000, 2)
    calls = []
    for _ in range(CALLS):
        began = time.perf_counter()
        client.execute_interactive("1", silent=True)
        calls.append((time.perf_counter() - began) * 1000)
    found["stateful call"] = p50(calls)
    found["idle actor with a session"] = round(pss(manager.provisioner.process.pid), 1)
    client.execute("while True: pass")
    time.sleep(0.3)
    began = time.perf_counter()
    manager.interrupt_kernel()
    client.get_shell_msg(timeout=10)
    found["interrupt, busy loop"] = round((time.perf_counter() - began) * 1000, 2)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return found


def beside() -> dict[str, float]:
    """ipykernel's figures in this same run: of the one that is installed, or else of one in a folder of its own."""
    if importlib.util.find_spec("ipykernel"):
        return ipykernel()
    with tempfile.TemporaryDirectory(prefix="bench-ipykernel-") as place:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", place]
        installed = subprocess.run([*pip, "ipykernel"], capture_output=True, text=True, check=False)
        if installed.returncode:
            print(f"ipykernel: {installed.stderr[-300:]}", file=sys.stderr)
            return {}
        path = os.pathsep.join(filter(None, (os.getcwd(), place, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "bench.sandbox", "--ipykernel"]
        environment = os.environ | {"PYTHONPATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        found: dict[str, float] = json.loads(said)
        return found


def table(columns: dict[str, dict[str, float]]) -> str:
    """The bounds are for the first column."""
    units = dict.fromkeys(BUDGETS_MS, "ms") | dict.fromkeys(BUDGETS_MB, "MB PSS") | {"survivors": ""}
    bounds = BUDGETS_MS | BUDGETS_MB | {"survivors": 0}
    first = next(iter(columns.values()))
    lines = [["p50", "bound", *columns, "met"], ["---"] * (len(columns) + 3)]
    for name, bound in bounds.items():
        values = [str(column.get(name, "–")) for column in columns.values()]
        lines.append([name, f"≤ {bound:g} {units[name]}".strip(), *values, "yes" if first[name] <= bound else "NO"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def measured() -> dict[str, dict[str, float]]:
    columns: dict[str, dict[str, float]] = {}
    isolation = await probe(network="proxy")  # the default
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        if isinstance(isolation, Unavailable):
            print(f"hardened: {isolation}", file=sys.stderr)
        else:
            columns["hardened"] = await figures(isolation, Path(place, "hardened"))
        columns["bare"] = await figures(Bare(), Path(place, "bare"))
    return columns


def main() -> None:
    if "--ipykernel" in sys.argv:
        return print(json.dumps(ipykernel()))
    columns = asyncio.run(measured()) | {"ipykernel": beside()}
    return print(json.dumps(columns) if "--json" in sys.argv else table(columns))


if __name__ == "__main__":
    main()
