"""`--roles`: what may be split, and what is said where it may not."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS


def run(tmp_path, config, *arguments, before=""):
    (tmp_path / "config.toml").write_text(config)
    code = f"import sys; {before}\nfrom frontdesk.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "--config", str(tmp_path / "config.toml"), *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, stdin=subprocess.DEVNULL
    )
    return ended.returncode, ended.stderr


def test_a_file_has_one_process(tmp_path):
    code, said = run(tmp_path, "[model]\nname = 'rehearsal'", "--roles", "brain,actors")
    assert code == 1
    assert '--roles brain,actors is for several processes, and [broker] url = "sqlite" is a file' in said
    assert 'set [broker] url = "nats://host:4222"' in said


def test_there_are_three_roles(tmp_path):
    code, said = run(tmp_path, "", "--roles", "brain,cook")
    assert code == 2
    assert "there is no role 'cook': write some of mediums,brain,actors" in said


def test_without_nats_py_the_command_that_installs_it_is_said(tmp_path):
    config = "[model]\nname = 'rehearsal'\n[broker]\nurl = 'nats://127.0.0.1:4222'"
    code, said = run(tmp_path, config, before="sys.modules['nats'] = None")
    assert code == 1
    assert f'needs the package nats-py: {sys.executable} -m pip install "nats-py>=2.16"' in said


NEEDS_ALL = """
[model]
name = "openai/x"
api_key = "env:OF_THE_MODEL"
[broker]
url = "nats://127.0.0.1:1"
[mediums.telegram]
token = "env:OF_TELEGRAM"
"""


@pytest.mark.parametrize(
    ("roles", "asked", "not_asked"),
    [("mediums", "OF_TELEGRAM", "OF_THE_MODEL"), ("brain,actors", "OF_THE_MODEL", "OF_TELEGRAM")],
)
def test_each_role_asks_for_its_own_secrets_alone(tmp_path, roles, asked, not_asked):
    code, said = run(tmp_path, NEEDS_ALL, "--roles", roles)
    assert code == 1
    assert f"environment variable {asked} is not set" in said
    assert not_asked not in said
