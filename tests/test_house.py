"""The house rules that no other tool checks."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("gateway", "mediums", "brain", "actors", "frontdesk", "bench")
LOCKS = ("requirements.lock", "requirements-dev.lock")
REGISTRIES = tuple(".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")))
PASSED_OVER = {".git", ".venv", "__pycache__", "dist", "node_modules"}


def texts() -> list[Path]:
    files = [path for path in ROOT.rglob("*") if not PASSED_OVER & {*path.relative_to(ROOT).parts} and path.is_file()]
    return [path for path in files if b"\0" not in path.read_bytes()[:1024] and "_cache" not in str(path)]


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def asked_for() -> dict[str, list[str]]:
    """The names that pyproject.toml asks of each lock file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    run = [*project["project"]["dependencies"], *groups["build"]]
    dev = [*run, *(wanted for wanted in groups["dev"] if isinstance(wanted, str))]
    return {
        lock: [re.split(r"[=<>\[]", wanted)[0] for wanted in names]
        for lock, names in zip(LOCKS, (run, dev), strict=True)
    }


def test_no_file_names_a_package_registry():
    naming = [path for path in texts() if any(host in path.read_text(errors="replace") for host in REGISTRIES)]
    assert naming == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_of_a_lock_has_a_hash_and_no_address(lock):
    text = (ROOT / lock).read_text()
    requirements = re.split(r"\n(?=[a-z0-9])", text)
    assert [found for found in requirements if not re.match(r"[a-z0-9._-]+==\S+ .*\\\n    --hash=sha256:", found)] == []
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_what_the_project_asks_for(lock):
    assert {*asked_for()[lock]} <= pins(lock).keys()


def test_both_locks_pin_the_same_versions():
    assert pins(LOCKS[0]).items() <= pins(LOCKS[1]).items()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_owns(package):
    modules = [path for path in (ROOT / package).rglob("*.py") if path.read_text().strip()]
    assert [path for path in modules if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_every_make_command_that_is_spoken_of_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    spoken = {found for page in ROOT.glob("*.md") for found in re.findall(r"`?make ([a-z]+)`", page.read_text())}
    assert spoken | {"demo", "test", "check", "bench", "soak", "lock", "clean"} <= targets


# --- the rules that tests/conftest.py adds ---------------------------------------------------------------------------

RULES = """
import subprocess, threading, pytest

def test_leaves_a_process():
    subprocess.Popen(["sleep", "30"])

def test_leaves_a_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def test_that_needs_a_server():
    pytest.skip("needs a server")

@pytest.mark.skipif(True, reason="needs a browser")
def test_that_needs_a_browser(): ...

def test_skipped_for_another_reason():
    pytest.skip("on this system the clock stands still")
"""


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", "1 failed, 2 passed, 1 skipped, 3 errors"), ("", "2 passed, 3 skipped, 2 errors")]
)
def test_a_leftover_is_an_error_and_a_want_is_a_failure_on_ci(tmp_path, ci, outcome):
    (tmp_path / "test_rules.py").write_text(RULES)
    (tmp_path / "conftest.py").write_text(
        (ROOT / "tests/conftest.py").read_text().replace("GRACE_SECONDS = 20.0", "GRACE_SECONDS = 0")
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "CI": ci},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert outcome in ended.stdout
    assert "left running: process " in ended.stdout
    assert "left running: thread Thread-" in ended.stdout
