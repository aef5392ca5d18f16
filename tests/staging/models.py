"""A scripted model as a table: what it is asked about, and what it decides. It answers over a real wire.

    stage.desk.on("Book Rome").acts("booking", "Book Rome", saying="On it")
    held = stage.worker.on("Book Rome").responds("Booked").held()
    await held.streaming()          # the first piece is out
    held.release()

A rule is met by what is new in a request: for the desk by what people said in the turn (`on`) or by what actions told
(`told`), for a worker by all since its last word. What people said comes first; of several rules the one with most
words decides, of equals the newest. A rule's decisions are used up in order, the last again and again. Without a rule,
the desk passes on what an action says, and a worker responds with the output of its code.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS
from tests.servers.openai import Call, Cut, Error, Hold, Received, Reply, ScriptedOpenAI, Step, call
from tests.servers.openai_rules import text_of

Decision = Callable[[Received], Step]
_MESSAGE = re.compile(r"^\[m\d+ · [^\]]*\] ((?:.|\n  )*)", re.MULTILINE)
_TOLD = re.compile(r"^\[(?:a\d+|e\w{4}) (\w+) (\w+)[^\]]* · [^\]]*\] ?((?:.|\n  )*)", re.MULTILINE)
_OUTPUT = re.compile(r"^cell\d+ ended: \w+\.\n?(.*)", re.DOTALL | re.MULTILINE)


class Rule:
    def __init__(self, words: tuple[str, ...], part: str) -> None:
        self.words, self.part = words, part
        self.requests: list[Received] = []
        self._decisions: list[Decision] = []
        self._gate: asyncio.Event | None = None
        self._met = asyncio.Event()

    # --- what a desk decides -----------------------------------------------------------------------------------------

    def replies(self, text: str, **how: Any) -> Self:
        return self.gives(Reply(text=text, **how))

    def waits(self, reason: str = "nothing to say") -> Self:
        return self.gives(Reply(calls=[call("wait", reason=reason)]))

    def acts(self, name: str, query: str, saying: str = "", **more: Any) -> Self:
        return self.gives(Reply(text=saying, calls=[call("act", name=name, query=query, **more)]))

    def interjects(self, name: str, message: str | None = None, saying: str = "") -> Self:
        """By default the words that were just said."""
        return self.steers("interject", name, saying, message=message)

    def asks(self, name: str, question: str = "How far are you?", saying: str = "") -> Self:
        return self.steers("ask", name, saying, question=question)

    def pauses(self, name: str, saying: str = "") -> Self:
        return self.steers("pause", name, saying)

    def resumes(self, name: str, saying: str = "") -> Self:
        return self.steers("resume", name, saying)

    def stops(self, name: str, saying: str = "") -> Self:
        return self.steers("stop", name, saying)

    def answers(self, name: str, answer: str | None = None, saying: str = "") -> Self:
        return self.steers("answer_clarification", name, saying, answer=answer)

    def steers(self, verb: str, name: str, saying: str = "", **arguments: Any) -> Self:
        """A missing text is what was just said."""

        def decide(received: Received) -> Step:
            tool = next((one for one in received.tool_names if one.startswith(f"{verb}_{name}__")), f"{verb}_{name}")
            given = {
                key: value if value is not None else said_in(new_to_desk(received)) for key, value in arguments.items()
            }
            return Reply(text=saying, calls=[call(tool, **given)])

        return self.decides(decide)

    # --- what a worker does ------------------------------------------------------------------------------------------

    def runs(self, code: str, *, stateful: bool = False, saying: str = "") -> Self:
        return self.calls(call("execute_code", code=code, stateful=stateful), saying=saying)

    def responds(self, text: str, **how: Any) -> Self:
        return self.gives(Reply(text=text, **how))

    # --- both --------------------------------------------------------------------------------------------------------

    def calls(self, *made: Call, saying: str = "") -> Self:
        return self.gives(Reply(text=saying, calls=made))

    def gives(self, *steps: Step) -> Self:
        for step in steps:
            self._decisions.append(lambda _, step=step: step)
        return self

    def decides(self, decide: Decision) -> Self:
        self._decisions.append(decide)
        return self

    def held(self) -> Self:
        """The last decision stops after its first piece, until `release`."""
        decide, gate = self._decisions[-1], asyncio.Event()
        self._gate = gate

        def held(received: Received) -> Step:
            step = decide(received)
            assert isinstance(step, Reply)
            return Reply(text=step.text or "Well,", calls=step.calls, chunks=2, gate=gate)

        self._decisions[-1] = held
        return self

    def silent(self) -> Self:
        """Nothing of the last decision comes until `release`."""
        decide, gate = self._decisions[-1], asyncio.Event()
        self._gate = gate
        self._decisions[-1] = lambda received: Hold(gate, decide(received))  # type: ignore[arg-type]
        return self

    def release(self) -> None:
        assert self._gate is not None
        self._gate.set()

    async def asked(self, times: int = 1) -> Received:
        """The request that met this rule so many times."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.requests) < times:
                self._met.clear()
                await self._met.wait()
        return self.requests[times - 1]

    async def streaming(self, times: int = 1) -> Received:
        received = await self.asked(times)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await received.streaming.wait()
        return received

    async def over(self, times: int = 1) -> Received:
        """Answered to its end, or left by the client."""
        received = await self.asked(times)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await received.over.wait()
        return received

    def meets(self, parts: dict[str, str]) -> bool:
        return self.part in parts and all(word in parts[self.part] for word in self.words)

    def decide(self, received: Received) -> Step:
        place = min(len(self.requests), len(self._decisions) - 1)
        self.requests.append(received)
        self._met.set()
        return self._decisions[place](received)


class Table:
    """One scripted model. `unexpected` are the requests that no rule was for."""

    def __init__(self, server: ScriptedOpenAI, parts: "Parts", other: Callable[[dict[str, str]], Step | None]) -> None:
        self.server, self.unexpected = server, list[str]()
        self._parts, self._other = parts, other
        self._rules: list[Rule] = []
        server.script(self._answer)

    @property
    def requests(self) -> list[Received]:
        return self.server.requests

    def on(self, *words: str) -> Rule:
        return self._rule(words, "said")

    def told(self, *words: str) -> Rule:
        return self._rule(words, "told")

    def beside(self, *words: str) -> Rule:
        """For the questions that are asked beside a worker's own loop."""
        return self._rule(words, "beside")

    def _rule(self, words: tuple[str, ...], part: str) -> Rule:
        self._rules.append(Rule(words, part))
        return self._rules[-1]

    def _answer(self, received: Received) -> Step:
        parts = self._parts(received)
        met = [rule for rule in self._rules if rule.meets(parts)]
        if met:
            return max(reversed(met), key=lambda rule: (rule.part == "said", len(rule.words))).decide(received)
        if (step := self._other(parts)) is not None:
            return step
        self.unexpected.append(str(parts))
        return Reply(text="(no rule is for this)")


Parts = Callable[[Received], dict[str, str]]


def desk(server: ScriptedOpenAI) -> Table:
    return Table(server, _parts_of_turn, _pass_on)


def worker(server: ScriptedOpenAI) -> Table:
    return Table(server, _parts_of_work, _output)


def new_to_desk(received: Received) -> str:
    """The events of the turn, and what came back of it since."""
    texts = [text_of(message) for message in received.messages]
    state_at = max(n for n, text in enumerate(texts) if text.startswith("(State at "))
    return "\n".join([texts[state_at - 1], *texts[state_at + 1 :]])


def live_state(received: Received) -> str:
    return next(text for m in reversed(received.messages) if (text := text_of(m)).startswith("(State at "))


def new_to_worker(received: Received) -> str:
    """All since its last word, without what was said in the conversation before its task."""
    since: list[str] = []
    for message in reversed(received.messages):
        if message["role"] in ("assistant", "system"):
            break
        since.insert(0, text_of(message).partition("\n\nWhat was said before, for context:")[0])
    return "\n".join(since)


def said_in(events: str) -> str:
    """The last message."""
    return _MESSAGE.findall(events)[-1]


def _parts_of_turn(received: Received) -> dict[str, str]:
    events = new_to_desk(received)
    said = "\n".join(_MESSAGE.findall(events))
    return {"said": said, "told": events} if said else {"told": events}


def _parts_of_work(received: Received) -> dict[str, str]:
    return {"beside" if received.body.get("tool_choice") == "none" else "said": new_to_worker(received)}


def _pass_on(parts: dict[str, str]) -> Step | None:
    if "said" in parts:
        return None
    texts = [text for _, what, text in _TOLD.findall(parts["told"]) if what not in ("progress", "refused") and text]
    return Reply(text="\n".join(texts)) if texts else Reply(calls=[call("wait", reason="nothing to pass on")])


def _output(parts: dict[str, str]) -> Step | None:
    found = _OUTPUT.search(parts.get("said", ""))
    return Reply(text=found[1].strip() or "Done.") if found else None


__all__ = ["Call", "Cut", "Error", "Reply", "Rule", "Table", "call", "desk", "live_state", "worker"]
