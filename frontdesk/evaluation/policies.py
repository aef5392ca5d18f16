"""Bad policies, as models: each decides always in one way. A scenario that none of them fails would measure nothing."""

import re
from collections.abc import Callable, Mapping

from frontdesk.rehearsal.answers import call, calls, say
from gateway.llm.model import Generation, OnSpent, RawCall, Request

_STEERS = re.compile(r"(interject|pause|resume|stop)_.+__(a\d+)$")
_TOLD = re.compile(r"^(a\d+) (.*)$", re.MULTILINE)
_VERBS = ("stop", "pause", "resume")


def always_speak(request: Request) -> Generation:
    return say("Sure!")


def always_act(request: Request) -> Generation:
    return calls(call("act", query=_message(request)))


def always_interject_the_newest(request: Request) -> Generation:
    tools = [name for name in _tools(request) if name.startswith("interject_")]
    return calls(call(tools[-1], message=_message(request))) if tools else say("To what?")


def never_ask(request: Request) -> Generation:
    """Takes whatever is said for the action that shares the most words with it, else the newest one."""
    message, tools = _message(request), _tools(request)
    verb = next((one for one in _VERBS if one in message.lower()), "interject")
    fitting = [name for name in tools if name.startswith(f"{verb}_") and _STEERS.match(name)]
    if not fitting:
        return calls(call("act", query=message))
    words = set(re.findall(r"\w{3,}", message.lower()))
    about = dict(_TOLD.findall(str(request.messages[-1]["content"])))
    shared = {name: len(words & set(re.findall(r"\w{3,}", about[_label(name)].lower()))) for name in fitting}
    best = max(reversed(fitting), key=lambda name: shared[name])
    return calls(_steer(best, message))


def _steer(tool: str, message: str) -> RawCall:
    return call(tool, message=message) if tool.startswith("interject_") else call(tool)


def _label(tool: str) -> str:
    return tool.rpartition("__")[2]


def _tools(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


def _message(request: Request) -> str:
    return str(request.messages[-2]["content"]).rpartition("] ")[2]


POLICIES: Mapping[str, Callable[[Request], Generation]] = {
    "always-speak": always_speak,
    "always-act": always_act,
    "always-interject-the-newest": always_interject_the_newest,
    "never-ask": never_ask,
}


class PolicyModel:
    """`--model policy:NAME`: what the table looks like when nobody thinks."""

    def __init__(self, policy: str) -> None:
        self.name = f"policy:{policy}"
        self._policy = POLICIES[policy]

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        return self._policy(request)
