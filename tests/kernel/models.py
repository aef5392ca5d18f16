"""The scripted models. Each derives its answer from the request's messages alone, as a model does; what it derives from
is kept, for the rules to be checked on it."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.llm.model import Generation, OnSpent, RawCall, Request, Usage
from tests.kernel.faults import Gate

Answer = Callable[[Request], Generation]
_EVENT = re.compile(r"^\[([^\]]*)\] ?(.*)$")
_CELL = re.compile(r"\b(cell\d+) (ended|still runs|is lost)")


@dataclass
class Asked:
    """One request, in the order in which they were made."""

    request: Request
    number: int


@dataclass
class Watch:
    """What all processes of a run asked their models; `number` is in the usage of what came of it."""

    asked: list[Asked] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)
    numbers: int = 0
    begun: Callable[[str], None] = lambda name: None


class ScriptedModel:
    """`name` is also the label of its points."""

    def __init__(self, name: str, answer: Answer, watch: Watch, gate: Gate, think_seconds: float) -> None:
        self.name = name
        self._answer, self._watch, self._gate, self._think_seconds = answer, watch, gate, think_seconds

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        await self._gate.alive()
        self._watch.numbers += 1
        usage = Usage(prompt_tokens=self._watch.numbers)
        self._watch.asked.append(Asked(request, usage.prompt_tokens))
        try:
            await self._gate.point(self.name, "before")
            self._watch.begun(self.name)
            await asyncio.sleep(self._think_seconds)
            made = self._answer(request)
            await self._gate.point(self.name, "after")
        except asyncio.CancelledError:
            self._watch.cancelled.add(usage.prompt_tokens)
            if on_spent is not None and not self._gate.dead:
                on_spent(self.name, usage)
            raise
        return Generation(text=made.text, calls=made.calls, finish="stop", usage=usage, model=self.name)


def call(tool: str, /, **arguments: Any) -> RawCall:
    return RawCall(name=tool, arguments=json.dumps(arguments))


# --- the conversation ------------------------------------------------------------------------------------------------


def front_desk(request: Request) -> Generation:
    """Everything in one text, which says what it answers; silence for thanks and for what became of sends."""
    if not str(request.messages[-1]["content"]).startswith("(State at"):
        return _mended(request)
    events = [(found[1], found[2]) for line in _events(request) if (found := _EVENT.match(line))]
    tools = [tool["function"]["name"] for tool in request.tools]
    said, told = [], []
    calls: list[RawCall] = []
    for head, text in events:
        label, _, what = head.partition(" ")
        if label.startswith("m"):
            said.append((label, text))
        elif label != "a" or not what.startswith("send"):
            told.append(f"{head.partition(' ·')[0]}: {text}")
    if any(text.startswith("Add up") for _, text in said):
        calls.append(call("act", name="sums", query=" ".join(text for _, text in said)))
        told.append(f"On it ({_labels(said)})")
        said = []
    for label, text in said:
        told.append(_steer(label, text, tools, calls))
    spoken = [text for text in told if text]
    if not spoken:
        return Generation(calls=(*calls, call("wait", reason=f"nothing to say to {[head for head, _ in events]}")))
    return Generation(text=f"{'; '.join(spoken)} #{len(request.messages)}", calls=tuple(calls))


def _mended(request: Request) -> Generation:
    """A call was refused: the question was closed meanwhile. What was said still goes to the work, if it can."""
    refused = [m for m in request.messages if m["role"] == "assistant"][-1]["tool_calls"]
    words = [json.loads(one["function"]["arguments"]).get("answer", "") for one in refused]
    name = next((tool["function"]["name"] for tool in request.tools if "interject_" in tool["function"]["name"]), None)
    if name and any(words):
        return Generation(calls=(call(name, message=f"{' '.join(words)} <again>"),))
    return Generation(calls=(call("wait", reason="nothing to pass on any more"),))


def _events(request: Request) -> list[str]:
    text = str(request.messages[-2]["content"])
    return text.split("\n")


def _labels(said: list[tuple[str, str]]) -> str:
    return " ".join(label for label, _ in said)


def _steer(label: str, text: str, tools: list[str], calls: list[RawCall]) -> str:
    def tool(verb: str) -> str | None:
        return next((name for name in tools if name.startswith(f"{verb}_")), None)

    if text.startswith("Thanks"):
        return ""
    if text.startswith("Stop") and (name := tool("stop")):
        calls.append(call(name, reason=text))
        return f"Stopping ({label})"
    if text.startswith("The blue one") and (name := tool("answer_clarification")):
        calls.append(call(name, answer=text))
        return f"Noted ({label})"
    if name := tool("interject"):
        calls.append(call(name, message=f"{text} <{label}>"))
        return f"Passed on ({label})"
    return f"Too late for that ({label})"


# --- the work --------------------------------------------------------------------------------------------------------


def worker(request: Request) -> Generation:
    """Runs code, waits for it whatever is said meanwhile, and responds with what it has heard."""
    if request.tool_choice == "none":
        return Generation(text="I am at it.")
    messages = request.messages
    since = max((n for n, m in enumerate(messages) if m["role"] == "assistant" and not m.get("tool_calls")), default=0)
    said = [str(m["content"]) for m in messages if m["role"] in ("tool", "user")]
    states = [(found[1], found[2]) for text in said for found in _CELL.finditer(text)]
    now = [found[2] for m in messages[since + 1 :] for found in _CELL.finditer(str(m["content"] or ""))]
    if states and states[-1][1] == "still runs":
        return Generation(calls=(call("continue_code", cell=states[-1][0], seconds=30),))
    if "ended" in now and now[-1] == "ended":
        heard = re.findall(r"<(m\d+)>", " ".join(said))
        return Generation(text=f"Total by {states[-1][0]}, having heard {' '.join(dict.fromkeys(heard))}")
    again = any(m["role"] == "assistant" and not m.get("tool_calls") for m in messages)
    code = "# adding up again\nagain()" if again else "# adding up\ncount()"
    return Generation(calls=(call("execute_code", code=code, stateful=True),))


def script(cell: str, code: str) -> list[tuple[Any, ...]]:
    """What that code does in the sandbox."""
    if "again()" in code:
        return [("print", f"{cell} again"), ("tick", 1), ("call", "book", {"what": f"{cell}-b"}), ("print", "fine")]
    return [
        ("print", f"{cell} begins"),
        ("call", "notify", {"text": f"{cell} is under way"}),
        ("mark", "code"),
        ("tick", 10),
        ("print", f"{cell} goes on"),
        ("call", "request_clarification", {"question": "Which account?"}),
        ("call", "book", {"what": f"{cell}-a"}),
        ("print", f"{cell} booked"),
    ]
