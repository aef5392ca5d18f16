"""Packages from wheels alone: they are unpacked, and nothing of them runs here. By pip, as the operator has set it up.

    <curated>/<key>/        what all sandboxes can import; `key` says for which interpreter and which packages
    <sandbox>/packages/     what this one has asked for

A folder is filled beside its place and put there when it is whole; a sandbox can only read it.
"""

import asyncio
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from gateway.package_names import plain

CURATED = Path(__file__).with_name("curated.lock")
CURATED_NAMES = Path(__file__).with_name("curated.in")
SECONDS = 600.0
BYTES_MAX = 512 << 20  # of what one sandbox has asked for
SAID_CHARACTERS = 600
PASSED_ON = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TMPDIR|PIP_\w+|XDG_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|(https?|no|all)_proxy", re.I
)


class NotInstalled(Exception):
    """The text says why, in pip's own words where they help."""


class Curated:
    """What all sandboxes share. `names` None: the list that comes with Frontdesk, checked by its hashes."""

    def __init__(self, folder: Path, python: str, names: Sequence[str] | None) -> None:
        self._python, self._names = python, names
        asked = CURATED.read_text() if names is None else "\n".join(sorted(names))
        self.path = folder.absolute() / hashlib.sha256(f"{python}\n{asked}".encode()).hexdigest()[:16]

    @property
    def is_there(self) -> bool:
        return self.path.is_dir()

    def asked(self) -> list[str]:
        """Names of packages, as they were asked for."""
        if self._names is not None:
            return [*self._names]
        return [line for line in CURATED_NAMES.read_text().splitlines() if line and not line.startswith("#")]

    def modules(self) -> list[str]:
        """By which names what is there and was asked for is imported."""
        asked = {plain(re.split(r"[^\w.-]", name)[0]) for name in self.asked()}
        found: set[str] = set()
        for one in distributions(path=[str(self.path)]) if self.is_there else ():
            if plain(one.metadata["Name"]) in asked:
                found |= {file.parts[0].removesuffix(".py") for file in one.files or () if file.name == "__init__.py"}
        return sorted(name for name in found if name.isidentifier())

    async def make(self) -> None:
        """Anew, if it is there. Raises NotInstalled."""
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=self.path.parent) as place:
            fresh = Path(place) / "packages"
            fresh.mkdir(mode=0o755)
            if self._names is None:
                await _pip(self._python, fresh, "--require-hashes", "--requirement", str(CURATED))
            elif self._names:
                await _pip(self._python, fresh, *self._names)
            if self.path.exists():
                self.path.replace(Path(place) / "old")
            fresh.replace(self.path)


class Own:
    """What one sandbox has beside it. One installs at a time."""

    _turn = asyncio.Lock()

    def __init__(self, path: Path, python: str, curated: Path | None) -> None:
        self._path, self._python, self._curated = path.absolute(), python, curated

    async def add(self, wanted: str) -> list[str]:
        """Installs it with what it needs, in the versions that are there already; returns what is new. Raises
        NotInstalled, with nothing changed."""
        async with self._turn:
            with tempfile.TemporaryDirectory(prefix="packages-", dir=self._path.parent) as place:
                fresh, known = Path(place) / "new", Path(place) / "known.txt"
                fresh.mkdir(mode=0o755)
                there = installed(self._path) | (installed(self._curated) if self._curated else {})
                known.write_text("".join(f"{name}=={version}\n" for name, version in there.items()))
                await _pip(self._python, fresh, "--constraint", str(known), wanted)
                if await asyncio.to_thread(_size, fresh) + await asyncio.to_thread(_size, self._path) > BYTES_MAX:
                    raise NotInstalled(
                        f"{wanted} with what it needs takes more than the {BYTES_MAX >> 20} MB there are"
                    )
                new = {name: version for name, version in installed(fresh).items() if name not in there}
                await asyncio.to_thread(_merge, fresh, self._path)
        return [f"{name} {version}" for name, version in new.items()]


def installed(folder: Path) -> dict[str, str]:
    """Version by name of what is in there."""
    found = distributions(path=[str(folder)]) if folder.is_dir() else ()
    return dict(sorted((one.metadata["Name"], one.version) for one in found))


async def _pip(python: str, target: Path, *arguments: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-input",
        "--quiet",
        "--progress-bar=off",
    ]
    command += ["--disable-pip-version-check", "--no-warn-script-location", "--only-binary=:all:", f"--target={target}"]
    environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=target,
        env=environment,
        umask=0o022,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        raise NotInstalled(f"pip was not done in {SECONDS:.0f} seconds") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise NotInstalled(_why(said.decode(errors="replace")))


def _why(said: str) -> str:
    """Without the addresses of indexes, in which a password may stand."""
    errors = [line for line in said.splitlines() if line.startswith("ERROR") or "No module named pip" in line]
    return re.sub(r"\w+://\S+", "…", " ".join(errors) or said)[-SAID_CHARACTERS:].strip() or "pip said nothing"


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _merge(source: Path, target: Path) -> None:
    """What is there stays: code may have imported it."""
    for path in source.iterdir():
        place = target / path.name
        if not place.exists():
            path.replace(place)
        elif place.is_dir() and path.is_dir():  # a namespace that several packages share
            _merge(path, place)
        else:
            continue
    shutil.rmtree(source, ignore_errors=True)
