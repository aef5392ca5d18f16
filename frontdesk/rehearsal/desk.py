"""The conversation's rules: what happened, read from the prompt as a model reads it, to one decision. Pure."""

import re

import msgspec

from frontdesk.rehearsal import words
from frontdesk.rehearsal.answers import call, calls, say
from gateway.llm.model import Generation, RawCall, Request
from gateway.record import Record

CAN = (
    "I'm the rehearsal model: rules, not a language model. I understand sales figures, like “total February by "
    "region”, corrections to them (“net, not gross”), follow-ups (“now do March”, “send it to Sarah”), “how far are "
    "you?”, and stop, pause, resume."
)
_ACTION = re.compile(r"^(a\d+) (\S+) · (\w+)")
_QUESTION = re.compile(r"^  open question (\S+): (.*)")


class Event(Record, frozen=True, kw_only=True):
    """`kind` is message, or what an action did: responded, progress, asks, answered, refused, succeeded, …"""

    label: str
    kind: str
    text: str
    name: str = ""


class Running(Record, frozen=True, kw_only=True):
    label: str
    name: str
    phase: str
    line: str
    questions: tuple[str, ...] = ()


def decide(request: Request) -> Generation:
    state_at = max(n for n, m in enumerate(request.messages) if str(m.get("content", "")).startswith("(State at "))
    if state_at != len(request.messages) - 1:  # a call of ours was refused: say so, rather than try again
        return say(f"I can't do that: {request.messages[-1].get('content', '')}")
    events = _events(str(request.messages[state_at - 1]["content"]))
    running = _running(str(request.messages[state_at]["content"]))
    tools = {tool["function"]["name"] for tool in request.tools}
    texts: list[str] = []
    made: list[RawCall] = []
    said = [event.text for event in events if event.kind == "message"]
    before = [str(m["content"]) for m in request.messages[: state_at - 1] if m["role"] == "user"]
    earlier = [event.text for content in before for event in _events(content) if event.kind == "message"]
    for event in events:
        if event.kind != "message" and (told := _tell(event)):
            texts.append(told)
    if said:
        text, call_made = _answer(said, earlier, running, tools)
        texts += [text] if text else []
        made += [call_made] if call_made else []
    if not texts and not made:
        return calls(call("wait", reason="nothing that needs a word"))
    return calls(*made, text="\n\n".join(texts)) if made else say("\n\n".join(texts))


# --- reading ---------------------------------------------------------------------------------------------------------


def _events(content: str) -> list[Event]:
    events: list[Event] = []
    for block in re.split(r"\n(?=\[)", content):
        head, _, text = block.removeprefix("[").partition("]")
        parts = head.split(" · ")
        text = text.strip().replace("\n  ", "\n")
        if len(parts) == 4:
            events.append(Event(label=parts[0], kind="message", text=text))
        elif parts[0].startswith("a send"):
            events.append(Event(label="send", kind=parts[0].split()[-1], text=text))
        elif len(parts) == 2 and (found := re.match(r"(a\d+) (\S+) (.+)", parts[0])):
            events.append(Event(label=found[1], name=found[2], kind=found[3].split()[0], text=text))
    return events


def _running(content: str) -> list[Running]:
    found: list[Running] = []
    for line in content.splitlines():
        if head := _ACTION.match(line):
            found.append(Running(label=head[1], name=head[2], phase=head[3], line=line))
        elif (question := _QUESTION.match(line)) and found:
            found[-1] = msgspec.structs.replace(found[-1], questions=(*found[-1].questions, question[1]))
    return found


# --- deciding --------------------------------------------------------------------------------------------------------


def _tell(event: Event) -> str:
    match event.kind:
        case "asks":
            question, _, options = event.text.removesuffix(")").partition(" (options: ")
            return "\n".join([question, *(f"- {option}" for option in options.split("; ") if option)])
        case "responded" | "answered" | "progress" | "succeeded":
            return event.text
        case "failed":
            return f"“{event.name}” failed: {event.text}"
        case "stopped":
            return f"“{event.name}” is stopped. {event.text}"
        case "refused":
            return f"That did not reach “{event.name}”: {event.text}"
        case "unknown":
            return f"I don't know whether my last message arrived: {event.text}"
        case _:
            return ""


def _answer(said: list[str], earlier: list[str], running: list[Running], tools: set[str]) -> tuple[str, RawCall | None]:
    text = said[-1]
    asking = [action for action in running if action.questions]
    busy = [action for action in running if action.phase in ("running", "paused")]
    if words.is_thanks(text):
        return "", call("wait", reason="thanks need no answer")
    if verb := words.steering(text):
        return _steer(verb, running, tools)
    if words.wants_the_worker_asked(text):
        return _ask(text, running)
    if words.asks_for_progress(text):
        return _progress(running), None
    if words.is_greeting(text):
        return f"Hello! {CAN}", None
    if asking and not words.named_spec(text):
        action = asking[-1]
        return "", call(f"answer_clarification_{action.name}__{action.label}__{action.questions[0]}", answer=text)
    if running and (words.is_follow_up(text) or words.is_correction(text)):
        action = (busy or running)[-1]
        spoken = "I've passed that on." if action in busy else "On it, with what is there already."
        return spoken, call(f"interject_{action.name}__{action.label}", message=text)
    work = [one for one in said if words.is_work(one) or words.named_spec(one) or words.recipient(one)]
    if work:
        return "On it.", call("act", name="sales", query=" ".join(work), persist=True)
    if busy and earlier and words.recipient(earlier[-1]):  # more about whom it goes to, before anybody asked
        return "I've passed that on.", call(f"interject_{busy[-1].name}__{busy[-1].label}", message=text)
    return f"I don't understand that. {CAN}", None


def _steer(verb: str, running: list[Running], tools: set[str]) -> tuple[str, RawCall | None]:
    for action in reversed(running):
        name = f"{verb}_{action.name}__{action.label}"
        if name in tools:
            done = {"stop": "Stopping it.", "pause": "It stands still now.", "resume": "It goes on."}[verb]
            return done, call(name)
    return f"There is nothing to {verb}.", None


def _ask(text: str, running: list[Running]) -> tuple[str, RawCall | None]:
    if not running:
        return "Nothing is in flight.", None
    action = running[-1]
    return "", call(f"ask_{action.name}__{action.label}", question=text)


def _progress(running: list[Running]) -> str:
    """From the state in the prompt: nobody is disturbed."""
    if not running:
        return "Nothing is in flight."
    lines = (action.line.replace("awaiting_input", "ready for more").partition(" · ") for action in running)
    return "\n".join(f"- {what}: {how}" for what, _, how in lines)
