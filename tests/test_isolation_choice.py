"""What the operator and the model hear of how code runs."""

from pathlib import Path

from actors.sandbox.isolation.bare import Bare
from actors.sandbox.isolation.probe import probe
from actors.sandbox.isolation.words import Unavailable
from frontdesk.doctor import check
from frontdesk.isolation import Choice
from frontdesk.work import hold_of
from gateway.settings import BrokerSettings, SandboxSettings, Settings, StoreSettings, all_secrets

MISSING = Unavailable(why="bubblewrap (bwrap) is not installed", mend="apt-get install bubblewrap")


def choice(*, missing: Unavailable | None, allowed: bool, network: str = "proxy") -> Choice:
    return Choice(isolation=Bare(), missing=missing, allowed=allowed, network=network)


def test_where_code_cannot_be_isolated_it_does_not_run_and_everybody_hears_the_mend() -> None:
    refused = choice(missing=MISSING, allowed=False)
    for text in (refused.refused, *refused.careful):
        assert "apt-get install bubblewrap" in text
    assert refused.signs == ["code does not run"]


def test_what_the_operator_allows_runs_with_a_banner_and_a_tag() -> None:
    bare = choice(missing=MISSING, allowed=True)
    assert bare.refused == ""
    assert "without isolation" in bare.careful[0]
    assert bare.tag == " (without isolation)"
    assert bare.signs == ["code runs without isolation"]


def test_isolated_code_needs_no_word_but_the_network_of_the_host_does() -> None:
    assert choice(missing=None, allowed=False).careful == []
    assert choice(missing=None, allowed=True).tag == ""
    assert "reaches all" in choice(missing=None, allowed=False, network="host").careful[0]


def test_secrets_are_used_where_there_is_a_proxy() -> None:
    assert choice(missing=None, allowed=False).signs_requests
    assert not choice(missing=MISSING, allowed=True).signs_requests
    assert not choice(missing=None, allowed=False, network="host").signs_requests


async def test_an_interpreter_that_does_not_run_is_named_with_its_mend(tmp_path: Path) -> None:
    found = await probe(str(tmp_path / "python"))
    assert isinstance(found, Unavailable)
    assert "[sandbox] python" in found.mend


async def test_doctor_says_what_mends_it(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    settings = Settings(
        store=StoreSettings(path=tmp_path / "desk.db"), sandbox=SandboxSettings(python=tmp_path / "python")
    )
    assert await check(settings) == 1
    assert "MEND  sandbox: code of actors does not run: " in capsys.readouterr().out
    assert all_secrets(settings) == ()


def test_only_where_others_take_over_a_sandbox_ends_by_itself_after_a_quarter_of_an_hour() -> None:
    shared = hold_of(Settings(broker=BrokerSettings(url="nats://one:4222")), lambda: True)
    assert (shared.freeze_seconds, shared.end_seconds) == (10, 15 * 60)
    assert hold_of(Settings(), lambda: True).end_seconds is None
