"""The whole tour for pipes: real processes, the real broker, a kill -9 in the middle; figures follow the data."""

import asyncio
import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from frontdesk.demo.find_model import Found
from frontdesk.demo.stage import DemoFailed, Options, Stage
from tests.patience import PATIENCE_SECONDS

DATA = Path(__file__).parents[2] / "frontdesk" / "demo" / "data" / "sales.csv"
TOUR = (
    "total February by region",
    "how far are you?",
    "net, not gross",
    "great, now do March",
    "send it to Sarah",
    "Lind",
    "thanks",
)


COMMAND = (sys.executable, "-m", "frontdesk", "demo", "--model", "rehearsal", "--pace", "0.1")


def plain(lines: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    """All lines at once: each is said when the one before has had its first outcome."""
    return subprocess.run(
        [*COMMAND, *options],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_SECONDS,  # of a whole tour
        check=False,
    )


def toured(*options: str) -> tuple[str, int]:
    """The tour as a person takes it: the answer is given once the question is there."""
    with subprocess.Popen([*COMMAND, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdin is not None
        assert demo.stdout is not None
        demo.stdin.write("\n".join(TOUR[:5]) + "\n")
        demo.stdin.flush()
        told: list[str] = []
        for line in demo.stdout:
            told.append(line)
            if "Which Sarah?" in line:
                demo.stdin.write("\n".join(TOUR[5:]) + "\n")
                demo.stdin.close()
        return "".join(told), demo.wait(timeout=PATIENCE_SECONDS)


def totals(path: Path, month: int, measure: str, group: str) -> dict[str, str]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if int(row["date"][5:7]) == month:
                sums[row[group]] += Decimal(row[measure])
    sums["all"] = sum(sums.values(), Decimal())
    return {name: f"{amount:,.2f}" for name, amount in sums.items()}


def figures_told(output: str, heading: str) -> dict[str, str]:
    """The list below the last such heading."""
    _, _, below = output.rpartition(heading)
    lines = (re.match(r"\s*- (.+): ([\d,.-]+)$", line) for line in below.splitlines()[1:])
    found: dict[str, str] = {}
    for line in lines:
        if line is None:
            break
        found[line[1]] = line[2]
    return found


def other_data(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    rows = [("2025-02-03", "Alps", "Tea", "10.10", "9.00"), ("2025-02-09", "Coast", "Tea", "5.05", "4.01")]
    rows += [("2025-03-01", "Alps", "Tea", "100.00", "80.25"), ("2025-03-02", "Coast", "Salt", "7.70", "7.00")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("date", "region", "product", "gross", "net"), *rows])
    return path


@pytest.mark.parametrize("changed", [False, True])
def test_the_tour_tells_what_python_computed_and_loses_nothing_through_a_kill(tmp_path: Path, changed: bool) -> None:
    data = other_data(tmp_path) if changed else DATA
    told, code = toured("--data", str(data))

    assert code == 0, told
    assert "rehearsal model: rules, not a language model" in told.splitlines()[0]
    assert figures_told(told, "Total net for February by region:") == totals(data, 2, "net", "region")
    assert figures_told(told, "Total net for March by region:") == totals(data, 3, "net", "region")
    assert f"(with the {len(data.read_text().splitlines()) - 1} rows of sales.csv that were in memory already)" in told
    assert told.count("the gateway is killed with -9 now, and started again") == 1
    assert told.count("In the demo's outbox: a mail to sarah.lind@example.org, “Total net for March by region”") == 1
    assert "left alone: thanks need no answer" in told
    assert told.splitlines()[-1] == "7 messages, 6 answered, 1 left alone, 0 lost, 0 doubled"


def test_more_about_a_person_before_the_question_answers_it() -> None:
    """Both are said while the figures are still being added up, which takes four steps."""
    ended = plain(("total net February by region", "send it to Sarah", "Lind"), "--pace", "0.8")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Which Sarah?" not in ended.stdout
    assert ended.stdout.count("In the demo's outbox: a mail to sarah.lind@example.org, “Total net for February") == 1


def test_a_question_stays_open_through_a_kill_and_is_not_all_well_at_the_end() -> None:
    ended = plain(("total March by product", "send it to Sarah"))

    assert "the gateway is killed with -9 now, and started again" in ended.stdout
    assert "Which Sarah?" in ended.stdout
    assert "In the demo's outbox" not in ended.stdout
    assert ended.returncode == 1


def test_what_is_not_understood_is_said_honestly() -> None:
    ended = plain(("write me a poem", "average net for January by product", "send it to Bob"))

    assert "I don't understand that." in ended.stdout
    assert "Average net for January by product:" in ended.stdout
    assert "there is nobody called Bob with a mail address" in ended.stdout
    assert ended.returncode == 0, ended.stdout


def test_missing_data_is_told_and_no_number_is_made_up(tmp_path: Path) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("date,region,product,gross,net\n2026-01-01,North,Lamps,1.00,1.00\n")
    ended = plain(("total February by region",), "--data", str(data))

    assert "There are no rows for February in sales.csv." in ended.stdout
    assert not re.search(r"- \w+: [\d,.]+", ended.stdout)


def test_the_outbox_letter_is_what_was_told(tmp_path: Path) -> None:
    ended = plain(("total gross January by product", "mail it to Sarah Okafor"))

    assert (
        "In the demo's outbox: a mail to sarah.okafor@example.org, “Total gross for January by product”."
        in ended.stdout
    )
    assert "Which Sarah?" not in ended.stdout
    assert ended.returncode == 0
    assert json.dumps(figures_told(ended.stdout, "Total gross for January by product:"))


def test_a_demo_that_cannot_start_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = plain((), "--listen", f"127.0.0.1:{port}")
    assert (refused.returncode, refused.stderr) == (
        1,
        f"Error: --listen 127.0.0.1:{port} cannot be used (Address already in use): name another one\n",
    )


def children_that_name(folder: Path) -> list[int]:
    children = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    return [int(one) for one in children if str(folder).encode() in Path("/proc", one, "cmdline").read_bytes()]


async def test_a_gateway_that_ends_by_itself_ends_the_demo_with_its_last_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Options(), Found(name="rehearsal"))
    try:
        await stage.start()
        ended = asyncio.create_task(stage.ended_by_itself())
        await stage.kill_and_start()
        assert not ended.done()
        (gateway,) = children_that_name(tmp_path)
        os.kill(gateway, signal.SIGKILL)
        with pytest.raises(DemoFailed, match=r"The gateway ended\. Its last words:"):
            await ended
    finally:
        await stage.stop()
