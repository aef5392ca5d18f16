"""A real Dovecot (IMAP with IDLE, delivery by LMTP) and a real Exim (submission, bounces) as processes of their own.

Everything of theirs lives in one folder; nothing in /etc is read. They run as root or not, are no children of the test
run (each has a test's life only as long as the run has), and are ended by their process ids.
"""

import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

DOVECOT, EXIM = "/usr/sbin/dovecot", "/usr/sbin/exim4"
PASSWORD = "mail-password-of-the-tests"
HOST = "bots.example"  # whose mail is delivered here; mail to any other domain but the people's bounces
PEOPLE = "example.org"

DOVECOT_CONF = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
instance_name = tests-{pid}
protocols = imap lmtp
listen = 127.0.0.1
default_login_user = {login_user}
default_internal_user = {internal_user}
default_internal_group = {internal_group}
ssl = yes
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
imap_id_log = *
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u allow_all_users=yes
}}
first_valid_uid = {first_uid}
mail_location = maildir:~/Maildir
mail_fsync = never
mail_max_userip_connections = 100
hostname = {host}
service imap-login {{
  {chroot}
  inet_listener imap {{
    address = 127.0.0.1
    port = {imap}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {imaps}
    ssl = yes
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
service anvil {{
  {chroot}
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  {chroot}
}}
"""

EXIM_CONF = """
primary_hostname = mx.{host}
spool_directory = {folder}/spool
log_file_path = {folder}/exim-%slog
pid_file_path = {folder}/exim.pid
exim_user = {user}
exim_group = {group}
never_users =
deliver_drop_privilege
daemon_smtp_ports = {smtp} : {smtps}
tls_on_connect_ports = {smtps}
local_interfaces = 127.0.0.1
host_lookup =
rfc1413_query_timeout = 0s
message_size_limit = 10M
tls_certificate = {folder}/cert.pem
tls_privatekey = {folder}/key-exim.pem
tls_advertise_hosts = *
auth_advertise_hosts = *
acl_smtp_mail = acl_mail
acl_smtp_rcpt = acl_rcpt
keep_environment =
disable_ipv6 = true
begin acl
acl_mail:
  deny !authenticated = *
       message = 5.7.0 authentication required
  accept
acl_rcpt:
  deny local_parts = nobody
       message = 5.1.1 there is no such mailbox here
  accept
begin routers
local:
  driver = accept
  domains = {host} : {people}
  local_parts = !gone
  transport = lmtp
nowhere:
  driver = redirect
  allow_fail
  data = :fail: 5.1.2 no such address in the world of the tests
begin transports
lmtp:
  driver = smtp
  protocol = lmtp
  hosts = 127.0.0.1
  port = {lmtp}
  allow_localhost
  hosts_override
begin retry
* * F,2m,5s
begin rewrite
begin authenticators
PLAIN:
  driver = plaintext
  public_name = PLAIN
  server_set_id = $auth2
  server_prompts = :
  server_condition = ${{if eq{{$auth3}}{{{password}}}}}
"""


def missing() -> str:
    """Why the servers cannot run here; empty when they can."""
    found = [name for name in (DOVECOT, EXIM, "/usr/lib/dovecot/lmtp") if not Path(name).exists()]
    if found:
        return f"needs dovecot-imapd, dovecot-lmtpd and exim4-daemon-heavy ({', '.join(found)} is not there)"
    return ""


class MailProcesses:
    """Ports: `imap` (STARTTLS too), `imaps`, `smtp` (STARTTLS too), `smtps`, `lmtp`. `ca_file` is what to trust."""

    def __init__(self) -> None:
        place = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        self.folder = Path(tempfile.mkdtemp(prefix="fd-mail-", dir=place))  # short: paths of sockets are bounded
        self.ca_file = self.folder / "cert.pem"
        self.imap, self.imaps, self.smtp, self.smtps, self.lmtp = _free_ports(5)
        try:
            self._make_folders()
            self._make_certificate()
            self._start_dovecot()
            self._start_exim()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        for name in ("run/master.pid", "exim.pid"):
            _end(self.folder / name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def maildir(self, address: str) -> Path:
        return self.folder / "mail" / address / "Maildir"

    def queue(self) -> list[Path]:
        """What Exim has taken and not yet delivered or given up."""
        return list((self.folder / "spool/input").rglob("*-H")) if self._exim_runs() else []

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("*log")))

    def _exim_runs(self) -> bool:
        return (self.folder / "spool/input").exists()

    # --- making ------------------------------------------------------------------------------------------------------

    def _make_folders(self) -> None:
        self.folder.chmod(0o755)
        for name in ("run", "state", "mail", "spool"):
            (self.folder / name).mkdir()

    def _make_certificate(self) -> None:
        made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        made += "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem"
        subprocess.run(made.split(), cwd=self.folder, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
        shutil.copy(self.folder / "key.pem", self.folder / "key-exim.pem")
        (self.folder / "key-exim.pem").chmod(0o600)

    def _start_dovecot(self) -> None:
        root, me = os.geteuid() == 0, pwd.getpwuid(os.geteuid())
        mail_user = pwd.getpwnam("nobody") if root else me
        if root:
            os.chown(self.folder / "mail", mail_user.pw_uid, mail_user.pw_gid)
        conf = DOVECOT_CONF.format(
            folder=self.folder,
            pid=os.getpid(),
            login_user="dovenull" if root else me.pw_name,
            internal_user="dovecot" if root else me.pw_name,
            internal_group="dovecot" if root else grp.getgrgid(os.getegid()).gr_name,
            password=PASSWORD,
            uid=mail_user.pw_uid,
            gid=mail_user.pw_gid,
            first_uid=1 if root else mail_user.pw_uid,
            host=HOST,
            chroot="" if root else "chroot =",
            imap=self.imap,
            imaps=self.imaps,
            lmtp=self.lmtp,
        )
        (self.folder / "dovecot.conf").write_text(conf)
        self._run(DOVECOT, "-c", str(self.folder / "dovecot.conf"))
        self._wait_for(self.imap, self.lmtp)

    def _start_exim(self) -> None:
        root = os.geteuid() == 0
        user = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid).gr_name
        (self.folder / "exim.conf").write_text(
            EXIM_CONF.format(
                folder=self.folder,
                host=HOST,
                people=PEOPLE,
                user=user.pw_name,
                group=group,
                smtp=self.smtp,
                smtps=self.smtps,
                lmtp=self.lmtp,
                password=PASSWORD,
            )
        )
        if root:
            for path in (self.folder, self.folder / "spool", self.folder / "key-exim.pem"):
                os.chown(path, user.pw_uid, user.pw_gid)
        self._run(EXIM, "-C", str(self.folder / "exim.conf"), "-bd", "-q1m", user=user.pw_uid if root else None)
        self._wait_for(self.smtp, self.smtps)

    def _run(self, *command: str, user: int | None = None) -> None:
        """It puts itself into the background, and keeps what it was given to write to."""
        with (self.folder / "starting.log").open("a") as output:
            started = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=PATIENCE_SECONDS,
                check=False,
                user=user,
                group=None if user is None else pwd.getpwuid(user).pw_gid,
                extra_groups=None if user is None else [],
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            )
        if started.returncode:
            raise RuntimeError(f"{command[0]} does not start:\n{self.log()}")

    def _wait_for(self, *ports: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for port in ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"nothing listens at {port}\n{self.log()}") from None
                    time.sleep(0.01)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _end(pid_file: Path) -> None:
    """With its children: those of Dovecot that have a client outlive their master."""
    try:
        master = int(pid_file.read_text())
        children = [int(child) for child in Path(f"/proc/{master}/task/{master}/children").read_text().split()]
    except (OSError, ValueError):
        return
    for process in (master, *children):
        try:
            os.kill(process, signal.SIGTERM)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 5
    while any(_runs(process) for process in (master, *children)):
        if time.monotonic() > deadline:
            for process in filter(_runs, (master, *children)):
                os.kill(process, signal.SIGKILL)
            return
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
