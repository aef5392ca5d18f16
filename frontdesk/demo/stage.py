"""What the demo plays on: a folder, and in it the gateway as a process of its own, that can be killed as by a crash."""

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

from actors.sandbox.host import Sandbox
from actors.sandbox.isolation.bare import Bare
from frontdesk.demo.find_model import Found
from frontdesk.serve import local_token
from gateway.config import load
from gateway.record import Record
from gateway.written import Listen

DATA = Path(__file__).with_name("data") / "sales.csv"
START_SECONDS, LOOK_EVERY = 20.0, 0.02
LINES_SHOWN = 5

CONFIG = """\
# Made by `frontdesk demo`.
[assistant]
name = "Frontdesk"

[model]
name = "{model}"
{extra}
[store]
path = "frontdesk.db"

[mediums.web]
listen = "{listen}"

[sandbox]
allow_unisolated = true

[[contacts]]
name = "Sarah Lind"
role = "guest"
addresses = ["email:sarah.lind@example.org"]

[[contacts]]
name = "Sarah Okafor"
role = "guest"
addresses = ["email:sarah.okafor@example.org"]
"""


class Options(Record, frozen=True, kw_only=True):
    plain: bool = False
    data: Path | None = None
    model: str | None = None
    pace_seconds: float = 1.0
    listen: str = "127.0.0.1:0"


class DemoFailed(Exception):
    """In words for whoever runs it."""


class Stage:
    """The gateway in its folder; `url` is its page, for who has the `token`. Raises DemoFailed."""

    def __init__(self, folder: Path, options: Options, found: Found) -> None:
        self._folder, self._pace_seconds = folder, options.pace_seconds
        self._listen = _free(options.listen)
        _lay_out(folder, self._listen, options.data or DATA, found)
        self.url, self.token = f"http://{self._listen}", local_token(load(folder / "config.toml", os.environ))
        self._process: asyncio.subprocess.Process | None = None
        self._restarting = asyncio.Lock()

    async def start(self) -> None:
        """Until it listens."""
        with (self._folder / "gateway.log").open("ab") as log:
            command = ("-m", "frontdesk.demo.gateway", str(self._folder), str(self._pace_seconds))
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await _listens(self._listen):
                    if self._process.returncode is not None:
                        raise self._failed("The gateway could not start")
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise self._failed(f"The gateway did not listen within {START_SECONDS:.0f} s") from None

    async def kill_and_start(self) -> None:
        async with self._restarting:
            assert self._process is not None
            self._process.kill()
            await self._process.wait()
            await self.start()

    async def ended_by_itself(self) -> None:
        """Raises DemoFailed when it does; a kill on purpose is none."""
        while True:
            process = self._process
            assert process is not None
            await process.wait()
            async with self._restarting:
                if process is self._process:
                    raise self._failed("The gateway ended")

    async def stop(self) -> None:
        """Its sandboxes would outlive it, so that a restart finds them again; here they end with the demo."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
        for one in (self._folder / "frontdesk.db.actions").glob("*"):
            await Sandbox(one, lambda _: None, Bare()).kill()

    def _failed(self, what: str) -> DemoFailed:
        lines = (self._folder / "gateway.log").read_text("utf-8", "replace").splitlines()
        return DemoFailed("\n".join([f"{what}. Its last words:", *lines[-LINES_SHOWN:]]))


def _free(listen: str) -> Listen:
    """Fixed before the start, so that the page finds the gateway again after the restart."""
    try:
        wished = Listen.parse(listen)
    except ValueError as error:
        raise DemoFailed(f"--listen {error}") from error
    with socket.socket(socket.AF_INET6 if ":" in wished.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((wished.host, wished.port))
        except OSError as error:
            raise DemoFailed(f"--listen {wished} cannot be used ({error.strerror}): name another one") from error
        return Listen(wished.host, probe.getsockname()[1])


def _lay_out(folder: Path, listen: Listen, data: Path, found: Found) -> None:
    extra = f'api_base = "{found.api_base}"\n' if found.api_base else ""
    extra += f'api_key = "env:{found.key}"\n' if found.key else ""
    (folder / "config.toml").write_text(CONFIG.format(model=found.name, extra=extra, listen=listen))
    (folder / "files").mkdir()
    shutil.copyfile(data, folder / "files" / "sales.csv")


async def _listens(there: Listen) -> bool:
    try:
        _, writer = await asyncio.open_connection(there.host, there.port)
    except OSError:
        return False
    writer.close()
    return True
