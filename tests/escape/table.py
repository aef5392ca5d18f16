"""The table of docs/SECURITY.md: what each probe achieves, by tier and by the gateway's user.

`python -m tests.escape.table` runs all of it, as root, and writes it there.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.escape.probes import PROBES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "SECURITY.md"
ORDINARY_UIDS = {"hardened": "61001", "bare": "61002"}  # the processes of a user are counted together
SECONDS = 300
COLUMNS = ("hardened, root", "hardened, ordinary user", "bare, root", "bare, ordinary user")
BEGIN, END = "<!-- probes -->\n", "<!-- end of probes -->"


def run(column: str) -> dict[str, str]:
    """Probe to `blocked` or `open`. As an ordinary user only that user's columns can be run."""
    tier, user = column.split(", ")
    module = ["tests.escape.gateway", tier]
    as_other = user != "root" and os.geteuid() == 0
    ordinary = ["-I", str(Path(__file__).with_name("ordinary.py")), ORDINARY_UIDS[tier], str(ROOT), *module]
    ended = subprocess.run(
        [sys.executable, *(ordinary if as_other else ["-m", *module])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr[-4000:])
    sys.stderr.write(ended.stderr)
    found: dict[str, str] = json.loads(ended.stdout)
    return found


def table(columns: dict[str, dict[str, str]]) -> str:
    head = f"| what code tries | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}\n"
    rows = [f"| {probe.name} | {' | '.join(columns[column][probe.name] for column in COLUMNS)} |" for probe in PROBES]
    return head + "\n".join(rows) + "\n"


def written() -> dict[str, dict[str, str]]:
    """What the page says, by column."""
    text = PAGE.read_text()
    rows = re.findall(r"^\| (.+) \|$", text[text.index(BEGIN) : text.index(END)], re.MULTILINE)[1:]
    cells = [row.split(" | ") for row in rows]
    return {column: {row[0]: row[place] for row in cells} for place, column in enumerate(COLUMNS, 1)}


def main() -> None:
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    with ThreadPoolExecutor() as threads:
        found = dict(zip(COLUMNS, threads.map(run, COLUMNS), strict=True))
    PAGE.write_text(before + table(found) + after)


if __name__ == "__main__":
    main()
