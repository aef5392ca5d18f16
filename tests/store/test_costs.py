"""What it cost: every call by day and person, talk and work, from the views."""

import sqlite3
from contextlib import closing
from datetime import date

import pytest
from click.testing import CliRunner

from actors.entries import Briefed, Generated, Responded
from actors.entries import Spent as WorkSpent
from actors.journal import ActionState
from brain.entries import Decided, Spent, Summarised
from frontdesk.cli import main
from frontdesk.costs import _named, lines
from frontdesk.upkeep import views_file
from gateway import looking, views
from gateway.broker.protocol import Stored
from gateway.config import load
from gateway.events import Ref, Start
from gateway.journal import stamped
from gateway.llm.model import Usage
from tests.store.words import ANA, BO, START

DAY = START.date()


def usage(usd: float | None) -> Usage:
    return Usage(prompt_tokens=100, completion_tokens=10, usd=usd)


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    people = '[[contacts]]\nname = "Ana"\naddresses = ["telegram:42", "email:ana@example.org"]\nrole = "owner"\n'
    file.write_text(f'[store]\npath = "store.db"\n{people}')
    return file


@pytest.fixture
def spent(tmp_path, config):
    """Ana's turns, one cancelled; a summary; Bo's task with a child; a model without a price."""
    file = views_file(tmp_path / "store.db")
    file.open()
    start = Start(ref=Ref("s-x", 1), conversation="s-x", action="s-x-a1", by=BO, name="report", query="Report")
    entries = [
        (
            "lane.p-ana",
            Decided(turn=1, at=START, covers=(), decisions=(), model="m", usage=usage(0.25), charged=ANA.address),
        ),
        ("lane.p-ana", Spent(usage=usage(0.5), model="m", at=START, charged=ANA.address)),
        ("lane.p-ana", Summarised(first=1, through=1, text="x", at=START, model="m", usage=usage(0.125))),
        ("lane.p-ana", Spent(usage=usage(None), model="own", at=START, charged=ANA.address)),
        ("act.s-x-a1", Briefed(start=start, at=START)),
        ("act.s-x-a1", Generated(text="x", model="m", usage=usage(2.0), at=START)),
        ("act.s-x-a1", WorkSpent(usage=usage(1.0), model="m", child="child1", at=START)),
        ("act.s-x-a1--child1", Generated(text="x", model="m", usage=usage(1.0), at=START)),
    ]
    for n, (journal, entry) in enumerate(entries, 1):
        file.feed([Stored(subject=f"log.{journal}", sequence=n, data=stamped(1, str(n), entry))])
    file.close()
    return load(config, {})


def test_every_call_counts_once_by_day_and_person_talk_and_work(spent) -> None:
    found = lines(spent, 1, DAY)
    assert found == [
        f"{DAY}: 3.8750 USD (talk 0.8750, work 3.0000) *, calls 6, tokens 660",
        f"  {BO.address}: 3.0000 USD (talk 0.0000, work 3.0000), calls 2, tokens 220",
        "  Ana: 0.7500 USD (talk 0.7500, work 0.0000) *, calls 3, tokens 330",
        "  (nobody in particular): 0.1250 USD (talk 0.1250, work 0.0000), calls 1, tokens 110",
        "* calls to models without a known price: 1. Their tokens are counted, their money is not.",
    ]
    assert lines(spent, 1, date(DAY.year + 1, 1, 1)) == []


def test_an_action_tells_its_lane_what_it_has_cost() -> None:
    state = ActionState("s-x-a1")
    start = Start(ref=Ref("s-x", 1), conversation="s-x", action="s-x-a1", by=BO, name="report", query="Report")
    state.apply(Briefed(start=start, at=START))
    state.apply(Generated(text="x", model="m", usage=usage(2.0), at=START))
    state.apply(WorkSpent(usage=usage(0.5), model="m", child="child1", at=START))
    state.apply(Responded(text="Done.", at=START))
    assert state.outgoing[0].body.usd == 0.0
    assert state.outgoing[-1].body.usd == 2.5


def test_the_command_prints_it_and_says_what_is_missing(spent, config, tmp_path) -> None:
    shown = CliRunner().invoke(main, ["costs", "--config", str(config), "--days", "3660"])
    assert shown.exit_code == 0
    assert "Ana: 0.7500 USD" in shown.output
    views.path_of(tmp_path / "store.db").unlink()
    shown = CliRunner().invoke(main, ["costs", "--config", str(config)])
    assert shown.exit_code == 1
    assert "start the gateway once" in shown.output


def test_views_of_the_version_before_learn_who_paid(tmp_path) -> None:
    file = views_file(tmp_path / "store.db")
    file.open()
    file.close()
    with closing(sqlite3.connect(views.path_of(tmp_path / "store.db"))) as db:
        db.executescript("alter table costs drop column who; pragma user_version = 1")
    file.open()
    file.close()
    assert looking.costs(views.path_of(tmp_path / "store.db"), "2026-01-01") == []


def test_in_a_conversation_costs_are_of_whoever_it_is_with_however_they_came_to_an_address(spent) -> None:
    named = _named(spent)
    found = [named("slack:T1/U9", "p-ana"), named("telegram:42", "s-x"), named("slack:T1/U9", "s-x")]
    assert found == ["Ana", "Ana", "slack:T1/U9"]
