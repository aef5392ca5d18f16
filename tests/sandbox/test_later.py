"""What few sessions need is not in the memory of all, and is there as ever for code that wants it."""

import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from actors.sandbox.worker.later import put_off
from tests.sandbox.desk import Desk

MakeHeavy = Callable[[Callable[[], None]], types.ModuleType]

PLAIN_SERVER = """
import asyncio
async def answer(reader, writer):
    writer.write(b"this is no TLS" * 10)
    writer.close()
server = await asyncio.start_server(answer, "127.0.0.1", 0)
try: await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1], ssl=True)
except Exception as error: said = type(error).__name__
said
"""


@pytest.mark.parametrize("stateful", [True, False])
async def test_openssl_is_not_loaded_for_code_that_does_not_ask(desk: Desk, stateful: bool) -> None:
    code = "import asyncio, sys\nawait asyncio.sleep(0)\n'_ssl' in sys.modules"
    assert (await desk.run(code, stateful=stateful)).value == "False"


async def test_all_modules_can_be_looked_through(desk: Desk) -> None:
    code = "import sys\n['re' in str([one for one in sys.modules.values() if hasattr(one, '__version__')])]"
    assert (await desk.run(f"{code} + ['_ssl' in sys.modules]")).value == "[True, False]"


async def test_an_import_of_ssl_is_as_ever(desk: Desk) -> None:
    code = "import ssl\nlen(vars(ssl)) > 100, ssl.__spec__.loader is ssl.__loader__"
    assert (await desk.run(code)).value == "(True, True)"
    assert (await desk.run("from ssl import *\nCERT_REQUIRED.value")).value == "2"


async def test_asyncio_has_its_tls_without_an_import(desk: Desk) -> None:
    assert (await desk.run(PLAIN_SERVER)).value == "'SSLError'"


@pytest.fixture
def make_heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeHeavy]:
    """Of a module that is put off and imported twice; what it is made with is called while it loads."""

    def make(load: Callable[[], None]) -> types.ModuleType:
        (tmp_path / "heavy.py").write_text("import told\ntold.load()\nweight = 5\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(sys.modules, "told", SimpleNamespace(load=load))
        with put_off("heavy"):
            importlib.import_module("heavy")
            return importlib.import_module("heavy")

    yield make
    sys.modules.pop("heavy", None)


def test_what_is_put_off_is_loaded_once_and_whole(make_heavy: MakeHeavy) -> None:
    loads: list[int] = []
    heavy = make_heavy(lambda: loads.append(1))
    assert not loads
    assert vars(importlib.import_module("heavy"))["weight"] == heavy.weight == 5
    assert loads == [1]


def test_another_thread_never_sees_half_of_it(make_heavy: MakeHeavy) -> None:
    looks = threading.Event()
    found: list[int] = []

    def look() -> None:
        looks.set()
        found.append(heavy.weight)

    other = threading.Thread(target=look)

    def load() -> None:
        other.start()
        looks.wait()

    heavy = make_heavy(load)
    assert heavy.weight == 5
    other.join()
    assert found == [5]


def test_loading_that_was_interrupted_begins_again(make_heavy: MakeHeavy) -> None:
    interrupts = [KeyboardInterrupt()]

    def load() -> None:
        if interrupts:
            raise interrupts.pop()

    heavy = make_heavy(load)
    with pytest.raises(KeyboardInterrupt):
        _ = heavy.weight
    assert heavy.weight == 5
