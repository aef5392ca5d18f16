"""Starting the calls that an action's model made, and what an open call can be told in between."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from actors.entries import Call, CallClosed, JobAwaited, JobStarted, Notified
from actors.tools import NAMES, flaw
from actors.words import WaitOver
from gateway.events import Ref
from gateway.llm.history import shortened
from gateway.llm.model import parsed_arguments
from gateway.record import encode

if TYPE_CHECKING:
    from actors.actor import Actor

CODE_CHARACTERS = 100_000
RESULT_CHARACTERS = 20_000
WORDS_BYTES = 20_000  # of a question, a part of the work, a word to a worker
RESPONSE_BYTES = 60_000
OPTION_CHARACTERS = 200
NAME_CHARACTERS = 64
WAIT_SECONDS = 120.0  # a call waits so long for its code; then the model hears how it stands
CONTINUE_SECONDS_MAX = 600.0
HOURS_MAX = 24 * 365


class NotRun(Exception):
    """Why a call is not run; the text is for the model."""


async def start(actor: "Actor", call: Call) -> None:
    try:
        arguments = _usable(actor, call)
        await _START[call.name](actor, call, arguments)
    except NotRun as why:
        await actor.close_call(call, f"Not run: {why}.")


def shown(text: str) -> str:
    """Capped in one place for every result."""
    return shortened(text, RESULT_CHARACTERS)


def words(what: str, text: str) -> str:
    """Raises NotRun when it is more than anybody would say."""
    if (size := len(encode(text))) > WORDS_BYTES:
        raise NotRun(f"{what} takes {size:,} bytes, at most {WORDS_BYTES:,}: put it into a file, and say which")
    return text


def interim(actor: "Actor", call: Call, *, shown: bool) -> str:
    """What an open call has by now. `shown`: the model will see it, so that later results carry only what is new."""
    job_name = actor.transcript.waits.get(call.id)
    if job_name is None:
        return "Not started: a message came first. Call again if it is still right."
    job = actor.transcript.jobs[job_name]
    match job.kind:
        case "cell":
            output = actor.box.fresh(job.job) if shown else actor.box.peek(job.job)
            return shortened(f"{job.job} still runs. Output so far:\n{output or '(none)'}", RESULT_CHARACTERS)
        case "question":
            return f"{job.job} is not answered yet; the answer will come as a message."
        case "child":
            return f"{job.job} still works; its result will come as a message."
        case "ask":
            return f"{job.child} has not answered yet; its answer will come as a message."


async def close_for_now(actor: "Actor", call: Call) -> None:
    """With what it has by now. What was shown is in the log with it, so a restart shows nothing twice."""
    text = interim(actor, call, shown=True)
    job = actor.transcript.jobs.get(actor.transcript.waits.get(call.id, ""))
    shown = actor.box.shown(job.job) if job is not None and job.kind == "cell" else 0
    await actor.append(CallClosed(call=call.id, text=text, shown=shown))


async def wait_over(actor: "Actor", call: str, seconds: float) -> None:
    await asyncio.sleep(seconds)
    actor.happened(WaitOver(call=call))


async def _execute(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    code, stateful = arguments["code"], arguments.get("stateful") is True
    if actor.work.limits.code_refused:
        raise NotRun(actor.work.limits.code_refused)
    if len(code) > CODE_CHARACTERS:
        raise NotRun(f"the code has {len(code)} characters, at most {CODE_CHARACTERS}")
    busy = [job.job for job in actor.transcript.jobs.values() if job.kind == "cell" and job.stateful]
    if stateful and busy:
        raise NotRun(f"{busy[0]} still runs in the stateful session; continue_code or interrupt_code first")
    job = f"cell{actor.transcript.jobs_made + 1}"
    await actor.append(JobStarted(job=job, kind="cell", about=code, call=call.id, stateful=stateful))
    actor.work.check()
    await actor.box.execute(job, code, stateful=stateful)
    actor.spawn(wait_over(actor, call.id, WAIT_SECONDS), "wait")


async def _continue(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    cell = _running(actor, arguments)
    seconds = arguments.get("seconds", 30)
    await actor.append(JobAwaited(job=cell, call=call.id))
    actor.spawn(wait_over(actor, call.id, min(max(seconds, 0), CONTINUE_SECONDS_MAX)), "wait")


async def _interrupt(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    cell = _running(actor, arguments)
    await actor.append(JobAwaited(job=cell, call=call.id))
    actor.box.interrupt(cell)
    actor.spawn(wait_over(actor, call.id, WAIT_SECONDS), "wait")


async def _notify(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    text = shown(arguments["text"])
    await actor.append(Notified(text=text))
    await actor.close_call(call, "Noted.")
    actor.tell_progress(text)


async def _clarify(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    await actor.ask_person(question(actor, arguments["question"], arguments, call=call.id))


def question(actor: "Actor", text: str, arguments: dict[str, Any], **waiting: Any) -> JobStarted:
    """A question to the person, with its times; `waiting` says what waits for it. Raises NotRun."""
    limits, now = actor.work.limits, actor.work.now()
    default, hours = arguments.get("default"), arguments.get("hours")
    within = limits.answer_within
    if isinstance(hours, int | float) and not isinstance(hours, bool) and 0 < hours <= HOURS_MAX:
        within = timedelta(hours=hours)
    return JobStarted(
        job=f"question{actor.transcript.jobs_made + 1}",
        kind="question",
        about=words("the question", text),
        options=_options(arguments),
        default=words("default", default) if isinstance(default, str) and default.strip() else None,
        at=now,
        remind_at=now + min(limits.remind_after, within / 2),
        expires_at=now + within,
        **waiting,
    )


async def _act(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    await actor.children.begin(actor, arguments["query"], arguments.get("name") or "", call=call.id)


async def _steer(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    job, verb, text = arguments["action"], arguments["verb"], arguments.get("text") or ""
    if verb == "ask":
        await ask_child(actor, job, text, call=call.id)
        return
    check_steering(actor, job, verb, text)
    own = Ref(f"act-{actor.key}/own", int(call.id.removeprefix("c")), 0)
    await actor.children.steer(actor, job, verb, text, own)
    await actor.close_call(call, "Passed on.")


def check_steering(actor: "Actor", job: str, verb: str, text: str) -> None:
    """Raises NotRun."""
    jobs = actor.transcript.jobs
    if job not in jobs or jobs[job].kind != "child":
        working = [name for name, one in jobs.items() if one.kind == "child"]
        raise NotRun(f"{job} does not work for you; there are: {', '.join(working) or 'none'}")
    if verb not in ("interject", "pause", "resume", "stop"):
        raise NotRun(f"{verb} is not possible")
    if verb == "interject" and not text.strip():
        raise NotRun("text is missing")
    words("text", text)


async def ask_child(actor: "Actor", child: str, text: str, **waiting: Any) -> None:
    """Also one that has ended. Raises NotRun."""
    if child not in actor.state.children:
        raise NotRun(f"{child} has never worked for you; there are: {', '.join(actor.state.children) or 'none'}")
    job = JobStarted(
        job=f"ask{actor.transcript.jobs_made + 1}",
        kind="ask",
        about=words("text", text.strip()) or "How does it stand?",
        child=child,
        **waiting,
    )
    await actor.append(job)
    await actor.children.ask(actor, job)


async def _respond(actor: "Actor", call: Call, arguments: dict[str, Any]) -> None:
    if actor.transcript.jobs:
        raise NotRun(f"{', '.join(actor.transcript.jobs)} still open; wait, interrupt or answer first")
    await actor.respond(arguments["text"], call.id)


_START = {
    "execute_code": _execute,
    "continue_code": _continue,
    "interrupt_code": _interrupt,
    "notify": _notify,
    "request_clarification": _clarify,
    "act": _act,
    "steer": _steer,
    "respond": _respond,
}


def _usable(actor: "Actor", call: Call) -> dict[str, Any]:
    """Its arguments, as its tool wants them. Raises NotRun."""
    _, arguments = parsed_arguments(call.arguments)
    if call.refused or arguments is None:
        raise NotRun(call.refused or "the arguments are no JSON object")
    if call.name not in NAMES:
        raise NotRun(f"there is no tool {call.name[:NAME_CHARACTERS]}; there are: {', '.join(_START)}")
    if actor.transcript.responded:
        raise NotRun("the response was given before it; call again if it is still right")
    if wrong := flaw(call.name, arguments):
        raise NotRun(wrong)
    return {key: value for key, value in arguments.items() if value is not None}


def _options(arguments: dict[str, Any]) -> tuple[str, ...]:
    options = arguments.get("options")
    return tuple(shortened(str(one), OPTION_CHARACTERS) for one in options[:10]) if isinstance(options, list) else ()


def _running(actor: "Actor", arguments: dict[str, Any]) -> str:
    cell = str(arguments["cell"])
    if cell not in actor.transcript.jobs or actor.transcript.jobs[cell].kind != "cell":
        raise NotRun(f"{cell} is not running")
    return cell
