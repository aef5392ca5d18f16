"""The gateway's end of a helper process: starts it, starts it again, and asks models through it.

Here: one helper's life, and the `Model` that asks through it. Not here: retries and other models (`chain`), providers,
and anything that could hold up the event loop: encoding a prompt is the most that is done in it.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import gateway
from gateway.llm.attempt import estimated_prompt_tokens
from gateway.llm.frames import (
    Answered,
    Ask,
    Cancel,
    Cancelled,
    Failed,
    Frame,
    Ready,
    ToGateway,
    Warm,
    encoded,
    read_for_gateway,
)
from gateway.llm.model import Endpoint, Generation, ModelError, OnSpent, Request, Usage
from gateway.llm.refusals import model_error

CALLS_MAX = 256
START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 3.0
REAP_SECONDS = 0.005
BACKOFF_SECONDS = (0.1, 0.5, 2.0, 10.0, 30.0)
STEADY_SECONDS = 60.0  # a helper that lived this long starts the back-off anew


class _Call:
    """A call that the helper has. `abandoned` once the caller is gone and only its cost is still of interest."""

    def __init__(self, endpoint: Endpoint, request: Request, on_spent: OnSpent) -> None:
        self.endpoint = endpoint
        self.request = request
        self.on_spent = on_spent
        self.frame: asyncio.Future[Answered | Failed | Cancelled] = asyncio.get_running_loop().create_future()
        self.abandoned = False

    def spent(self, usage: Usage | None) -> None:
        if usage is not None:
            self.on_spent(self.endpoint.name, usage)


class HelperProcess:
    """One helper, shared by the models that ask through it; the brain has one, the actors another.

    `start` returns at once and calls wait for the process, so the gateway's own start does not. When it dies, the calls
    in it raise ModelError (helper_died, retryable), and it is started again, with back-off. `warm` names the models
    that should not have to wait for litellm's import at their first call.
    """

    def __init__(self, label: str, *, warm: tuple[str, ...] = ()) -> None:
        self.label = label
        self.starts = 0
        self._warm = warm
        self._calls: dict[int, _Call] = {}
        self._last_id = 0
        self._slots = asyncio.Semaphore(CALLS_MAX)
        self._connected = asyncio.Event()
        self._ready = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Start the process in the background. Must be called inside the running loop; again is no harm."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"llm helper, {self.label}")

    async def close(self) -> None:
        """End the process and wait for it. Calls in it are cancelled there, and their cost is still reported."""
        self._closing.set()
        if self._keeper is None:
            return
        if self._writer is not None:
            self._writer.write_eof()
        done, _ = await asyncio.wait({self._keeper}, timeout=STOP_SECONDS_MAX)
        if not done and self._process is not None:
            self._process.kill()
        await self._keeper

    async def __aenter__(self) -> "HelperProcess":
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(self) -> None:
        """Wait until the process has said that it is up. A call need not: it waits in the socket."""
        await self._ready.wait()

    @property
    def pid(self) -> int | None:
        """The process's id, None while there is none."""
        return self._process.pid if self._process is not None else None

    def memory_kb(self) -> int:
        """Resident memory of the process in KB, 0 while there is none."""
        if self.pid is None:
            return 0
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)

    async def ask(self, endpoint: Endpoint, request: Request, on_spent: OnSpent) -> Generation:
        """See `Model.generate`. At most CALLS_MAX at once; more wait their turn."""
        self.start()
        async with self._slots:
            writer = await self._connection(endpoint)
            call = _Call(endpoint, request, on_spent)
            self._last_id += 1
            call_id = self._last_id
            writer.write(_encoded_ask(call_id, endpoint, request))
            self._calls[call_id] = call
            try:
                frame = await call.frame
            except asyncio.CancelledError:
                call.abandoned = True
                if call.frame.cancelled():
                    self._write(Cancel(id=call_id))
                elif isinstance(frame := call.frame.result(), Answered):  # it came in the same instant
                    call.spent(frame.generation.usage)
                raise
        if isinstance(frame, Answered):
            return frame.generation
        if isinstance(frame, Cancelled):  # not by the caller: the process ended
            said = f"the helper of the {self.label} ended"
            raise model_error(endpoint, "helper_died", said, usage=frame.usage)
        raise ModelError(
            frame.kind,
            frame.for_operator,
            retryable=frame.retryable,
            retry_after_seconds=frame.retry_after_seconds,
            usage=frame.usage,
        )

    async def _connection(self, endpoint: Endpoint) -> asyncio.StreamWriter:
        if self._writer is None and not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS_MAX):
                    await self._connected.wait()
        if self._writer is None:
            raise model_error(endpoint, "helper_died", f"the helper of the {self.label} is not running")
        return self._writer

    def _write(self, frame: Frame) -> None:
        if self._writer is not None:
            self._writer.write(encoded(frame))

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._closing.is_set():
            started = loop.time()
            with contextlib.suppress(OSError):  # no process or descriptor to be had: tried again like a death
                await self._live()
            failures = 0 if loop.time() - started > STEADY_SECONDS else failures + 1
            pause = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1] if failures else 0.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._closing.wait()

    async def _live(self) -> None:
        """From the start of one process to its end."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._process = _spawn(theirs)  # forking takes a millisecond: no thread for it
        self.starts += 1
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        self._writer = writer
        self._write(Warm(names=self._warm))
        self._connected.set()
        try:
            while True:
                self._take(await read_for_gateway(reader))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._connected.clear()
            self._ready.clear()
            self._process = self._writer = None
            process.kill()
            writer.close()
        self._lose_calls()
        while process.poll() is None:  # it was killed: this reaps it, without a thread that would stay
            await asyncio.sleep(REAP_SECONDS)

    def _take(self, frame: ToGateway) -> None:
        if isinstance(frame, Ready):
            self._ready.set()
            return
        call = self._calls.pop(frame.id)
        _settle(call, frame)

    def _lose_calls(self) -> None:
        calls, self._calls = self._calls, {}
        for call_id, call in calls.items():
            usage = Usage(prompt_tokens=estimated_prompt_tokens(call.request), estimated=True)
            _settle(call, Cancelled(id=call_id, usage=usage))


class HelperModel:
    """A `Model` behind a helper process. Several may share one. Retries nothing: see `chain`."""

    def __init__(self, helper: HelperProcess, endpoint: Endpoint, on_spent: OnSpent | None = None) -> None:
        self._helper = helper
        self._endpoint = endpoint
        self._on_spent = on_spent

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return await self._helper.ask(self._endpoint, request, on_spent or self._on_spent or _not_counted)


def _not_counted(model: str, usage: Usage) -> None:
    """Whoever gave no `on_spent` does not want to know."""


def _settle(call: _Call, frame: Answered | Failed | Cancelled) -> None:
    """Give the caller its answer; what nobody waits for, or what brought none, is counted as spent."""
    if not isinstance(frame, Answered):
        call.spent(frame.usage)
    elif call.abandoned:
        call.spent(frame.generation.usage)
    if not call.frame.done():
        call.frame.set_result(frame)


def _encoded_ask(call_id: int, endpoint: Endpoint, request: Request) -> bytes:
    try:
        return encoded(Ask(id=call_id, endpoint=endpoint, request=request))
    except (ValueError, OverflowError) as error:
        raise model_error(endpoint, "context_too_long", str(error)) from None


def _spawn(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """In a session of its own: a Ctrl-C in the terminal is the gateway's to answer. Nothing secret is in its arguments,
    and nothing of ours is added to its environment but where to find the code and litellm's switch."""
    home = str(Path(gateway.__file__).parent.parent)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": home}
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", "gateway.llm.helper", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
