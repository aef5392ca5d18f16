"""What code can import beside Python itself is installed by the host, from wheels alone, and read-only inside."""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from actors.primitives.packages import installing
from actors.sandbox.packages.install import PASSED_ON, Curated, NotInstalled
from actors.workshop import Caller, PrimitiveError
from frontdesk import packages
from frontdesk.doctor import check
from frontdesk.isolation import choose
from frontdesk.store import workspaces
from gateway.addresses import Address
from gateway.events import Person
from gateway.package_names import is_allowed, wanted
from gateway.settings import SandboxSettings, Settings, StoreSettings
from gateway.written import package_name
from tests.sandbox.desk import Desk, hardened

CALLER = Caller(action="a1", by=Person(name="Ana", address=Address(medium="telegram", user="42")))


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


async def test_what_the_operator_has_made_is_imported_and_cannot_be_changed(
    tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await hardened(python=sys.executable)
    sandbox = SandboxSettings(python=Path(sys.executable), packages=(package_name("first==1.0"),))
    settings = Settings(store=StoreSettings(path=tmp_path / "desk.db"), sandbox=sandbox)
    choice = await choose(settings.sandbox)
    assert packages.told(settings, choice) == ""
    await packages.make(settings, again=False)
    assert "first 1.0" in capsys.readouterr().out
    assert "first==1.0" in packages.told(settings, choice)
    desk = Desk(workspaces(settings.store.path) / CALLER.action, isolation=packages.furnished(settings, choice))
    assert (await desk.run("import first; first.version")).value == "'1.0'"
    program = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import first'], check=True).returncode"
    assert (await desk.run(program)).value == "0"
    install = packages.Installer(settings, choice)
    assert await install(CALLER, "second") == ["second 1.0"]  # in the version of `first` that is there
    assert (await desk.run("import second, first; first.version")).value == "'1.0'"
    for name in ("first", "second"):
        assert "Errno" in (await desk.run(f"import {name}; open({name}.__file__, 'a')")).value
    await desk.sandbox.kill()
    assert await check(settings) == 1  # no model is set
    assert "it can import first" in capsys.readouterr().out


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


def test_pip_has_its_own_settings_and_no_secret_of_the_gateway() -> None:
    """SE06: child processes do not inherit them."""
    names = ("PIP_INDEX_URL", "https_proxy", "HOME", "OPENAI_API_KEY", "SLACK_BOT_TOKEN", "MY_PIP_X")
    assert [name for name in names if PASSED_ON.fullmatch(name)] == ["PIP_INDEX_URL", "https_proxy", "HOME"]


def test_names_are_compared_as_an_index_does() -> None:
    assert is_allowed("Ruamel.Yaml==1.0", ["ruamel_yaml"])
    assert not is_allowed("ruamel.yaml.evil", ["ruamel_yaml"])
    assert is_allowed("anything", ["*"])


async def test_the_operator_says_what_may_be_installed() -> None:
    async def add(caller: Caller, name: str) -> list[str]:
        if name == "second":
            raise NotInstalled("ERROR: no such version")
        return [f"{caller.action} {name}"]

    assert installing([], add) == []
    (install,) = installing(["first", "second"], add)
    assert "first, second" in install.doc
    assert await install.run(CALLER, {"name": "First==1.0"}) == ["a1 First==1.0"]
    for name, why in (("evil", "may not be installed"), ("--pre", "is no name"), ("second", "no such version")):
        with pytest.raises(PrimitiveError, match=why):
            await install.run(CALLER, {"name": name})
