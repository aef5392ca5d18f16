"""What a model generated, read back: nothing is trusted, what is refused says why."""

import json
from datetime import timedelta

import pytest

from brain.entries import Act, Speak, Steer, Wait
from brain.reading import Read, read
from brain.tools import legal
from gateway.events import ActionProgressed, ClarificationRequested, Ref
from gateway.llm.model import Generation, RawCall
from tests.brain.people import ANA, BO, GUEST, NOON, OWNER, Talk, route
from tests.people.town import call


def reads(talk: Talk, text: str = "", *calls: RawCall, may: bool = True) -> Read:
    tools = legal(talk.turn(), OWNER if may else GUEST, talk.turn().askers())
    return read(Generation(text=text, calls=calls), tools, talk.turn(), OWNER if may else GUEST, NOON)


def test_text_is_a_reply_where_the_message_came_from() -> None:
    talk = Talk()
    message = talk.says("hi")
    assert reads(talk, "Hello!").decisions == (Speak(route=message.route, text="Hello!", answers=(message.identity,)),)


def test_text_beside_a_call_is_said_too_but_not_beside_a_wait() -> None:
    talk = Talk()
    talk.says("book Rome")
    assert [type(d) for d in reads(talk, "On it", call("act", query="book Rome", name="trip")).decisions] == [
        Speak,
        Act,
    ]
    assert [type(d) for d in reads(talk, "hm", call("wait", reason="thanks")).decisions] == [Wait]


def test_work_that_starts_without_a_word_says_none() -> None:
    """Its status card does, or the panel."""
    talk = Talk()
    talk.says("book Rome")
    (act,) = reads(talk, "", call("act", query="book Rome", name="trip")).decisions
    assert isinstance(act, Act)


def test_from_several_places_reply_to_must_say_which() -> None:
    talk = Talk()
    talk.says("one")
    there = talk.says("two", at=route("home", "web"))
    found = reads(talk, "both")
    assert found.refused
    assert "m1, m2" in found.results[-1]
    (spoken,) = reads(talk, "", call("send_message", text="to two", reply_to="m2")).decisions
    assert isinstance(spoken, Speak)
    assert (spoken.route, spoken.answers) == (there.route, (there.identity,))


def test_several_authors_must_be_told_apart() -> None:
    talk = Talk()
    talk.says("do it")
    talk.says("me too", by=BO)
    assert reads(talk, "", call("act", query="x")).refused
    (act,) = reads(talk, "", call("act", query="x", for_message="m1")).decisions
    assert isinstance(act, Act)
    assert act.by == ANA


@pytest.mark.parametrize(
    "arguments",
    [
        '{"query": "rm -rf /srv/app/tmp',
        "null",
        "[]",
        '"x"',
        '{"a":1}{"a":1}',
        '{"query": "x"}\n```',
        '{"query": 7}',
        "",
    ],
)
def test_a_bad_call_never_runs_and_its_good_sibling_does(arguments: str) -> None:
    talk = Talk()
    talk.says("do two things")
    found = reads(talk, "", RawCall(name="act", arguments=arguments), call("wait", reason="fine"))
    assert found.refused
    assert found.results[0].startswith("Not done: ")
    assert found.decisions == (Wait(reason="fine"),)


def test_a_call_that_was_cut_off_does_not_run_though_it_parses() -> None:
    talk = Talk()
    talk.says("do it")
    found = reads(talk, "", RawCall(name="act", arguments='{"query": "do"}', complete=False))
    assert found.decisions == ()
    assert "cut off" in found.results[0]


def test_a_tool_that_is_not_legal_now_is_refused_with_those_that_are() -> None:
    talk = Talk()
    talk.says("stop it")
    found = reads(talk, "", call("stop_booking__a1"))
    assert (
        "there is no tool stop_booking__a1 now. There are: send_message, wait, recall, remind, act" in found.results[0]
    )


def test_the_name_of_a_tool_that_is_none_takes_no_room() -> None:
    talk = Talk()
    talk.says("hi")
    assert len(reads(talk, "", RawCall(name="x" * 300_000, arguments="{}")).results[0]) < 300


def test_rights_are_checked_again_where_the_effect_leaves() -> None:
    talk = Talk()
    talk.says("do it")
    tools = legal(talk.turn(), OWNER, [ANA])
    found = read(Generation(calls=(call("act", query="x"),)), tools, talk.turn(), GUEST, NOON)
    assert found.decisions == ()
    assert "Ana may not start work here" in found.results[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "wait", "arguments": {"reason": "thanks"}}',
        '```json\n{"tool": "wait", "parameters": {"reason": "thanks"}}\n```',
    ],
)
def test_a_call_written_as_text_is_the_call(text: str) -> None:
    talk = Talk()
    talk.says("thanks")
    assert reads(talk, text).decisions == (Wait(reason="thanks"),)


@pytest.mark.parametrize("block", ["```json\n{}\n```", "```\n{}\n```", "<tool_call>{}</tool_call>"])
def test_a_call_in_a_fence_beside_words_is_the_call_and_the_words_are_said(block: str) -> None:
    talk = Talk()
    talk.says("book Rome")
    written = block.replace("{}", '{"name": "act", "arguments": {"query": "Book Rome", "name": "rome"}}')
    spoken, act = reads(talk, f"On it.\n\n{written}").decisions
    assert isinstance(spoken, Speak)
    assert spoken.text == "On it."
    assert isinstance(act, Act)


@pytest.mark.parametrize("name", ["stop_rome__a7", "answer_clarification_rome__a7__question1", "interject", "act"])
def test_a_written_call_of_what_is_no_tool_now_is_refused_and_not_shown(name: str) -> None:
    talk = Talk()
    talk.says("stop Rome")
    found = reads(talk, json.dumps({"name": name, "arguments": {}}), may=False)
    assert (found.decisions, found.refused) == ((), True)
    assert "there is no tool" in found.results[0]


def test_a_good_call_is_kept_beside_words_that_have_no_place() -> None:
    talk = Talk()
    talk.says("book Rome")
    talk.says("hello", at=route("home", "web"))
    found = reads(talk, "On it", call("act", query="Book Rome", for_message="m1"))
    assert [type(one) for one in found.decisions] == [Act]
    assert (found.refused, found.results[0]) == (True, "Done.")
    assert "say which you reply to" in found.results[1]


@pytest.mark.parametrize("blank", ["\u200b", "\u2800 \ufeff", "\u200d\ufe0f"])
def test_lm05_words_that_nobody_can_see_are_none(blank: str) -> None:
    talk = Talk()
    talk.says("hello")
    assert reads(talk, blank).decisions == ()
    assert reads(talk, "", call("send_message", text=blank)).refused


def test_a_call_in_python_is_the_call_and_python_is_a_text() -> None:
    talk = Talk()
    talk.says("thanks")
    assert reads(talk, 'wait(reason="thanks")').decisions == (Wait(reason="thanks"),)
    assert reads(talk, 'wait("thanks")').refused
    for text in ("print(42)", "wait for it (soon)", "f(wait(reason='x'))"):
        assert [one.text for one in reads(talk, text).decisions if isinstance(one, Speak)] == [text]


def test_blank_words_are_none() -> None:
    talk = Talk()
    talk.says("hello")
    assert reads(talk, "", call("send_message", text=" \n")).results == ("Not done: send_message needs text",)


@pytest.mark.parametrize(
    "written",
    [
        '{"type": "function", "function": {"name": "act", "arguments": "{\\"query\\": \\"Book Rome\\"}"}}',
        '[{"name": "act", "arguments": {"query": "Book Rome"}}]',
        '{"tool_calls": [{"function": {"name": "act", "arguments": {"query": "Book Rome"}}}]}',
        '[TOOL_CALLS][{"name": "act", "arguments": {"query": "Book Rome"}}]',
        '<|python_tag|>{"name": "act", "parameters": {"query": "Book Rome"}}',
        '<function=act>{"query": "Book Rome"}</function>',
        "<tool_call>\n<function=act>\n<parameter=query>\nBook Rome\n</parameter>\n</function>\n</tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.act:0<|tool_call_argument_begin|>"
        '{"query": "Book Rome"}<|tool_call_end|><|tool_calls_section_end|>',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>act\n```json\n"
        '{"query": "Book Rome"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<tool_call>act\n<arg_key>query</arg_key>\n<arg_value>Book Rome</arg_value>\n</tool_call>",
        '```tool_code\nprint(default_api.act(query="Book Rome"))\n```',
        '<function_calls><invoke name="act"><parameter name="query">Book Rome</parameter></invoke></function_calls>',
    ],
)
@pytest.mark.parametrize("words", ["", "On it.\n"])
def test_a_call_in_whatever_way_it_is_written_is_the_call(written: str, words: str) -> None:
    talk = Talk()
    talk.says("book Rome")
    if words and written.startswith(('{"', "[{")):
        written = f"```json\n{written}\n```"
    decisions = reads(talk, words + written).decisions
    assert [one.query for one in decisions if isinstance(one, Act)] == ["Book Rome"]
    assert [one.text for one in decisions if isinstance(one, Speak)] == ([words.strip()] if words else [])


@pytest.mark.parametrize(
    "half", ['<tool_call>{"name": "act", "argu', '[TOOL_CALLS][{"name": "ac', "<function=act>\n<par"]
)
def test_half_a_written_call_is_neither_run_nor_shown(half: str) -> None:
    talk = Talk()
    talk.says("book Rome")
    found = reads(talk, f"On it.\n{half}")
    assert (found.decisions, found.refused) == ((), True)
    code = "So: `<tool_call>`"
    assert [one.text for one in reads(talk, code).decisions if isinstance(one, Speak)] == [code]


@pytest.mark.parametrize("left", ["", "</tool_call>", '<tool_call>{"name": "act", "argu'])
def test_what_is_left_in_the_text_of_a_call_that_was_made_is_not_shown(left: str) -> None:
    talk = Talk()
    talk.says("book Rome")
    written = left or '<tool_call>{"name": "act", "arguments": {"query": "Book Rome"}}</tool_call>'
    found = reads(talk, f"On it.\n{written}", call("act", query="Book Rome"))
    assert [type(one) for one in found.decisions] == [Speak, Act]
    assert (found.refused, getattr(found.decisions[0], "text", "")) == (False, "On it.")


def test_lm03_a_written_call_of_an_answer_that_broke_off_does_not_run() -> None:
    talk = Talk()
    talk.says("book Rome")
    written = Generation(text='{"name": "act", "arguments": {"query": "Book Rome"}}', finish="length", cut=True)
    found = read(written, legal(talk.turn(), OWNER, [ANA]), talk.turn(), OWNER, NOON)
    assert (found.decisions, found.refused) == ((), True)


def test_a_tool_without_its_reference_is_the_one_that_it_can_mean() -> None:
    talk = Talk()
    talk.starts("booking")
    talk.says("stop it")
    assert [type(one) for one in reads(talk, "", call("stop_booking")).decisions] == [Steer]
    talk.starts("booking")
    talk.says("stop it")
    assert reads(talk, "", call("stop_booking")).refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[m1 · telegram · Sun 29 Nov 12:00 · Ana] Hello!", "Hello!"),
        ("[m1] Hello!", "Hello!"),
        ("Hello!\n[m2 · telegram · Sun 29 Nov 12:01 · Ana] Thanks", "Hello!"),
        ("Hello!\n[a1 booking responded · Sun 29 Nov 12:01] Booked", "Hello!"),
        ("Hello!\n(State at Sun 29 Nov 2026 12:01)\nNothing is in flight.", "Hello!"),
        ("You wrote:\n[m1 · telegram · Sun 29 Nov 12:00 · Ana] hi", "You wrote:\nhi"),
        ("It is in [m1] and [1 · 2 · 3] of the list", "It is in [m1] and [1 · 2 · 3] of the list"),
    ],
)
def test_lines_of_the_prompt_that_it_imitates_are_not_said(text: str, said: str) -> None:
    talk = Talk()
    talk.says("hi")
    for found in (reads(talk, text), reads(talk, "", call("send_message", text=text))):
        assert [one.text for one in found.decisions if isinstance(one, Speak)] == [said]
    only = "[m2 · telegram · Sun 29 Nov 12:01 · Ana]"
    assert reads(talk, only).decisions == ()
    assert reads(talk, "", call("send_message", text=only)).refused


def test_words_for_yes_and_a_list_in_a_text_are_taken() -> None:
    talk = Talk()
    talk.says("book Rome")
    (act,) = reads(talk, "", call("act", query="book Rome", persist="false")).decisions
    assert isinstance(act, Act)
    assert not act.persist


def test_json_that_is_no_call_is_a_reply() -> None:
    talk = Talk()
    talk.says("give me JSON")
    (spoken,) = reads(talk, '{"name": "Ana", "age": 7}').decisions
    assert isinstance(spoken, Speak)


def test_steering_of_a_turn_that_an_action_opened_follows_its_requester() -> None:
    talk = Talk()
    key = talk.starts(by=BO)
    talk.hears(ActionProgressed(ref=Ref("act", 1), conversation="p-ana", action=key, text="half"))
    (steer,) = reads(talk, "", call("interject_booking__a1", message="go on")).decisions
    assert isinstance(steer, Steer)
    assert (steer.by, steer.action, steer.text) == (BO, key, "go on")


def test_an_answer_needs_its_question_to_be_open() -> None:
    talk = Talk()
    key = talk.starts()
    talk.hears(
        ClarificationRequested(ref=Ref("act", 1), conversation="p-ana", action=key, question="question1", text="Which?")
    )
    talk.says("the first")
    name = "answer_clarification_booking__a1__question1"
    (steer,) = reads(talk, "", call(name, answer="the first")).decisions
    assert isinstance(steer, Steer)
    assert (steer.verb, steer.question) == ("answer", "question1")
    talk.decides(steer)
    talk.says("or the second")
    assert reads(talk, "", call(name, answer="second")).refused


@pytest.mark.parametrize(
    ("until", "after"),
    [
        ("10m", timedelta(minutes=10)),
        ("in 2 Hours", timedelta(hours=2)),
        ("1 week", timedelta(days=7)),
        ("2026-11-29T12:30", timedelta(minutes=30)),
    ],
)
def test_wait_until_takes_a_time_or_a_duration(until: str, after: timedelta) -> None:
    talk = Talk()
    talk.says("later")
    assert reads(talk, "", call("wait", reason="later", until=until)).decisions == (
        Wait(reason="later", until=NOON + after),
    )


@pytest.mark.parametrize("until", ["soon", "2020-01-01T00:00", "90d", "2 months"])
def test_wait_until_refuses_what_is_no_time_or_not_ahead(until: str) -> None:
    talk = Talk()
    talk.says("later")
    assert reads(talk, "", call("wait", reason="later", until=until)).refused
