"""One turn with a model that goes wrong on the way: nothing is said twice, and nothing that was not done."""

from collections.abc import Iterator
from typing import Any

import pytest

from brain import outage
from brain.entries import Act, Decision, Recalled, Speak, Steer
from brain.generating import generate
from brain.tools import legal
from gateway.events import ActionChanged, ActionResponded, ClarificationRequested, Ref
from gateway.llm.model import Generation, ModelError, Request, Usage
from tests.brain.people import ANA, NOON, OWNER, Talk, frame, route
from tests.people.town import call


class Scripted:
    name = "scripted"

    def __init__(self, *answers: Generation) -> None:
        self._answers: Iterator[Generation] = iter(answers)
        self.requests: list[Request] = []

    async def generate(self, request: Request, on_spent: Any = None) -> Generation:
        self.requests.append(request)
        if "poison" in str(request.messages):
            raise ModelError("bad_request", "400", retryable=False)
        return next(self._answers)


async def decided(talk: Talk, *answers: Generation) -> tuple[tuple[Decision, ...], list[Request]]:
    async def look_up(query: str) -> Recalled:
        return Recalled(query=query, found="")

    def spent(model: str, usage: Usage) -> None:
        pass

    model, turn = Scripted(*answers), talk.turn()
    made = await generate(model, frame(), turn, legal(turn, OWNER, [ANA]), NOON, spent, OWNER, look_up)
    return made.decisions, model.requests


def texts(decisions: tuple[Decision, ...]) -> list[str]:
    return [one.text for one in decisions if isinstance(one, Speak)]


BAD = call("stop_rome__a7", reason="they asked")


async def test_words_beside_a_call_that_was_refused_give_way_to_later_ones() -> None:
    talk = Talk()
    talk.says("stop Rome")
    made, requests = await decided(
        talk, Generation(text="Stopped.", calls=(BAD,)), Generation(text="There is no Rome.")
    )
    assert texts(made) == ["There is no Rome."]
    assert "there is no tool" in requests[1].messages[-1]["content"]


async def test_what_was_never_done_is_not_said_to_be() -> None:
    talk = Talk()
    talk.says("stop Rome")
    made, _ = await decided(talk, *[Generation(text="Stopped.", calls=(BAD,))] * 3)
    assert texts(made) == [outage.NOTHING_CAME]


async def test_where_nothing_came_each_place_that_waits_is_told() -> None:
    talk = Talk()
    for at in (route(), route("D7", "slack"), route()):
        talk.says("hello", at=at)
    made, _ = await decided(talk, *[Generation(text="")] * 3)
    assert [(one.route.medium, one.text) for one in made if isinstance(one, Speak)] == [
        ("telegram", outage.NOTHING_CAME),
        ("slack", outage.NOTHING_CAME),
    ]


async def test_what_was_done_is_done_once_and_the_rest_owned_up_to() -> None:
    talk = Talk()
    talk.says("stop Rome, book Oslo")
    act = call("act", query="Book Oslo", name="oslo")
    made, _ = await decided(talk, *[Generation(text="All done.", calls=(act, BAD))] * 3)
    assert [type(one) for one in made] == [Act, Speak]
    assert texts(made) == [outage.NOT_ALL]


async def test_the_same_said_and_done_twice_is_once() -> None:
    talk = Talk()
    talk.says("book Oslo")
    say, act = call("send_message", text="On it"), call("act", query="Book Oslo", name="oslo")
    made, _ = await decided(talk, Generation(calls=(say, act, say, act)))
    assert [type(one) for one in made] == [Speak, Act]


async def test_words_that_have_no_place_are_asked_for_again_and_the_call_is_not() -> None:
    talk = Talk()
    talk.says("book Oslo")
    talk.says("hello", at=route("home", "web"))
    first = Generation(text="On it", calls=(call("act", query="Book Oslo", name="oslo", for_message="m1"),))
    second = Generation(calls=(call("send_message", text="On it", reply_to="m1"),))
    made, requests = await decided(talk, first, second)
    assert [type(one) for one in made] == [Act, Speak]
    assert "say which you reply to" in requests[1].messages[-1]["content"]


async def test_words_that_never_say_where_they_go_are_said_where_the_person_wrote() -> None:
    talk = Talk()
    key = talk.starts()
    here, there = talk.says("hello"), talk.says("and here", at=route("home", "web"))
    made, requests = await decided(talk, *[Generation(text="Both are done")] * 3)
    assert texts(made) == ["Both are done"] * 2
    assert {one.route for one in made if isinstance(one, Speak)} == {here.route, there.route}
    assert len(requests) == 3
    talk.decides()
    talk.hears(ActionResponded(ref=Ref("act", 1), conversation="p-ana", action=key, text="Booked"))
    talk.says("what now?", at=there.route)
    made, _ = await decided(talk, *[Generation(text="Booked, and done")] * 3)
    assert [(one.text, one.route) for one in made if isinstance(one, Speak)] == [("Booked, and done", there.route)]
    made, _ = await decided(talk, *[Generation(text="Stopped.", calls=(BAD,))] * 3)
    assert "Stopped." not in texts(made)


async def test_lm01_what_a_provider_refuses_in_what_was_said_before_does_not_end_the_conversation() -> None:
    talk = Talk()
    said = talk.says("what of the poison?")
    talk.decides(Speak(route=said.route, text="Which one?"))
    talk.says("never mind")
    made, requests = await decided(talk, Generation(text="As you like"))
    assert texts(made) == ["As you like"]
    assert [message["role"] for message in requests[1].messages] == ["system", "user", "user"]
    talk.says("poison")
    with pytest.raises(ModelError):
        await decided(talk)


async def test_one_message_answers_two_questions() -> None:
    talk = Talk()
    keys = [talk.starts(name) for name in ("rome", "oslo")]
    for key in keys:
        same = {"conversation": "p-ana", "action": key}
        talk.hears(ActionChanged(ref=Ref(f"act-{key}", 1), **same, phase="running"))
        asks = ClarificationRequested(ref=Ref(f"act-{key}", 2), **same, question="question1", text="Which?")
        talk.hears(asks)
    talk.decides()
    talk.says("For Rome the aisle, for Oslo the window")
    answers = [
        call(f"answer_clarification_{name}__{label}__question1", answer=seat)
        for name, label, seat in (("rome", "a1", "aisle"), ("oslo", "a2", "window"))
    ]
    made, _ = await decided(talk, Generation(text="Thanks", calls=tuple(answers)))
    steers = [(one.action, one.verb, one.text) for one in made if isinstance(one, Steer)]
    assert steers == [(keys[0], "answer", "aisle"), (keys[1], "answer", "window")]
