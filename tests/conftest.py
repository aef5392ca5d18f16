"""What holds for every test: it leaves nothing running, uses no real key, and on CI is not skipped for a want."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

GRACE_SECONDS = 20.0  # for what is ending anyway
POLL_SECONDS = 0.01
MEMORY, MEMORY_FREE_BYTES = Path("/dev/shm"), 2 << 30

for name in list(os.environ):
    if name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_proxy", "_PROXY")):
        del os.environ[name]

# Hundreds of processes of the product start here: from bytecode it takes them half the time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is killed here is processes, never the machine: to memory the same is written in less time, where there is room.
if (
    os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > MEMORY_FREE_BYTES
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Threads and child processes that a test has started end with it, however it ends."""
    threads, children = set(threading.enumerate()), _children()
    yield
    deadline = time.monotonic() + GRACE_SECONDS
    while left := [*(set(threading.enumerate()) - threads), *(_children() - children)]:
        if time.monotonic() > deadline:
            _fail(left)
        time.sleep(POLL_SECONDS)


@pytest.fixture(scope="session", autouse=True)
def mail_servers_end() -> Iterator[None]:
    """They are started by whoever needs them first, in any folder."""
    yield
    from tests.servers.mail import end_processes

    end_processes()


def _children() -> set[int]:
    """Zombies count: nobody has waited for them."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found |= {int(child) for child in (task / "children").read_text().split()}
        except OSError:  # the thread has just ended
            continue
    return found


def _fail(left: list[threading.Thread | int]) -> None:
    names = [f"process {one} ({_command(one)})" if isinstance(one, int) else f"thread {one.name}" for one in left]
    for child in left:
        if isinstance(child, int):
            os.kill(child, signal.SIGKILL)
    pytest.fail(f"left running: {', '.join(names)}", pytrace=False)


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip() or "ended, not waited for"
    except OSError:
        return "ended"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _unskipped((yield))


def _unskipped(report: Any) -> Any:
    """On CI a skip whose reason begins with "needs " is a failure: what the tests need is installed there."""
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if os.environ.get("CI") == "true" and reason.removeprefix("Skipped: ").startswith("needs "):
        report.outcome = "failed"
        report.longrepr = f"{reason}: not to be skipped on CI (.ci/run installs it)"
    return report
