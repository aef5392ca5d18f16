"""The command line: what is said before anything runs, and where its options may stand."""

import pytest
from click.testing import CliRunner

from frontdesk.cli import main
from frontdesk.rehearsal import words

NOBODY = '[mediums.web]\nlisten = "127.0.0.1:1"\ntoken = "a-token"\n'


@pytest.fixture
def run(tmp_path):
    def run(*given: str, config: str = NOBODY) -> tuple[int, str]:
        (tmp_path / "config.toml").write_text(config)
        ended = CliRunner().invoke(main, [str(tmp_path / "config.toml") if one == "FILE" else one for one in given])
        return ended.exit_code, ended.output

    return run


@pytest.mark.parametrize("token", ["abc", "bot8123:abc", "8123"])
def test_a_token_that_is_none_is_told_in_one_line(run, token):
    settings = f'[model]\nname = "rehearsal"\n[mediums.telegram]\ntoken = "{token}"\n'
    code, said = run("run", "--config", "FILE", config=settings)
    assert (code, said.count("Traceback")) == (1, 0)
    assert "Error: mediums.telegram.token is no bot token: it looks like 123456:ABC-DEF" in said


@pytest.mark.parametrize(("said", "greets"), [("/start", True), ("hello", True), ("start the report", False)])
def test_the_rehearsal_answers_what_telegram_says_first(said, greets):
    assert words.is_greeting(said) is greets


@pytest.mark.parametrize(
    "given",
    [
        ("people", "--config", "FILE", "link", "Ben", "telegram:9"),
        ("people", "link", "Ben", "telegram:9", "--config", "FILE"),
        ("people", "unlink", "--config", "FILE", "telegram:9"),
        ("people", "merge", "Ben", "Ana", "--config", "FILE"),
    ],
)
def test_the_settings_are_named_before_or_behind_what_is_done_with_people(run, given):
    code, said = run(*given)
    assert code == 1
    assert "127.0.0.1:1" in said
    assert "Start one with `frontdesk run`" in said
