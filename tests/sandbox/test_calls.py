"""Calls of primitives from running code, and their answers."""

import pytest

from actors.sandbox.words import CellCalled, CellDone
from tests.sandbox.desk import Desk


async def answered(desk: Desk, code: str, *values: object, stateful: bool = False) -> tuple[CellDone, list[CellCalled]]:
    """Runs code whose calls get these values in order."""
    cell = await desk.begin(code, stateful=stateful)
    first = sum(isinstance(told, CellCalled) for told in desk.told)
    calls = []
    for number, value in enumerate(values):
        calls.append(await desk.call(first + number + 1))
        desk.sandbox.reply(calls[-1].rpc, value)
    done = await desk.end(cell)
    assert isinstance(done, CellDone), done
    return done, calls


async def test_a_call_arrives_with_its_arguments_by_name(desk: Desk) -> None:
    code = "await primitives.request_clarification('Which Sarah?', options=['Lee', 'Moss'])"
    done, (call,) = await answered(desk, code, "Lee")
    assert (call.method, call.arguments) == (
        "request_clarification",
        {"question": "Which Sarah?", "options": ["Lee", "Moss"]},
    )
    assert done.value == "'Lee'"


async def test_a_dotted_name_and_plain_code(desk: Desk) -> None:
    code = "answer = primitives.mail.send(to='a@example.org', subject='s', text='t').result()\nanswer['id']"
    done, (call,) = await answered(desk, code, {"id": 5})
    assert call.method == "mail.send"
    assert done.value == "5"


async def test_a_method_without_a_stub_takes_names(desk: Desk) -> None:
    _, (call,) = await answered(desk, "await primitives.a.b.c(x=1)", None)
    assert (call.method, call.arguments) == ("a.b.c", {"x": 1})
    assert "by name" in (await desk.run("await primitives.a.b.c(1)")).value


async def test_arguments_that_do_not_fit_are_refused_with_the_signature(desk: Desk) -> None:
    done = await desk.run("await primitives.notify('a', 'b')")
    assert done.status == "error"
    assert "primitives.notify(text: str) -> None" in done.value
    assert not [told for told in desk.told if isinstance(told, CellCalled)]


async def test_an_error_of_the_host_is_raised_at_the_line_that_asked(desk: Desk) -> None:
    code = (
        "try:\n    await primitives.notify('x')\nexcept RemoteError as error:\n    print('caught', error)\n"
        "await primitives.notify('y')"
    )
    cell = await desk.begin(code)
    desk.sandbox.reply((await desk.call(1)).rpc, error="not allowed")
    desk.sandbox.reply((await desk.call(2)).rpc, error="not at all")
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert desk.sandbox.peek(cell) == "caught not allowed\n"
    assert "await primitives.notify('y')" in done.value
    assert done.value.endswith("\nRemoteError: not at all")
    assert "worker" not in done.value


async def test_calls_run_side_by_side_and_are_answered_in_any_order(desk: Desk) -> None:
    code = "import asyncio\nawait asyncio.gather(*[primitives.act(q) for q in 'abc'])"
    cell = await desk.begin(code)
    for number in (3, 1, 2):
        call = await desk.call(number)
        desk.sandbox.reply(call.rpc, call.arguments["query"].upper())
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.value == "['A', 'B', 'C']"


async def test_threads_can_call(desk: Desk) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(3) as pool:\n"
        "    found = sorted(pool.map(lambda q: primitives.act(q).result(), 'abc'))\nfound"
    )
    done, _ = await answered(desk, code, 1, 2, 3)
    assert done.value == "[1, 2, 3]"


async def test_a_call_that_is_the_last_expression_is_waited_for(desk: Desk) -> None:
    done, _ = await answered(desk, "primitives.act('x')", "made")
    assert done.value == "'made'"


async def test_a_bare_call_is_waited_for_and_its_error_seen(desk: Desk) -> None:
    cell = await desk.begin("primitives.notify('x')\nprint('on')", stateful=True)
    call = await desk.call()
    await desk.output(cell, "on")
    assert desk.sandbox.running() == (cell,)
    desk.sandbox.reply(call.rpc, error="muted")
    await desk.end(cell)
    assert desk.sandbox.peek(cell) == "on\nprimitives.notify failed, and nobody waited for it: muted\n"


async def test_a_kept_call_is_looked_at_in_a_later_cell(desk: Desk) -> None:
    await desk.run("task = primitives.act('long')", stateful=True)
    cell = await desk.begin("await task", stateful=True)
    desk.sandbox.reply((await desk.call()).rpc, "at last")
    done = await desk.end(cell)
    assert isinstance(done, CellDone)
    assert done.value == "'at last'"


async def test_a_kept_call_of_a_clean_slate_is_waited_for(desk: Desk) -> None:
    cell = await desk.begin("task = primitives.act('long')\nprint('on')")
    call = await desk.call()
    await desk.output(cell, "on")
    assert desk.sandbox.running() == (cell,)
    desk.sandbox.reply(call.rpc)
    await desk.end(cell)


async def test_a_call_taken_for_its_answer_says_what_it_is(desk: Desk) -> None:
    done, _ = await answered(desk, "primitives.act('x').title", None)
    assert "await call" in done.value


async def test_paths_dates_and_sets_can_be_passed_and_objects_cannot(desk: Desk) -> None:
    code = "import pathlib, datetime\nawait primitives.x(p=pathlib.Path('a'), d=datetime.date(2026, 1, 2), s={1})"
    _, (call,) = await answered(desk, code, None)
    assert call.arguments == {"p": "a", "d": "2026-01-02", "s": [1]}
    assert "a object cannot be passed" in (await desk.run("primitives.x(o=object())")).value


@pytest.mark.parametrize("bad", ["float('nan')", r"'\ud800'", "'a' * (17 << 20)"])
async def test_what_does_not_fit_a_frame_is_an_error_in_the_code(desk: Desk, bad: str) -> None:
    code = f"try:\n    primitives.x(value={bad})\nexcept ValueError:\n    print('refused')"
    await desk.end(cell := await desk.begin(code))
    assert desk.sandbox.peek(cell) == "refused\n"


async def test_an_answer_that_is_no_json_becomes_an_error(desk: Desk) -> None:
    done, _ = await answered(desk, "await primitives.act('x')", object())
    assert "cannot be passed on" in done.value


async def test_rpc_ids_are_never_used_twice(desk: Desk) -> None:
    code = "for _ in range(3): primitives.act('x').result()"
    for _ in range(2):
        await answered(desk, code, 1, 2, 3)
        await answered(desk, code, 1, 2, 3, stateful=True)
    calls = [told.rpc for told in desk.told if isinstance(told, CellCalled)]
    assert len(set(calls)) == len(calls) == 12


async def test_a_child_process_cannot_call(desk: Desk) -> None:
    code = (
        "import os\npid = os.fork()\nif pid == 0:\n    try:\n        primitives.notify('x')\n"
        "    except RuntimeError as error:\n        print(error, flush=True)\n    os._exit(0)\nos.waitpid(pid, 0)"
    )
    await desk.end(cell := await desk.begin(code))
    assert "own process only" in desk.sandbox.peek(cell)
