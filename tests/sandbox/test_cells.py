"""What happens to a piece of code: its value, its output, its errors, its surroundings."""

import ast
import os
import re
import sys
from pathlib import Path

import pytest

from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.probe import PREFERRED_PYTHON
from actors.sandbox.words import CellDone, CellLost, Name
from actors.sandbox.worker import whole
from tests.sandbox.desk import Desk


async def test_the_value_of_the_last_expression_comes_back(desk: Desk) -> None:
    assert (await desk.run("a = 20\na + 1.5")).value == "21.5"


async def test_a_cell_without_a_last_expression_has_no_value(desk: Desk) -> None:
    assert (await desk.run("a = 20")).value == ""


async def test_await_works_at_the_top_level(desk: Desk) -> None:
    assert (await desk.run("import asyncio\nx = await asyncio.sleep(0, 'slept')\nx")).value == "'slept'"


async def test_asyncio_run_works_in_plain_code(desk: Desk) -> None:
    code = "import asyncio\nasync def main(): return 5\nasyncio.run(main())"
    assert (await desk.run(code, stateful=True)).value == "5"
    assert (await desk.run("await main()", stateful=True)).value == "5"


async def test_a_stateful_session_keeps_its_names_and_a_clean_slate_has_none(desk: Desk) -> None:
    await desk.run("kept = 7", stateful=True)
    assert (await desk.run("kept", stateful=True)).value == "7"
    assert "NameError" in (await desk.run("kept")).value


async def test_names_and_types_of_the_stateful_session(desk: Desk) -> None:
    assert await desk.sandbox.names() == ()
    await desk.run("import os\nrows = [1]\ntitle = 'x'\n_hidden = 1", stateful=True)
    assert await desk.sandbox.names() == (Name(name="rows", kind="list"), Name(name="title", kind="str"))


async def test_names_are_not_known_while_a_cell_runs(desk: Desk) -> None:
    cell = await desk.begin("primitives.notify('go').result()", stateful=True)
    call = await desk.call()
    assert await desk.sandbox.names() is None
    desk.sandbox.reply(call.rpc)
    await desk.end(cell)


async def test_output_of_python_and_of_programs_keeps_its_order(desk: Desk) -> None:
    code = (
        "import sys, subprocess\nprint('one')\nsubprocess.run(['echo', 'two'])\n"
        "print('three', file=sys.stderr)\nprint('four', end='')"
    )
    await desk.end(cell := await desk.begin(code))
    assert desk.sandbox.peek(cell) == "one\ntwo\nthree\nfour"


async def test_output_is_seen_while_the_cell_runs(desk: Desk) -> None:
    cell = await desk.begin("print('early')\nprimitives.notify('go').result()\nprint('late')")
    call = await desk.call()
    assert await desk.output(cell, "early") == "early\n"
    desk.sandbox.reply(call.rpc)
    await desk.end(cell)
    assert desk.sandbox.peek(cell) == "early\nlate\n"


async def test_fresh_returns_each_character_once(desk: Desk) -> None:
    cell = await desk.begin("print('one')\nprimitives.notify('go').result()\nprint('two')")
    call = await desk.call()
    await desk.output(cell, "one")
    assert desk.sandbox.fresh(cell) == "one\n"
    assert desk.sandbox.fresh(cell) == ""
    desk.sandbox.reply(call.rpc)
    await desk.end(cell)
    assert desk.sandbox.fresh(cell) == "two\n"


async def test_long_output_keeps_its_beginning_and_its_end(desk: Desk) -> None:
    await desk.end(cell := await desk.begin("print('start', '.' * 3_000_000, 'finish', end='')"))
    text = desk.sandbox.fresh(cell, 1_000)
    assert text.startswith("start ...")
    assert text.endswith(f"... finish\n(All of it, up to 16 MB: .output/{cell}.txt)")
    assert "\n… 2999013 characters left out …\n" in text
    assert len(text) < 1_200
    assert (
        await desk.run(f"open('.output/{cell}.txt').read() == 'start ' + '.' * 3_000_000 + ' finish'")
    ).value == "True"


async def test_of_all_long_output_the_newest_is_kept_and_no_more_than_is_bearable(desk: Desk) -> None:
    for _ in range(whole.FILES_MAX + 1):
        await desk.end(cell := await desk.begin("print('.' * 20_000)"))
    await desk.end(cell := await desk.begin("for _ in range(20): print('é' * 1_000_000)"))
    assert desk.sandbox.fresh(cell).endswith(f".output/{cell}.txt)")
    sizes = (await desk.run("import os; [os.path.getsize(f'.output/{one}') for one in os.listdir('.output')]")).value
    assert sorted(map(int, sizes.strip("[]").split(", "))) == [20_001] * 7 + [whole.FILE_BYTES]


async def test_output_that_cannot_be_kept_is_shown_all_the_same(desk: Desk) -> None:
    await desk.run("open('.output', 'w').close()")
    await desk.end(cell := await desk.begin("print('a' * 30_000); 'b' * 30_000"))
    assert "10001 characters left out" in desk.sandbox.fresh(cell)


async def test_a_long_value_is_cut_in_its_middle(desk: Desk) -> None:
    value = (await desk.run("'a' * 1_000_000")).value
    assert len(value) < 20_000
    assert "characters left out" in value
    path = re.search(r"All of it, up to 16 MB: (.*)\)$", value)
    assert path is not None
    assert (await desk.run(f"open({path[1]!r}).read() == repr('a' * 1_000_000)")).value == "True"


async def test_what_is_no_text_does_not_stop_the_output(desk: Desk) -> None:
    await desk.end(cell := await desk.begin(r"import os; os.write(1, b'\xff<'); print('\ud800>é')"))
    assert desk.sandbox.peek(cell) == "\ufffd<\\ud800>é\n"


async def test_what_a_child_writes_between_cells_is_shown_with_the_next(desk: Desk) -> None:
    code = "import subprocess\nlate = subprocess.Popen(['sh', '-c', 'read go; echo late'], stdin=subprocess.PIPE)"
    await desk.run(code, stateful=True)
    await desk.run("late.communicate(b'go')", stateful=True)
    await desk.end(cell := await desk.begin("print('now')", stateful=True))
    told = "".join(desk.sandbox.peek(f"cell{number}") for number in (1, 2, 3))
    assert told == "late\nnow\n"
    assert desk.sandbox.peek(cell).endswith("now\n")


async def test_a_traceback_shows_the_codes_own_lines_and_none_of_ours(desk: Desk) -> None:
    done = await desk.run("def share(total):\n    return total / 0\n\nshare(3)")
    assert done.status == "error"
    assert "share(3)" in done.value
    assert "return total / 0" in done.value
    assert done.value.endswith("ZeroDivisionError: division by zero")
    assert "worker" not in done.value


async def test_a_traceback_reaches_into_an_earlier_cell(desk: Desk) -> None:
    await desk.run("def share(total):\n    return total / 0", stateful=True)
    assert "return total / 0" in (await desk.run("share(3)", stateful=True)).value


async def test_a_syntax_error_points_at_its_line(desk: Desk) -> None:
    done = await desk.run("x = 1\ny = = 2")
    assert done.status == "error"
    assert "line 2" in done.value
    assert "SyntaxError" in done.value
    assert "ast.py" not in done.value


async def test_input_says_how_to_ask(desk: Desk) -> None:
    done = await desk.run("input('Which?')")
    assert done.status == "error"
    assert "primitives.request_clarification" in done.value


async def test_system_exit_ends_the_cell_only(desk: Desk) -> None:
    done = await desk.run("kept = 1\nimport sys\nsys.exit('enough')", stateful=True)
    assert (done.status, done.value) == ("exit", "enough")
    assert (await desk.run("kept", stateful=True)).value == "1"


async def test_a_clean_slate_ends_as_a_script_does(desk: Desk) -> None:
    code = """
        import threading
        file = open("left-open.txt", "w")
        file.write("written")
        go = threading.Event()
        threading.Thread(target=lambda: (go.wait(), print("from a thread"))).start()
        threading.Timer(0.01, go.set).start()
    """
    await desk.end(cell := await desk.begin("if True:" + code))
    assert (desk.sandbox.workspace / "left-open.txt").read_text() == "written"
    assert desk.sandbox.peek(cell) == "from a thread\n"


async def test_code_that_forks_ends_once(desk: Desk) -> None:
    code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')"
    await desk.end(cell := await desk.begin(code, stateful=True))
    assert desk.sandbox.peek(cell) == "child\nparent\n"
    assert (await desk.run("pid > 0", stateful=True)).value == "True"


async def test_the_environment_is_minimal_and_the_folder_the_workspace(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "a secret")
    done = await desk.run("import os\n(os.getcwd(), os.environ['HOME'], sorted(os.environ))")
    names = {"HOME", "LANG", "MPLBACKEND", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONPATH"}
    folder, home, found = ast.literal_eval(done.value)
    assert folder == home == ("/workspace" if desk.sandbox.tier == "hardened" else str(desk.sandbox.workspace))
    assert {*found} - {"MPLCONFIGDIR", "PWD", "TMPDIR", "USER", "XDG_CACHE_HOME"} == names


async def test_no_file_of_the_gateway_is_open_inside(desk: Desk, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    held = os.open(secret, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        done = await desk.run(
            "import os\n[path for n in os.listdir('/proc/self/fd') if 'secret' in (path := "
            "os.path.realpath(f'/proc/self/fd/{n}'))]"
        )
    finally:
        os.close(held)
    assert done.value == "[]"


async def test_a_module_in_the_workspace_is_imported_even_with_a_name_of_ours(desk: Desk) -> None:
    await desk.run("open('session.py', 'w').write('mine = 1')")
    assert (await desk.run("import session\nsession.mine")).value == "1"


async def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, make_desk: type[Desk]) -> None:
    desk = make_desk(isolation=Bare(str(tmp_path / "python")))
    lost = await desk.end(await desk.begin("1"))
    assert isinstance(lost, CellLost)
    assert str(tmp_path / "python") in lost.why


async def test_a_sandbox_that_does_not_start_says_what_it_said(make_desk: type[Desk]) -> None:
    desk = make_desk(isolation=Bare(wrapper=("sh", "-c", "echo no namespaces here >&2")))
    lost = await desk.end(await desk.begin("1"))
    assert isinstance(lost, CellLost)
    assert "no namespaces here" in lost.why


async def test_a_wrapper_is_put_before_the_command(make_desk: type[Desk]) -> None:
    desk = make_desk(isolation=Bare(wrapper=("env", "WRAPPED=yes")))
    assert (await desk.run("import os; os.environ['WRAPPED']")).value == "'yes'"


async def test_a_second_stateful_cell_is_refused_while_the_first_runs(desk: Desk) -> None:
    cell = await desk.begin("await primitives.notify('go')", stateful=True)
    call = await desk.call()
    refused = await desk.end(await desk.begin("1", stateful=True))
    assert isinstance(refused, CellLost)
    assert cell in refused.why
    desk.sandbox.reply(call.rpc)
    assert isinstance(await desk.end(cell), CellDone)


async def test_clean_slates_run_side_by_side(desk: Desk) -> None:
    cells = [await desk.begin("await primitives.notify('go')") for _ in range(4)]
    calls = [await desk.call(number) for number in (1, 2, 3, 4)]
    assert desk.sandbox.running() == tuple(cells)
    for call in calls:
        desk.sandbox.reply(call.rpc)
    for cell in cells:
        await desk.end(cell)
    assert desk.sandbox.running() == ()


async def test_a_name_is_used_once(desk: Desk) -> None:
    await desk.begin("1", cell="c")
    with pytest.raises(ValueError, match="c"):
        await desk.sandbox.execute("c", "2", stateful=False)
    await desk.end("c")


async def test_a_path_longer_than_socket_names_may_be(tmp_path: Path, make_desk: type[Desk]) -> None:
    desk = make_desk(tmp_path / ("long" * 40))
    assert (await desk.run("1")).value == "1"


async def test_a_relative_directory(tmp_path: Path, make_desk: type[Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (await make_desk(Path("here")).run("1")).value == "1"


@pytest.mark.parametrize("stateful", [True, False])
async def test_a_crash_is_told_with_its_signal(desk: Desk, stateful: bool) -> None:
    lost = await desk.end(
        await desk.begin("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", stateful=stateful)
    )
    assert isinstance(lost, CellLost)
    assert "SIGSEGV" in lost.why
    assert (await desk.run("1", stateful=stateful)).value == "1"


async def test_leaving_by_os_exit_is_told_with_its_code(desk: Desk) -> None:
    lost = await desk.end(await desk.begin("import os; os._exit(3)"))
    assert isinstance(lost, CellLost)
    assert "exit code 3" in lost.why


async def test_the_interpreter_is_the_given_one(desk: Desk) -> None:
    expected = sys.executable if desk.sandbox.tier == "bare" else PREFERRED_PYTHON
    assert (await desk.run("import sys; sys.executable")).value == repr(expected)
