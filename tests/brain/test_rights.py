"""The table of what each role may cause, and the page that shows it. Each cell at work: tests/people/test_matrix.py."""

from pathlib import Path

from brain.rights import ABOUT, MAY, table

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def test_the_architecture_page_shows_the_table() -> None:
    assert table() in PAGE.read_text("utf-8"), f"put this into {PAGE.name}:\n\n{table()}"


def test_every_effect_has_its_words() -> None:
    assert {*ABOUT} == {*MAY}
