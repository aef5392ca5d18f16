"""The parts of isolation that can be looked at alone: the filter, the mends, the quota."""

import errno
import struct
import time
from pathlib import Path

import pytest

from actors.sandbox import quota
from actors.sandbox.isolation import cgroups, seccomp
from actors.sandbox.isolation.probe import namespaces_mend, unavailable
from actors.sandbox.quota import Quota

X86, ARM = 0xC000_003E, 0xC000_00B7


def outcome(machine: str, audit: int, number: int, *arguments: int) -> int:
    """What the kernel's machine makes of a call: the instructions of seccomp(2) that the filter uses."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *(*arguments, *(0,) * (6 - len(arguments))))
    program = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, held = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        match code:
            case seccomp.LOAD:
                (held,) = struct.unpack_from("=I", data, operand)
            case seccomp.JUMP_EQUAL:
                at += if_true if held == operand else if_false
            case seccomp.JUMP_AT_LEAST:
                at += if_true if held >= operand else if_false
            case seccomp.JUMP_ANY_BIT:
                at += if_true if held & operand else if_false
            case seccomp.RETURN:
                return operand
            case _:
                raise AssertionError(code)


def refused(number: int) -> int:
    return seccomp.REFUSE | number


@pytest.mark.parametrize(("machine", "audit", "place"), [("x86_64", X86, 0), ("aarch64", ARM, 1)])
def test_every_listed_call_is_refused_and_others_are_not(machine: str, audit: int, place: int) -> None:
    listed = {numbers[place] for numbers in seccomp.NUMBERS.values()} - {None}
    special = {numbers[place] for numbers in (seccomp.CLONE, seccomp.CLONE3, seccomp.SOCKET, seccomp.IOCTL)}
    for number in range(500):
        if number in listed:
            assert outcome(machine, audit, number) == refused(errno.EPERM)
        elif number not in special:
            assert outcome(machine, audit, number) == seccomp.ALLOW


@pytest.mark.parametrize(
    ("number", "arguments", "expected"),
    [
        (56, (0x11,), seccomp.ALLOW),  # fork
        (56, (0x003D_0F00,), seccomp.ALLOW),  # a thread
        (56, (0x1000_0011,), refused(errno.EPERM)),  # a user namespace
        (56, (0x4000_0000,), refused(errno.EPERM)),
        (435, (), refused(errno.ENOSYS)),
        (41, (1, 1), seccomp.ALLOW),
        (41, (10, 1), seccomp.ALLOW),
        (41, (40, 1), refused(errno.EAFNOSUPPORT)),
        (41, (38, 5), refused(errno.EAFNOSUPPORT)),
        (16, (0, 0x5401), seccomp.ALLOW),
        (16, (0, 0x5412), refused(errno.EPERM)),
        (16, (0, 0x541C), refused(errno.EPERM)),
        (0x4000_0000, (), refused(errno.EPERM)),
    ],
)
def test_arguments_decide_where_a_call_is_needed(number: int, arguments: tuple[int, ...], expected: int) -> None:
    assert outcome("x86_64", X86, number, *arguments) == expected


def test_calls_of_another_machine_end_the_process() -> None:
    assert outcome("x86_64", 0x4000_0003, 1) == seccomp.KILL


@pytest.mark.parametrize(
    ("settings", "mend"),
    [
        ({"kernel/apparmor_restrict_unprivileged_userns": "1"}, "/etc/apparmor.d/bwrap"),
        ({"kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"),
        ({"user/max_user_namespaces": "0"}, "user.max_user_namespaces="),
        ({}, "seccomp=unconfined"),
    ],
)
def test_the_mend_fits_the_machine(settings: dict[str, str], mend: str) -> None:
    assert mend in namespaces_mend(lambda name: settings.get(name, ""))


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: setting up uid map: Permission denied", "namespaces"),
        ("launcher: mount /tmp/0: Operation not permitted", "SYS_ADMIN"),
        ("something else", "frontdesk doctor"),
        ("", "frontdesk doctor"),
    ],
)
def test_what_bubblewrap_says_leads_to_a_mend(said: str, mend: str) -> None:
    assert mend in str(unavailable(said))


def test_what_is_kept_is_measured_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "up").symlink_to(tmp_path)
    (tmp_path / "big").write_bytes(b"x" * (2 << 20))
    assert quota.exceeded((tmp_path / "box",), None, Quota(bytes=1 << 20, files=10)) == ""
    assert "more than 1 MB" in quota.exceeded((tmp_path,), None, Quota(bytes=1 << 20, files=10))
    assert "more than 1 files" in quota.exceeded((tmp_path,), None, Quota(bytes=1 << 30, files=1))
    assert quota.exceeded((tmp_path / "gone",), tmp_path / "gone", Quota(bytes=1, files=1)) == ""


def test_a_folder_that_is_closed_is_counted(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "big").write_bytes(b"x" * (2 << 20))
    (tmp_path / "closed").chmod(0)
    assert "more than 1 MB" in quota.exceeded((tmp_path,), None, Quota(bytes=1 << 20, files=10))


def test_what_was_written_last_is_removed_and_nothing_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "box" / "inner").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for path in ("box/a", "box/inner/b", "outside/c"):
        (tmp_path / path).write_text("x")
    (tmp_path / "box" / "link").symlink_to(tmp_path / "outside")
    quota.trim(tmp_path / "box", time.time() + 60)
    assert (tmp_path / "box" / "a").exists()
    quota.trim(tmp_path / "box", 0)
    assert sorted(path.name for path in (tmp_path / "box").rglob("*")) == ["inner"]
    assert (tmp_path / "outside" / "c").exists()


def delegated(folder: Path, *, busy: bool = False) -> tuple[Path, Path]:
    """A tree of cgroups as systemd gives one over: (its top, what the gateway's own line says)."""
    unit = folder / "top" / "user.slice" / "desk.service"
    (unit / "gateway").mkdir(parents=True)
    (folder / "top" / "cgroup.controllers").write_text("memory pids\n")
    (unit / "cgroup.procs").write_text("1\n" if busy else "")
    (unit / "cgroup.subtree_control").write_text("")
    (folder / "own").write_text("1:name=systemd:/x\n0::/user.slice/desk.service/gateway\n")
    return folder / "top", folder / "own"


@pytest.mark.parametrize("busy", [False, True])
def test_an_ordinary_user_has_cgroups_where_they_are_given_over(tmp_path: Path, busy: bool) -> None:
    top, own = delegated(tmp_path, busy=busy)
    groups = cgroups.of(tmp_path / "box", 100, 10, root=False, top=top, own=own)
    unit = top / "user.slice" / "desk.service"
    assert [(Path(group["path"]).parent, group["enable"]) for group in groups] == (
        [] if busy else [(unit, [str(unit / "cgroup.subtree_control")])]
    )
    assert cgroups.of(tmp_path / "box", 100, 10, root=False, top=tmp_path, own=own) == []  # version 1 is root's


def test_cgroups_that_are_there_are_known_and_empty_ones_go(tmp_path: Path) -> None:
    top, own = delegated(tmp_path)
    (group,) = cgroups.of(tmp_path / "box", 100, 10, root=True, top=top, own=own)
    assert Path(group["path"]).parent == top / "frontdesk"
    assert group["limits"]["memory.max"] == str(100 << 20)
    assert not cgroups.hold((group["path"],))
    (top / "frontdesk" / Path(group["path"]).name).mkdir(parents=True)
    Path(group["path"], "memory.max").write_text("1")
    assert cgroups.hold((group["path"],))
    (top / "frontdesk" / "0123456789abcdef").mkdir()
    cgroups.sweep(top)
    assert [path.name for path in (top / "frontdesk").iterdir()] == [Path(group["path"]).name]
