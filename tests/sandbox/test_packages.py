"""What code can import beside Python itself is installed by the host, from wheels alone, and read-only inside."""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from actors.primitives.packages import installing
from actors.sandbox.folder import Folder
from actors.sandbox.packages.install import Curated, NotInstalled, Own, installed
from actors.workshop import Caller, PrimitiveError
from gateway.addresses import Address
from gateway.events import Person
from gateway.package_names import is_allowed, wanted
from tests.sandbox.desk import Desk, hardened


def wheel(folder: Path, name: str, version: str = "1.0", needs: str = "") -> None:
    """One with a module of its name, made by hand."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": "\n".join([*lines, f"{info}/RECORD,,", ""])}.items():
            archive.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the operator's pip finds: the wheels of one folder, and no network."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    wheel(folder, "first")
    wheel(folder, "second", needs="first")
    wheel(folder, "first", "2.0")
    return folder


async def test_what_the_operator_has_made_is_imported_and_cannot_be_changed(tmp_path: Path, index: Path) -> None:
    environment = Curated(tmp_path / "packages", sys.executable, ["first==1.0"])
    assert not environment.is_there
    await environment.make()
    assert installed(environment.path) == {"first": "1.0"}
    assert environment.modules() == ["first"]
    isolation = await hardened(python=sys.executable)
    desk = Desk(tmp_path / "box", isolation=isolation.with_packages(environment.path))
    assert (await desk.run("import first; first.version")).value == "'1.0'"
    program = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import first'], check=True).returncode"
    assert (await desk.run(program)).value == "0"
    own = Own(Folder(desk.sandbox.workspace.parent).packages, sys.executable, environment.path)
    assert await own.add("second") == ["second 1.0"]  # in the version of `first` that is there
    assert (await desk.run("import second, first; first.version")).value == "'1.0'"
    for name in ("first", "second"):
        assert "Errno" in (await desk.run(f"import {name}; open({name}.__file__, 'a')")).value
    await desk.sandbox.kill()


async def test_what_is_no_wheel_is_not_installed_and_nothing_of_it_runs(tmp_path: Path, index: Path) -> None:
    ran = tmp_path / "ran"
    source = index / "third-1.0"
    source.mkdir()
    (source / "setup.py").write_text(
        f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='third', version='1.0')"
    )
    with zipfile.ZipFile(index / "third-1.0.zip", "w") as archive:
        archive.write(source / "setup.py", "third-1.0/setup.py")
    with pytest.raises(NotInstalled, match="third"):
        await Curated(tmp_path / "packages", sys.executable, ["third"]).make()
    assert not ran.exists()
    assert [*(tmp_path / "packages").iterdir()] == []


@pytest.mark.parametrize("text", ["polars", "Polars == 1.9", "ruamel.yaml", "a[b,c]>=1,<2", "x~=1.0", "x==1.*"])
def test_a_name_with_its_versions_is_one(text: str) -> None:
    assert wanted(text) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-r /etc/passwd",
        "--index-url=http://evil.example/",
        "git+https://evil.example/x",
        "https://evil.example/x.whl",
        "x @ https://evil.example/x.whl",
        "./x",
        "/x",
        "..",
        "x.whl/y",
        "x;python_version>'3'",
        "file:x",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no name of a package"):
        wanted(text)


def test_names_are_compared_as_an_index_does() -> None:
    assert is_allowed("Ruamel.Yaml==1.0", ["ruamel_yaml"])
    assert not is_allowed("ruamel.yaml.evil", ["ruamel_yaml"])
    assert is_allowed("anything", ["*"])


async def test_the_operator_says_what_may_be_installed() -> None:
    caller = Caller(action="a1", by=Person(name="Ana", address=Address(medium="telegram", user="42")))

    async def add(caller: Caller, name: str) -> list[str]:
        if name == "second":
            raise NotInstalled("ERROR: no such version")
        return [f"{caller.action} {name}"]

    assert installing([], add) == []
    (install,) = installing(["first", "second"], add)
    assert "first, second" in install.doc
    assert await install.run(caller, {"name": "First==1.0"}) == ["a1 First==1.0"]
    for name, why in (("evil", "may not be installed"), ("--pre", "is no name"), ("second", "no such version")):
        with pytest.raises(PrimitiveError, match=why):
            await install.run(caller, {"name": name})
