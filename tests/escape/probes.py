"""What code in a sandbox tries against its host. Each says at its end `open`, if it got through, or else `blocked`.

Names in capitals are given by `gateway.py`, which also judges what only the host can see.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe:
    name: str
    code: str
    by_host: str = ""  # the name of the look that decides instead of the code
    alone: bool = False  # in a sandbox of its own, which it may end


SYSCALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    return libc.syscall(number, *arguments)
def done(result):
    if result: raise OSError(ctypes.get_errno(), "")
"""

IN_A_CHILD = """
def tried(act):
    pid = os.fork()
    if pid == 0:
        try: act()
        except BaseException: os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
"""

# Finds the session's connection among its own objects, as any code in the process can.
LINE = """
import gc, json, socket, struct
(line,) = [found for found in gc.get_objects() if isinstance(found, socket.socket) and found.fileno() >= 0 and
    found.getsockname() and not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
line.setblocking(True)
"""
FORGERY = f"""{LINE}
body = json.dumps(dict(t="done", cell="VICTIM", status="ok", value="forged")).encode()
line.sendall(struct.pack(">I", len(body)) + body)
"""

# Everything that a frame may not be, and what it may be at the wrong time.
FRAMES = f"""{LINE}
import random
chance = random.Random(SEED)
def simple(): return chance.choice([None, True, -1, 1 << 70, 0.5, "", "x" * 5000, [], {{}}, [[[]]], "c1", "ok", "s1"])
kinds = "hello caughtup out done rpc names saved loaded ready forked ended exec stop beat".split()
keys = "cell position text status value rpc method args kwargs session pid names kept lost busy cells stateful".split()
sent = 0
try:
    while sent < 400:
        frame = {{key: simple() for key in chance.sample(keys, chance.randrange(len(keys)))}}
        frame["t"] = chance.choice(kinds)
        good = [dict(t="rpc", rpc=str(sent), cell=CELL, method="notify", args=[], kwargs={{"text": simple()}}),
            dict(t="names", names=[["x", "y"]] * 50),
            dict(t="out", cell=CELL, position=chance.randrange(1 << 53), text="x"),
            dict(t="saved", kept=[["x", "y"]], lost=[]), dict(t="done", cell="other", status="ok", value="")]
        body = json.dumps(frame if chance.random() < BAD else chance.choice(good)).encode()
        if chance.random() < BAD:
            body = chance.choice([body[:5], chance.randbytes(40), b"[" * 100_000, b"", body + b"x"])
        size = len(body) if chance.random() > BAD else chance.choice([0, 1 << 24, (1 << 24) + 1, (1 << 32) - 1])
        line.sendall(struct.pack(">I", size) + body)
        sent += 1
except OSError: pass
"""

PROBES = (
    Probe(
        name="read the gateway's environment",
        code="""
found = False
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: found |= SECRET in open(f"/proc/{pid}/environ").read() and int(pid) == GATEWAY
    except OSError: pass
found""",
    ),
    Probe(name="read the gateway's memory", code="os.close(os.open(f'/proc/{GATEWAY}/mem', os.O_RDONLY)); True"),
    Probe(name="read the configuration", code="SECRET in open(CONFIG).read()"),
    Probe(name="read the database", code="SECRET in open(DATABASE).read()"),
    Probe(name="read the workspace of another sandbox", code="bool(os.listdir(OTHER))"),
    Probe(
        name="use a file that the gateway holds open",
        code="any('held' in os.path.realpath(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd'))",
    ),
    Probe(name="see the machine's processes", code="os.path.exists(f'/proc/{GATEWAY}')"),
    Probe(name="signal the gateway", code="os.kill(GATEWAY, 0); True"),
    Probe(
        name="trace the gateway",
        code=f"{SYSCALL}{IN_A_CHILD}tried(lambda: done(libc.ptrace(0x4206, GATEWAY, 0, 0)))",
    ),
    Probe(
        name="leave a core dump",
        code="import resource; resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)); True",
    ),
    Probe(
        name="change the system's or the interpreter's files",
        code="any(os.access(path, os.W_OK) for path in ('/usr/bin', os.__file__, '/etc/passwd'))",
    ),
    Probe(
        name="change the kernel's settings",
        code="os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)); True",
    ),
    Probe(
        name="become another user",
        code=f"{IN_A_CHILD}tried(lambda: os.setuid(0 if os.getuid() else 12345))",
    ),
    Probe(name="make a user namespace", code=f"{SYSCALL}{IN_A_CHILD}tried(lambda: done(libc.unshare(0x10000000)))"),
    Probe(
        name="make a user namespace by clone or clone3",
        code=f"""{SYSCALL}
def made(number, *arguments):
    pid = call(number, *arguments)
    if pid == 0: os._exit(0)  # if it comes to that: another thread of the parent may have had the GIL
    if pid > 0: os.kill(pid, 9)
    return pid > 0 and os.waitpid(pid, 0)[0] == pid
asked = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
made(CLONE, 0x10000000 | 17, 0, 0, 0, 0) or made(435, asked, ctypes.sizeof(asked))""",
    ),
    Probe(
        name="mount a file system",
        code=f"{SYSCALL}{IN_A_CHILD}"
        "tried(lambda: done(libc.unshare(0x20000) or libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)))",
    ),
    Probe(name="use the kernel's key rings", code=SYSCALL + "call(KEYCTL, 0, -3, 1) >= 0"),
    Probe(name="use io_uring", code=SYSCALL + "call(425, 0, None) < 0 and ctypes.get_errno() not in (1, 38)"),
    Probe(
        name="use BPF, perf events, userfaultfd or file handles",
        code=SYSCALL
        + "any(call(number, *[0] * 5) >= 0 or ctypes.get_errno() not in (1, 38) for number in FOR_THE_FEW)",
    ),
    Probe(
        name="open a socket to the hypervisor",
        code="import socket; socket.socket(40, socket.SOCK_STREAM).close(); True",
    ),
    Probe(
        name="a fork bomb",
        code="""
import signal, time
children = []
try:
    while len(children) < MANY:
        pid = os.fork()
        if pid == 0:
            time.sleep(60); os._exit(0)
        children.append(pid)
except OSError: pass
for pid in children: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
len(children) >= MANY""",
    ),
    Probe(name="a memory bomb", code="len(bytearray(512 << 20)) > 0"),
    Probe(
        name="a disk bomb in one file",
        code="file = open('bomb', 'wb'); os.posix_fallocate(file.fileno(), 0, 128 << 20); True",
    ),
    Probe(
        name="a disk bomb in many files",
        alone=True,
        code="""
import time
for n in range(4):
    with open(f'bomb{n}', 'wb') as file: os.posix_fallocate(file.fileno(), 0, 48 << 20)
time.sleep(UNTIL_SEEN)
True""",
    ),
    Probe(
        name="a disk bomb in /tmp or /dev/shm",
        code="""
def fill(folder):
    made = []
    try:
        for n in range(6):
            made.append(f'{folder}/bomb{n}')
            with open(made[-1], 'wb') as file: os.posix_fallocate(file.fileno(), 0, 48 << 20)
        return True
    except OSError: return False
    finally:
        for path in made: os.path.exists(path) and os.unlink(path)
fill('/tmp') or fill('/dev/shm') or fill('/dev') or fill('/')""",
    ),
    Probe(
        name="a disk bomb that goes off when its cell has ended",
        alone=True,
        code="""
import subprocess
filling = 'sleep 0.2; for i in $(seq 100); do head -c 1000000 /dev/zero > late$i; done; sleep 600'
subprocess.Popen(['sh', '-c', filling], start_new_session=True)""",
        by_host="outlived",
    ),
    Probe(
        name="an inode bomb",
        alone=True,
        code="""
import time
for n in range(MANY_FILES): os.close(os.open(f'inode{n}', os.O_CREAT))
time.sleep(UNTIL_SEEN)
True""",
    ),
    Probe(
        name="an inode bomb in /tmp",
        alone=True,
        code="""
import tempfile, time
with tempfile.TemporaryDirectory(dir='/tmp') as folder:
    for n in range(MANY_FILES): os.close(os.open(f'{folder}/{n}', os.O_CREAT))
    time.sleep(UNTIL_SEEN)
True""",
    ),
    Probe(name="a flood of output", code="for _ in range(1 << 10): print('x' * 65_535)", by_host="flood"),
    Probe(
        name="reach the gateway by TCP",
        code="import socket; socket.create_connection(('127.0.0.1', TCP), 1).close(); True",
    ),
    Probe(
        name="send by UDP, as to a DNS server",
        code="import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'data', ('127.0.0.1', UDP))",
        by_host="udp",
    ),
    Probe(name="ask the machine's resolver", code="'dns' in open('/etc/nsswitch.conf').read()"),
    Probe(name="reach an abstract socket", code="import socket; socket.socket(socket.AF_UNIX).connect(ABSTRACT); True"),
    Probe(
        name="reach a socket in the file system",
        code="import socket; socket.socket(socket.AF_UNIX).connect(SOCKET); True",
    ),
    Probe(name="have the host follow a link in the workspace", code="os.symlink(CONFIG, 'report.txt')", by_host="link"),
    Probe(
        name="have the host read by a hard link",
        code="os.path.lexists('report.txt') and os.unlink('report.txt'); os.link(CONFIG, 'report.txt')",
        by_host="link",
    ),
    Probe(
        name="have the host follow a link among its sockets",
        code="os.symlink(SOCKET, os.path.join(RUN, 's77'))",
        by_host="socket_link",
    ),
    Probe(
        name="change a file for a link while the host opens it",
        code="""
os.makedirs('race'); os.symlink(os.path.dirname(CONFIG), 'away'); print('going', flush=True)
while True:
    with open('race/new', 'w') as file: file.write('mine')
    os.replace('race/new', 'race/config.toml')
    os.symlink(CONFIG, 'race/link'); os.replace('race/link', 'race/config.toml')
    os.rename('race', 'kept'); os.rename('away', 'race'); os.rename('race', 'away'); os.rename('kept', 'race')""",
        by_host="race",
    ),
    Probe(
        name="reach the gateway through the proxy",
        code="""
import socket
def asked(target):
    try: line = socket.create_connection(('127.0.0.1', 3128), 5)
    except OSError: return socket.create_connection(('127.0.0.1', TCP), 5) is not None  # no proxy, no need of one
    with line:
        line.sendall(f'{target} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
        return b' 403 ' not in line.recv(100)
hosts = ['127.0.0.1', 'localhost', '2130706433', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0']
any([asked(f'CONNECT {host}:{TCP}') or asked(f'GET http://{host}:{TCP}/') for host in hosts])""",
    ),
    Probe(name="forge the end of another cell", code="", by_host="forged"),
    Probe(name="upset the host by frames that are none", code="", by_host="frames"),
    Probe(
        name="leave daemons behind",
        code="from subprocess import Popen; "
        "print(*(Popen(['sleep', '600'], start_new_session=True).pid for _ in range(5)))",
        by_host="daemons",
    ),
    Probe(
        name="look into its own zygote",
        code="""
def opened(name, flags):
    try: return os.close(os.open(f'/proc/{os.getppid()}/{name}', flags)) is None
    except OSError: return False
opened('mem', os.O_RDWR) or opened('fd/2', os.O_RDONLY)""",
    ),
    Probe(
        name="take its host's place at the zygote",
        alone=True,
        code="""
import socket
line = socket.socket(socket.AF_UNIX)
line.connect(os.path.join(RUN, 'z'))
line.recv(1) != b''""",
    ),
    Probe(
        name="take the zygote's place",
        alone=True,
        code="""
import socket
os.rename(os.path.join(RUN, 'z'), os.path.join(RUN, 'other'))
kept = socket.socket(socket.AF_UNIX); kept.bind(os.path.join(RUN, 'z')); kept.listen()""",
        by_host="impostor",
    ),
    Probe(
        name="halt its own zygote",
        code="import signal; os.kill(os.getppid(), signal.SIGSTOP)",
        by_host="halted",
    ),
)
