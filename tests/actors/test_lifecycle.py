"""The lifecycle's table, and the page that shows it."""

from pathlib import Path

from gateway.actions import BY_ITSELF, IN_FLIGHT, LEADS_TO, LEGAL, refusal, table

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_architecture_page_shows_the_table():
    assert table() in PAGE.read_text("utf-8"), f"put this into {PAGE.name}:\n\n{table()}"


def test_every_state_is_reached_and_left_as_the_table_says():
    reached = {"running", *LEADS_TO.values(), *BY_ITSELF.values()}
    assert reached == {*LEGAL}
    assert all(verb in LEGAL[phase] for phase, verb in LEADS_TO)
    ended = {*LEGAL} - {*IN_FLIGHT}
    assert not {phase for phase, _ in [*LEADS_TO, *BY_ITSELF]} & ended


def test_a_refusal_names_what_is_possible():
    assert refusal("succeeded", "pause") == "pause is not possible while the action is succeeded; possible now: ask"
    assert refusal("paused", "resume") is None
