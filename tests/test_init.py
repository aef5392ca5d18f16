"""`frontdesk init`: a conversation that ends with settings that can be read."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from frontdesk import init
from frontdesk.cli import main
from gateway.config import load

ANSWERS = [
    "Desk",
    "Europe/Nowhere",  # asked again
    "Europe/Berlin",
    "mistral/mistral-small-latest",
    "",
    "key-of-mistral",
    "y",  # telegram
    "123:token-typed",
    "not a number",  # asked again
    "42",
    "n",  # slack
    "y",  # email
    "desk@example.org",
    "imap.example.org",
    "smtp.example.org",
    "mx.example.org",
    "mail-word",
    "ana@example.org",
    "Ana",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it runs: a folder of its own, and nothing found on this machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "TELEGRAM_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("frontdesk.demo.find_model.LOCAL", {})
    return tmp_path


def run(*arguments: str, answers: list[str] | None = None) -> Result:
    return CliRunner().invoke(main, ["init", *arguments], input="\n".join([*(answers or []), ""]))


def test_what_was_answered_is_what_is_set(folder: Path) -> None:
    result = run(answers=ANSWERS)
    assert result.exit_code == 0, result.output
    settings = load(folder / "config.toml", {})
    assert (settings.assistant.name, str(settings.assistant.timezone)) == ("Desk", "Europe/Berlin")
    assert settings.mediums.telegram is not None
    assert settings.mediums.telegram.token.reveal() == "123:token-typed"
    assert settings.mediums.email is not None
    assert settings.mediums.email.authserv_id == "mx.example.org"
    assert settings.mediums.slack is None
    [owner] = settings.contacts
    assert (owner.name, owner.role) == ("Ana", "owner")
    assert {str(address) for address in owner.addresses} == {"telegram:42", "email:ana@example.org"}


def test_what_is_secret_is_neither_shown_nor_readable_by_others(folder: Path) -> None:
    result = run(answers=ANSWERS)
    secrets = sorted((folder / "secrets").iterdir())
    assert [file.name for file in secrets] == ["mail-password", "model-key", "telegram-token"]
    for file in secrets:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() not in result.output
        assert file.read_text().strip() not in (folder / "config.toml").read_text()


def test_nothing_is_asked_when_so_wished_and_a_key_stays_where_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-anthropic")
    assert run("--yes").exit_code == 0
    assert 'api_key = "env:ANTHROPIC_API_KEY"' in (folder / "config.toml").read_text()
    settings = load(folder / "config.toml", {"ANTHROPIC_API_KEY": "key-of-anthropic"})
    assert settings.model is not None
    assert settings.model.name.startswith("anthropic/")
    assert not (folder / "secrets").exists()


def test_what_is_there_is_never_overwritten(folder: Path) -> None:
    (folder / "config.toml").write_text("# mine\n")
    result = run("--yes")
    assert result.exit_code == 1
    assert "config.toml is there already" in result.output
    assert (folder / "config.toml").read_text() == "# mine\n"
    other = folder / "other"
    (other / "secrets").mkdir(parents=True)
    (other / "secrets" / "telegram-token").write_text("older")
    result = run("--config", str(other / "config.toml"), answers=ANSWERS)
    assert result.exit_code == 1
    assert "telegram-token is there already" in result.output
    assert not (other / "config.toml").exists()


def test_the_time_zone_of_the_machine_is_found_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "zoneinfo" / "Asia").mkdir(parents=True)
    (folder / "zoneinfo" / "Asia" / "Tokyo").touch()
    (folder / "localtime").symlink_to(folder / "zoneinfo" / "Asia" / "Tokyo")
    monkeypatch.setattr(init, "LOCALTIME", folder / "localtime")
    assert init.here({}) == "Asia/Tokyo"
    assert init.here({"TZ": "America/Lima"}) == "America/Lima"
    assert init.here({"TZ": ":nonsense"}) == "Asia/Tokyo"
