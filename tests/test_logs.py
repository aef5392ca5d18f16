"""The log shows what failed and hides every secret, however a library writes it."""

import base64
import html
import json
import logging
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from gateway.logs import NOTICE_SECONDS, NOTICES_KEPT, Notices, OneLine, Scrubber
from tests.patience import PATIENCE_SECONDS

TELEGRAM = "123456:SYNTHETIC-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
IMAP = "p@ss wörd\\\"'<"
SECRETS = (TELEGRAM, "xoxb-SYNTH-1", "xapp-SYNTH-2", IMAP, "sk-SYNTH")


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("frontdesk.test", logging.INFO, __file__, 1, message, args, None)


def shown(message: str, *args: object) -> str:
    return OneLine(Scrubber(SECRETS)).format(record(message, *args))


def test_a_record_is_one_line_with_time_level_and_logger():
    one = record("Telegram refused %s", "getMe")
    one.created = 0.25
    assert OneLine(Scrubber()).format(one) == "1970-01-01 00:00:00.250Z INFO frontdesk.test: Telegram refused getMe"


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "written",
    [
        str,
        quote,
        lambda secret: quote(secret, safe=""),
        lambda secret: quote(secret, safe="").replace("%3A", "%3a"),
        quote_plus,
        repr,
        ascii,
        lambda secret: repr(secret.encode()),
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        html.escape,
    ],
)
def test_a_secret_is_hidden_however_it_is_written(secret, written):
    said = shown("%s failed", written(secret)).partition("frontdesk.test: ")[2]
    assert said in ("*** failed", "'***' failed", '"***" failed', "b'***' failed", 'b"***" failed')


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "a", "ab", "\0user\0"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_hidden_within_any_base64(secret, before, after, encode):
    text = encode((before + secret + after).encode()).decode()
    left = shown("AUTHENTICATE PLAIN %s", text).rpartition(" ")[2]
    assert "***" in left
    hidden = len(text) - (len(left) - len("***"))
    assert hidden >= len(secret.encode()) * 8 // 6 - 1


def test_a_secret_is_hidden_when_it_comes_in_several_arguments():
    number, _, rest = TELEGRAM.partition(":")
    assert rest not in shown("bot %s with %s", number, rest)
    assert rest not in shown("%s:%s", number, rest)


def test_the_longer_of_two_secrets_leaves_no_rest():
    assert Scrubber(["key", "key-and-more"])("key-and-more, key") == "***, ***"


def test_a_secret_can_be_told_later():
    scrub = Scrubber(["one"])
    scrub.add("two", "")
    assert scrub("one two three") == "*** *** three"


def test_the_method_that_failed_is_still_shown():
    line = shown("HTTP Request: POST https://api.telegram.org/bot%s/sendMessage", TELEGRAM)
    assert line.endswith("https://api.telegram.org/bot***/sendMessage")


def test_text_cannot_pass_for_another_record():
    assert shown("said %s", "hello\nERROR root: \x1b[2Jfire\u2028").count("\n") == 0
    assert "hello\\nERROR root: \\x1b[2Jfire\\u2028" in shown("said %s", "hello\nERROR root: \x1b[2Jfire\u2028")


def test_a_traceback_is_indented_and_scrubbed():
    one = record("failed")
    one.exc_info = (ValueError, ValueError(f"no route to /bot{TELEGRAM}/getMe\nERROR root: fire"), None)
    first, *rest = OneLine(Scrubber(SECRETS)).format(one).split("\n")
    assert first.endswith("failed")
    assert all(line.startswith("    ") for line in rest)
    assert rest[-2:] == ["    ValueError: no route to /bot***/getMe", "    ERROR root: fire"]


PROCESS = """
import asyncio, http.server, imaplib, logging, sys, threading, warnings
import httpx
from gateway.logs import Scrubber, operator, setup

*secrets, level = sys.argv[1:]
telegram, imap = secrets[0], secrets[3]
setup(Scrubber(secrets), verbose=level == "DEBUG")


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(401)

    def log_message(self, form, *args):
        logging.getLogger("server").info(form, *args)


server = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/bot{telegram}/getMe"
try:
    httpx.get(url, trust_env=False).raise_for_status()
except httpx.HTTPStatusError:
    logging.getLogger("frontdesk").exception("Telegram refused getMe")
server.shutdown()
logging.getLogger("imaplib").debug("LOGIN %r %r", "ana", imap)
logging.getLogger("frontdesk").info("%d arguments", imap)
warnings.warn(f"deprecated: {url}", stacklevel=1)
operator(f"Slack refused the token {secrets[1]}")
operator(f"Slack refused the token {secrets[1]}")


class Broken:
    def __del__(self):
        raise RuntimeError(imap)


Broken()
worker = threading.Thread(target=lambda: 1 / int(telegram), name="worker")
worker.start()
worker.join()


async def main():
    asyncio.get_running_loop().call_soon(lambda: {}[telegram])
    await asyncio.sleep(0)
    raise RuntimeError(f"cannot reach {url}")


asyncio.run(main())
"""


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_no_secret_leaves_a_process_by_its_log(level):
    ended = subprocess.run(
        [sys.executable, "-c", PROCESS, *SECRETS, level],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    said = ended.stderr
    assert ended.returncode == 1
    assert ended.stdout == ""
    for secret in (*SECRETS, TELEGRAM.partition(":")[2], quote(TELEGRAM, safe=""), repr(IMAP)[1:-1], "wörd"):
        assert secret not in said
    for expected in (
        "ERROR frontdesk: Telegram refused getMe",
        "/bot***/getMe",
        "a record of frontdesk cannot be written",
        "WARNING py.warnings: ",
        "WARNING frontdesk.operator: Slack refused the token ***",
        "RuntimeError: ***",
        "CRITICAL frontdesk: thread worker ended by an error",
        "ERROR asyncio: Exception in callback",
        "CRITICAL frontdesk: ended by an error that nobody expected",
    ):
        assert expected in said, said
    assert said.count("Slack refused") == 1
    assert ("INFO httpx: HTTP Request: GET" in said) is (level == "DEBUG")


def test_a_notice_is_said_once_and_later_with_how_often_it_came(caplog):
    now = 1000.0
    notices = Notices(lambda: now)
    for _ in range(3):
        notices("the model is down")
    notices("another thing")
    now += NOTICE_SECONDS
    notices("the model is down")
    notices("another thing")
    assert [record.getMessage() for record in caplog.records] == [
        "the model is down",
        "another thing",
        "the model is down (2 more times since it was last said)",
        "another thing",
    ]


def test_notices_do_not_pile_up(caplog):
    notices = Notices(lambda: 0.0)
    for number in range(NOTICES_KEPT + 1):
        notices(f"notice {number}")
    notices("notice 1")
    notices("notice 0")
    assert len(caplog.records) == NOTICES_KEPT + 2
