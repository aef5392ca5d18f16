"""The set itself, without a model: whatever is right can be done, and no policy that does not think gets through."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from frontdesk.cli import main
from frontdesk.evaluation.policies import POLICIES, PolicyModel
from frontdesk.evaluation.running import Kept, Result, run
from frontdesk.evaluation.scenario import CannotRead, Scenario, doubts, load
from frontdesk.rehearsal.answers import call, calls, say
from gateway.llm.model import Generation, ModelError, Request

OURS = load()
TEXTS = {"interject": "message", "ask": "question", "answer": "answer"}


class Knowing:
    """Does what is right, by the tools as the request has them."""

    name = "knowing"

    def __init__(self, scenario: Scenario, right: str) -> None:
        self._scenario, self._right = scenario, right

    async def generate(self, request: Request, on_spent: object = None) -> Generation:
        verb, _, which = self._right.partition(":")
        if verb == "say":
            return say("Yes.")
        if verb == "wait":
            return calls(call("wait", reason="nothing to say"))
        if verb == "act":
            return calls(call("act", query=self._scenario.message), text="On it.")
        place = [work.id for work in self._scenario.in_flight].index(which) + 1
        word = "answer_clarification" if verb == "answer" else verb
        names = [tool["function"]["name"] for tool in request.tools]
        name = next(one for one in names if one.startswith(f"{word}_") and f"__a{place}" in one)
        return calls(call(name, **({TEXTS[verb]: "so"} if verb in TEXTS else {})))


def results(scenarios: list[Scenario], model: object, folder: Path) -> list[tuple[Scenario, Result]]:
    async def collected() -> list[tuple[Scenario, Result]]:
        kept = Kept(folder / "eval.jsonl")
        return [pair async for pair in run(scenarios, model, parallel=4, kept=kept)]  # type: ignore[arg-type]

    return asyncio.run(collected())


def test_there_are_enough_on_every_axis() -> None:
    assert len(OURS) >= 80
    axes = {scenario.group for scenario in OURS}
    assert len(axes) >= 11
    for axis in axes:
        assert {one.half for one in OURS if one.group == axis} == {"tuning", "held-out"}, axis


def test_whatever_is_right_is_legal_and_judged_so(tmp_path: Path) -> None:
    for scenario in OURS:
        for right in scenario.right:
            ((_, result),) = results([scenario], Knowing(scenario, right), tmp_path / scenario.id / right)
            assert result.right, (scenario.id, right, result)
            assert result.calls == 1 or result.taken == ("wait",)


def test_each_scenario_is_failed_by_a_bad_policy(tmp_path: Path) -> None:
    failed: dict[str, set[str]] = {}
    for policy in POLICIES:
        for scenario, result in results(list(OURS), PolicyModel(policy), tmp_path):
            assert not result.failed
            if not result.right:
                failed.setdefault(scenario.id, set()).add(policy)
    by_rule = {one.id for one in OURS if one.place == "shared" and not (one.addressed or one.thread)}
    assert {one.id for one in OURS} - failed.keys() == by_rule, "those are silence by rule, before any policy"
    for policy in POLICIES:
        assert sum(policy in policies for policies in failed.values()) >= len(OURS) * 0.6, policy


SIMPLE = {
    "id": "x1",
    "in_flight": [
        {"id": "job-7", "name": "Report!", "about": "the report", "state": "awaiting_input", "last": "Which year?"}
    ],
    "place": "private",
    "addressed": True,
    "thread": False,
    "history": [
        {"author": "Ben", "text": "hi"},
        {"author": "assistant", "text": "Hello"},
        {"author": "Ben", "text": "so"},
    ],
    "author": "Ben",
    "message": "2025",
    "right": ["answer:job-7"],
    "note": "of whoever wrote the file",
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([SIMPLE], indent=1).replace("\n", "\r\n"),
        json.dumps({"scenarios": [SIMPLE]}),
        json.dumps(SIMPLE),
        "\ufeff" + json.dumps(SIMPLE) + "\r\n\r\n",
    ],
)
def test_another_file_runs_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "others.json"
    path.write_bytes(text.encode())
    (scenario,) = load(path)
    ((_, result),) = results([scenario], Knowing(scenario, "answer:job-7"), tmp_path)
    assert (result.taken, result.right, scenario.group) == (("answer:job-7",), True, "answer")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"right": ["sing"]}, "sing"),
        ({"right": ["stop"]}, "stop"),
        ({"right": ["say:job-7"]}, "say:job-7"),
        ({"right": []}, "nothing is right"),
        ({"message": 3}, "message"),
        ({"in_flight": [{"name": "x"}]}, "id"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = tmp_path / "others.json"
    path.write_text(json.dumps([{**SIMPLE, **change}]))
    with pytest.raises(CannotRead, match=f"x1.*{said}"):
        load(path)


def test_a_broken_file_is_said_by_the_line(tmp_path: Path) -> None:
    path = tmp_path / "others.jsonl"
    path.write_text(json.dumps(SIMPLE) + "\n\n" + json.dumps(SIMPLE)[:-5] + "\n")
    with pytest.raises(CannotRead, match=r"others\.jsonl.*line 3"):
        load(path)


def test_what_code_decides_is_decided_so(tmp_path: Path) -> None:
    """A word alone, where it makes sense as a command: no model is asked, neither here nor by the product."""
    work = [{"id": "w1", "name": "report"}, {"id": "w2", "name": "table", "state": "paused"}]
    bare = {"in_flight": work[:1], "message": "Stop.", "right": "stop:w1"}
    which = {"in_flight": work, "message": "stop", "right": "say"}
    resumed = {"in_flight": work, "message": "resume", "right": "resume:w2"}
    path = tmp_path / "others.jsonl"
    path.write_text("\n".join(json.dumps({"id": str(n), **one}) for n, one in enumerate((bare, which, resumed))))
    for scenario, result in results(list(load(path)), PolicyModel("always-act"), tmp_path):
        assert (result.right, result.calls) == (True, 0), (scenario, result)


class Unreachable(PolicyModel):
    async def generate(self, request: Request, on_spent: object = None) -> Generation:
        raise ModelError("unreachable", "nobody is there: check model.api_base", retryable=True)


def test_a_model_that_answers_nobody_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.api_base"):
        results(list(OURS[:9]), Unreachable("always-act"), tmp_path)


ODD: dict[str, object] = {
    "id": 7,
    "message": "drop it",
    "history": [{"text": "hello"}, {"author": "Desk", "text": ""}],
    "author": None,
    "in_flight": [
        {"id": f"ü/{n}:“x” {n}", "name": name, "about": None, "last": last, "state": state}
        for n, (name, last, state) in enumerate(
            [
                ("???", "", "running"),
                ("日本", "a " * 500, "paused"),
                ("same", "Which?", "awaiting_input"),
                ("same", "done", "hibernated"),
                (None, None, "asleep"),
                *[("same", "x", "awaiting_input")] * 5,
            ]
        )
    ],
    "right": ["stop:gone", "stop:ü/3:“x” 3", "say"],
}


def test_odd_scenarios_run_and_what_cannot_be_in_them_is_said(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (ODD, {"id": "bare", "message": "", "right": "wait"})))
    odd, bare = load(path)
    assert doubts(odd) == [
        "gone is not in flight: that cannot be decided",
        "ü/4:“x” 4 is asleep, which is taken as running",
    ]
    ((_, result),) = results([odd], Knowing(odd, "stop:ü/3:“x” 3"), tmp_path)
    assert (result.taken, result.right) == (("stop:ü/3:“x” 3",), True)
    ((_, result),) = results([bare], Knowing(bare, "wait"), tmp_path)
    assert result.right


def test_a_run_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    chosen = list(OURS[:6])
    first = results(chosen[:3], PolicyModel("always-act"), tmp_path)
    with (tmp_path / "eval.jsonl").open("ab") as file:
        file.write(b'{"key": "half a li')

    class Others(PolicyModel):
        asked = 0

        async def generate(self, request: Request, on_spent: object = None) -> Generation:
            self.asked += 1
            return await super().generate(request)

    model = Others("always-act")
    second = {one.id: result for one, result in results(chosen, model, tmp_path)}
    assert model.asked == 3
    assert all(second[scenario.id] == result for scenario, result in first)


def test_the_command_prints_a_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "others.json"
    path.write_text(json.dumps([SIMPLE]))
    asked = ["eval", "--model", "policy:always-speak", "--scenarios", str(path)]
    shown = CliRunner().invoke(main, asked)
    assert shown.exit_code == 0, shown.output
    assert "answer:job-7" in shown.stdout
    assert "0 of 1 right" in shown.stdout
    asked[2] = "policy:always-act"
    found = json.loads(CliRunner().invoke(main, [*asked, "--tool-calls", "schema", "--json"]).stdout)
    assert found["scenarios"][0]["decided"] == ["act"], "a policy knows tools, whatever is set for models"
    assert found["axes"]["answer"]["percent"] == 0


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["eval", "--model", "policy:lazy"])
    assert shown.exit_code == 1
    assert "policy:always-speak" in shown.output
