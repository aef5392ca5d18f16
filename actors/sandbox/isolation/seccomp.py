"""System calls that code in a sandbox is refused, as a program of the kernel's filter. Pure: bytes out.

A deny list, in depth: namespaces and missing capabilities refuse most of these already. It closes what they leave open
(new namespaces, key rings, tracing, io_uring, sockets of families that no namespace holds) and what has been the way
out before. The instructions are those of seccomp(2), `struct sock_filter`; the numbers are Linux's, per machine.
"""

import errno
import struct
from collections.abc import Iterable, Iterator

import msgspec

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data; the low half of an argument comes first
X32_FROM = 0x4000_0000  # a second table of calls on x86_64

NEW_NAMESPACES = 0x7E02_0080  # CLONE_NEW{USER,PID,NET,IPC,UTS,CGROUP,NS,TIME}
SOCKET_FAMILIES = (1, 2, 10, 16)  # unix, internet, internet 6, netlink: held by namespaces
TERMINAL_REQUESTS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: put words into somebody's terminal


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    audit: int
    place: int  # in the rows of NUMBERS
    second_table: bool


MACHINES = {
    "x86_64": Machine(audit=0xC000_003E, place=0, second_table=True),
    "aarch64": Machine(audit=0xC000_00B7, place=1, second_table=False),
}

# x86_64, aarch64
CLONE, CLONE3, SOCKET, IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def program(machine: str) -> bytes:
    """The filter for this machine (`platform.machine()`). Raises KeyError for one whose numbers are not known."""
    known = MACHINES[machine]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _instructions(known))


def _instructions(machine: Machine) -> Iterator[Instruction]:
    yield _load(MACHINE_AT)
    yield (JUMP_EQUAL, 1, 0, machine.audit)
    yield (RETURN, 0, 0, KILL)
    yield _load(NUMBER_AT)
    if machine.second_table:
        yield (JUMP_AT_LEAST, 0, 1, X32_FROM)
        yield _refuse(errno.EPERM)
    for numbers in NUMBERS.values():
        if (number := numbers[machine.place]) is not None:
            yield from _if_call(number, [_refuse(errno.EPERM)])
    # The flags of clone3 are out of a filter's sight; a C library that is told ENOSYS falls back to clone.
    yield from _if_call(CLONE3[machine.place], [_refuse(errno.ENOSYS)])
    yield from _if_call(CLONE[machine.place], _if_bits(0, NEW_NAMESPACES, errno.EPERM))
    yield from _if_call(SOCKET[machine.place], _unless_one_of(0, SOCKET_FAMILIES, errno.EAFNOSUPPORT))
    yield from _if_call(IOCTL[machine.place], _if_one_of(1, TERMINAL_REQUESTS, errno.EPERM))
    yield (RETURN, 0, 0, ALLOW)


def _load(offset: int) -> Instruction:
    return (LOAD, 0, 0, offset)


def _refuse(number: int) -> Instruction:
    return (RETURN, 0, 0, REFUSE | number)


def _if_call(number: int, then: Iterable[Instruction]) -> list[Instruction]:
    """`then` runs for this call only; whether it goes on or not, the call's number is loaded afterwards."""
    body = [*then]
    if len(body) > 1:
        body.append(_load(NUMBER_AT))
    return [(JUMP_EQUAL, 0, len(body), number), *body]


def _argument(place: int) -> Instruction:
    return _load(ARGUMENTS_AT + 8 * place)


def _if_bits(place: int, mask: int, number: int) -> list[Instruction]:
    return [_argument(place), (JUMP_ANY_BIT, 0, 1, mask), _refuse(number)]


def _if_one_of(place: int, values: tuple[int, ...], number: int) -> list[Instruction]:
    tests = [(JUMP_EQUAL, len(values) - 1 - at, int(at == len(values) - 1), value) for at, value in enumerate(values)]
    return [_argument(place), *tests, _refuse(number)]


def _unless_one_of(place: int, values: tuple[int, ...], number: int) -> list[Instruction]:
    tests = [(JUMP_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_argument(place), *tests, _refuse(number)]
