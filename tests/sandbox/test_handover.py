"""SE04: what strangers name and send is stored where it belongs, and nothing leaves by a link."""

import os
from pathlib import Path

import pytest

from actors.sandbox.handover import FILES_MAX, Refused, put_in, safe_name, shown_name, take_out

NAMES = {
    "../../home/bot/.ssh/authorized_keys": "authorized_keys",
    "../../etc/cron.d/job": "job",
    "..\\..\\run.bat": "run.bat",
    "/etc/passwd": "passwd",
    "": "attachment",
    "..": "attachment",
    ".": "attachment",
    "a\0.txt": "a.txt",
    "invoice\u202efdp.exe": "invoicefdp.exe",
    "CON": "_CON",
    "con.txt": "_con.txt",
    "aux.tar.gz": "_aux.tar.gz",
    ".bashrc": "bashrc",
    "-rf": "-rf",
    "re: a|b?.pdf": "re_ a_b_.pdf",
    "Ünïcode 漢字.pdf": "Ünïcode 漢字.pdf",
    "ends with/": "ends with",
    "\ud800.txt": "txt",
    "line\nbreak.txt": "linebreak.txt",
}


@pytest.mark.parametrize(("given", "stored"), NAMES.items())
def test_se04_a_name_is_safe_for_one_folder(given: str, stored: str) -> None:
    assert safe_name(given) == stored


def test_se04_a_long_name_keeps_its_ending() -> None:
    name = safe_name("n" * 300 + ".pdf")
    assert name.endswith("n.pdf")
    assert len(name.encode()) == 120
    assert len(safe_name("漢" * 300 + "." + "字" * 300).encode()) <= 120


def test_se04_the_given_name_is_shown_without_what_disguises_it() -> None:
    assert shown_name("invoice\u202efdp.exe\n") == "invoice fdp.exe "


def test_se04_each_message_has_a_folder_and_both_of_one_name_are_kept(tmp_path: Path) -> None:
    stored = put_in(tmp_path, "../message 1", [("report.pdf", b"1"), ("report.pdf", b"2"), ("../../x", b"3")])
    assert stored == ["message 1/report.pdf", "message 1/report (2).pdf", "message 1/x"]
    assert [take_out(tmp_path, path) for path in stored] == [b"1", b"2", b"3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["message 1"]


def test_se04_a_message_has_bounds(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="more than"):
        put_in(tmp_path, "a", [("x", b"")] * (FILES_MAX + 1))
    with pytest.raises(Refused, match="larger"):
        put_in(tmp_path, "a", [("x", bytes(60 << 20))] * 2)
    assert not any(tmp_path.iterdir())


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "mail").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused):
        put_in(tmp_path / "workspace", "mail", [("x", b"")])
    assert not any((tmp_path / "outside").iterdir())


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret", "a/../../secret", "", "link", "folder/x", "pipe", "dir", "a\0"]
)
def test_nothing_leaves_but_a_file_of_the_workspace(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("s")
    workspace = tmp_path / "workspace"
    (workspace / "dir").mkdir(parents=True)
    (workspace / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("s")
    (workspace / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(workspace / "pipe")
    with pytest.raises(Refused):
        take_out(workspace, name)


def test_what_is_too_large_is_refused_while_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(2 << 20)
    with pytest.raises(Refused, match="larger"):
        take_out(tmp_path, "big", limit=1 << 20)
