"""The helper process: it never holds up the gateway, ends with it, and comes back when it dies."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gateway.llm.client import HelperModel, HelperProcess
from gateway.llm.frames import Answered, ToGateway
from gateway.llm.model import Endpoint, ModelError
from tests.llm.conftest import BY_LITELLM, DIRECT, KEY, Make, asking
from tests.patience import PATIENCE_SECONDS
from tests.servers.openai import Hold, Reply, ScriptedOpenAI

pytestmark = pytest.mark.asyncio(loop_scope="session")


def on(server: ScriptedOpenAI, process: HelperProcess, spent: list[object]) -> HelperModel:
    endpoint = Endpoint(name=DIRECT, api_base=server.base_url, api_key=KEY)
    return HelperModel(process, endpoint, lambda model, usage: spent.append((model, usage)))


async def test_starting_returns_at_once_and_calls_wait(server: ScriptedOpenAI, spent: list[object]) -> None:
    process = HelperProcess("test")
    process.start()
    assert process.memory_kb() == 0
    assert (await on(server, process, spent).generate(asking())).text == "ok"
    assert process.memory_kb() > 10_000
    await process.close()
    assert process.pid is None


async def test_no_key_is_on_the_command_line_or_in_the_environment(helper: HelperProcess, make: Make) -> None:
    await make(DIRECT).generate(asking())
    place = Path(f"/proc/{helper.pid}")
    assert KEY.encode() not in (place / "cmdline").read_bytes()
    assert KEY.encode() not in (place / "environ").read_bytes()


async def test_many_calls_at_once_do_not_wait_for_each_other(model: HelperModel, server: ScriptedOpenAI) -> None:
    gate = asyncio.Event()
    server.script(lambda request: Hold(gate, Reply(text=request.last_user)))
    tasks = [asyncio.create_task(model.generate(asking(f"number {n}"))) for n in range(60)]
    await server.arrived(60)
    gate.set()
    assert [answer.text for answer in await asyncio.gather(*tasks)] == [f"number {n}" for n in range(60)]


async def test_a_call_in_a_helper_that_dies_fails_and_the_next_one_is_answered(
    server: ScriptedOpenAI, spent: list[object]
) -> None:
    async with HelperProcess("test") as process:
        model = on(server, process, spent)
        server.script([Hold(asyncio.Event()), Reply(text="back again")])
        call = asyncio.create_task(model.generate(asking("x" * 400)))
        await server.arrived(1)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ModelError) as failed:
            await call
        assert (failed.value.kind, failed.value.retryable) == ("helper_died", True)
        assert [usage for _, usage in spent] == [failed.value.usage]  # type: ignore[misc]
        assert (await model.generate(asking())).text == "back again"
        assert process.starts == 2


async def test_closing_ends_calls_and_their_cost_is_reported(server: ScriptedOpenAI, spent: list[object]) -> None:
    process = HelperProcess("test")
    process.start()
    server.script([Hold(asyncio.Event())])
    call = asyncio.create_task(on(server, process, spent).generate(asking()))
    received = await server.arrived(1)
    await process.close()
    with pytest.raises(ModelError) as failed:
        await call
    assert failed.value.kind == "helper_died"
    assert len(spent) == 1
    await received.over.wait()
    assert received.closed_at is not None
    with pytest.raises(ModelError):
        await on(server, process, spent).generate(asking())


async def test_a_helper_that_was_never_started_can_be_closed() -> None:
    await HelperProcess("test").close()


async def test_cancelling_right_away_leaves_nothing_behind(model: HelperModel, server: ScriptedOpenAI) -> None:
    for pauses in range(6):
        task = asyncio.create_task(model.generate(asking()))
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await model.generate(asking())).text == "ok"


async def test_a_cancelled_call_is_counted_once_whenever_it_was_cancelled(
    make: Make, server: ScriptedOpenAI, spent: list[object]
) -> None:
    model = make(DIRECT)
    server.script(lambda request: Reply(text="ok", usage=(7, 7)))
    calls, answered = 60, 0
    for pauses in range(calls):
        task = asyncio.create_task(model.generate(asking("to be cancelled")))
        for _ in range(pauses):
            await asyncio.sleep(0)
        answered += task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def asked() -> int:
        return sum(request.last_user == "to be cancelled" for request in server.requests)

    await model.generate(asking("a barrier"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(spent) < asked() - answered:  # connections are still being closed
            await model.generate(asking("another barrier"))
    assert asked() - answered <= len(spent) <= calls - answered  # one that was about to ask counts too


async def test_an_answer_in_the_very_instant_of_the_cancelling_is_counted(
    server: ScriptedOpenAI, spent: list[object]
) -> None:
    class Cancelling(HelperProcess):
        def _take(self, frame: ToGateway) -> None:
            super()._take(frame)
            if isinstance(frame, Answered):
                task.cancel()

    async with Cancelling("test") as process:
        model = on(server, process, spent)
        task = asyncio.create_task(model.generate(asking()))
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(spent) == 1


async def test_the_loop_is_never_stalled_by_answers_or_by_litellm(model: HelperModel, server: ScriptedOpenAI) -> None:
    server.script(lambda request: Reply(text=" ".join(str(n) for n in range(2000)), chunks=400))
    await model.generate(asking())
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    watcher = asyncio.create_task(watch())
    await asyncio.gather(*(model.generate(asking("x" * 300_000)) for _ in range(3)))
    watcher.cancel()
    assert longest < 0.3  # CPU of one pass, the scripted server's parsing of our prompts included


async def test_the_helper_ends_when_the_gateway_is_killed(server: ScriptedOpenAI) -> None:
    code = (
        "import asyncio\n"
        "from gateway.llm.client import HelperProcess\n"
        "async def main():\n"
        "    async with HelperProcess('orphan') as process:\n"
        "        await process.ready()\n"
        "        print(process.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    gateway = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert gateway.stdout is not None
    pid = int(await gateway.stdout.readline())
    gateway.kill()
    await gateway.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while _runs(pid):
            await asyncio.sleep(0.01)


async def test_litellm_is_loaded_only_when_a_model_needs_it(server: ScriptedOpenAI, spent: list[object]) -> None:
    async with HelperProcess("test", warm=(DIRECT,)) as process:
        await on(server, process, spent).generate(asking())
        assert process.memory_kb() < 100_000


async def test_the_session_helper_was_warmed_for_litellm(helper: HelperProcess, make: Make) -> None:
    await make(BY_LITELLM).generate(asking())
    assert helper.starts == 1
    assert helper.memory_kb() > 100_000


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
