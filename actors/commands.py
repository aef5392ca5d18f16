"""What an action does with a command: legal by the table, written in its log with the command's place, handed down."""

from typing import TYPE_CHECKING

import msgspec

from actors import handing
from actors.bounds import STOP_HERE, means_no
from actors.calls import RESPONSE_BYTES, close_for_now, interim
from actors.entries import Asked, Briefed, Interjected, JobEnded, JobStarted, Paused, Refused, Resumed, Stopped
from actors.tools import NAMES
from actors.transcript import with_files
from actors.words import AskDone
from gateway.actions import refusal, verb_of
from gateway.broker.protocol import TooLarge
from gateway.events import ActionCommand, Answer, Ask, Interject, Pause, Resume, Start, Stop
from gateway.llm.history import within
from gateway.llm.model import ModelError, Request
from gateway.llm.written_calls import written_calls
from gateway.record import encode, newest_that_fit

if TYPE_CHECKING:
    from actors.actor import Actor

OUTPUT_TOLD = 400
BRIEF_BYTES = 240_000  # an entry holds 256 KB: as many notes as fit
REPORT_BYTES = 120_000
TOO_LONG = "it is too long to be kept: say it shorter, or put it into a file"
NEVER_BEGAN = "something in me fails on it, again and again"
IN_WORDS = "Answer in words alone; no call is run here."


async def obey(actor: "Actor", command: ActionCommand, sequence: int) -> None:
    """Raises nothing of its own: what is not legal is refused in the log, and so is what no entry can hold."""
    try:
        why = _illegal(actor, command)
        if not why:
            await _take(actor, command, sequence)
    except TooLarge:
        why = TOO_LONG
    if why:
        nowhere = command.conversation if actor.state.start is None else ""
        verb = verb_of(command)
        await actor.append(Refused(command=command.ref, verb=verb, why=why, through=sequence, conversation=nowhere))


async def _take(actor: "Actor", command: ActionCommand, sequence: int) -> None:
    match command:
        case Start():
            notes = await actor.work.notes(command.by, command.conversation) if command.depth == 0 else ()
            files = await handing.put(actor, command)
            notes = tuple(newest_that_fit(notes, BRIEF_BYTES - len(encode([command, files]))))
            now = actor.work.now()
            await actor.append(Briefed(start=command, notes=notes, through=sequence, at=now, files=files))
        case Interject():
            await _close_bounds(actor)
            files = await handing.put(actor, command)
            await close_all(actor)
            now = actor.work.now()
            await actor.append(Interjected(command=command, through=sequence, at=now, files=files))
            actor.children.wake()
            await actor.children.cascade(actor)
        case Ask():
            await actor.append(Asked(command=command, through=sequence))
            answer_beside(actor, command)
        case Pause():
            await actor.append(Paused(command=command, through=sequence))
            await actor.box.suspend()
            await actor.children.cascade(actor)
        case Resume():
            await actor.append(Resumed(command=command, through=sequence, at=actor.work.now()))
            await actor.box.resume()
            while actor.held_calls:
                actor.happened(actor.held_calls.pop(0))
            await actor.children.cascade(actor)
        case Stop():
            await actor.append(Stopped(command=command, report=_report(actor), through=sequence))
            await actor.children.cascade(actor)
            await actor.box.kill()
            actor.tell_parent()
        case Answer():
            await _answer(actor, command, sequence)


def _illegal(actor: "Actor", command: ActionCommand) -> str | None:
    state = actor.state
    verb = verb_of(command)
    if verb == "start" and state.start is None:
        return NEVER_BEGAN if state.transcript.ended else None
    if verb == "start":
        return "it has been started already"
    if state.start is None:
        return "there is no such action"
    if isinstance(command, Answer) and state.phase in ("running", "paused"):
        job = state.transcript.jobs.get(command.question)
        if job and job.kind == "question":
            return None
        gone = state.gone.get(command.question)
        why = f" any more. {gone}" if gone else ""
        return f"the question {command.question} is not open{why}"
    return refusal(state.phase, verb)


async def _close_bounds(actor: "Actor") -> None:
    """Whoever speaks to it wants it to go on."""
    for job in [job for job in actor.transcript.jobs.values() if job.bound]:
        await actor.append(JobEnded(job=job.job, text=f"({job.job}: somebody spoke instead of answering; go on.)"))


async def close_all(actor: "Actor") -> None:
    """Before a person's words: every open call gets the result that it has by now."""
    for call in list(actor.transcript.open.values()):
        await close_for_now(actor, call)


async def _answer(actor: "Actor", answer: Answer, sequence: int) -> None:
    job = actor.transcript.jobs[answer.question]
    said = answer.text + with_files(await handing.put(actor, answer))
    if not _is_waited_for(actor, job):  # its call was closed by an interjection: the answer is a message like any other
        await close_all(actor)
    await actor.append(
        JobEnded(
            job=job.job,
            text=f"{job.job} (“{job.about}”) was answered by {answer.by.name}: {said}",
            value=STOP_HERE if job.bound and means_no(said) else said,
            command=answer.ref,
            by=answer.by,
            through=sequence,
            at=actor.work.now(),
        )
    )
    if job.bound:
        actor.children.wake()
    if job.child and job.question:
        await actor.children.answer(actor, job.child, job.question, answer)
    actor.answer_code(job, said)


def _is_waited_for(actor: "Actor", question: JobStarted) -> bool:
    """By code, by a child, or by a call of its model."""
    waits = question.job in actor.transcript.waits.values()
    return waits or question.cell is not None or question.child is not None


async def expire(actor: "Actor", job: JobStarted) -> None:
    """Nobody has answered in time: the default counts, or the one who asked is told. A bound ends the work there."""
    if not _is_waited_for(actor, job):
        await close_all(actor)
    unanswered = f"{job.job} (“{job.about}”) was not answered in time"
    if job.bound:
        text, value = f"{unanswered}, so you stop here.", STOP_HERE
    elif job.default is not None:
        text, value = f"{unanswered}, so the default counts: {job.default}", job.default
    else:
        text, value = f"{unanswered}. Go on without the answer, or say what it keeps you from.", ""
    failed = not value
    await actor.append(JobEnded(job=job.job, text=text, value=value, failed=failed, at=actor.work.now()))
    if job.bound:
        actor.children.wake()
    if actor.parent is not None:
        actor.parent.child_closed(actor.key, job.job)
    actor.answer_code(job, text if failed else value, failed=failed)


def answer_beside(actor: "Actor", ask: Ask) -> None:
    """A call of its own on a snapshot; the loop is not touched, its next request is byte for byte the same."""
    live = {call.id: interim(actor, call, shown=False) for call in actor.transcript.open.values()}
    question = f"[{ask.by.name} asks, beside the work; answer in a sentence or two from what you know now] {ask.text}"
    messages = [actor.instructions, *actor.transcript.snapshot(live, f"{question}\n({_state(actor)})")]
    actor.spawn(_answered(actor, ask, Request(messages=messages, tools=actor.tools, tool_choice="none")), "ask")


async def _answered(actor: "Actor", ask: Ask, request: Request) -> None:
    again = [*request.messages, {"role": "user", "content": IN_WORDS}]
    try:
        text = (
            await _said(actor, request)
            or await _said(actor, msgspec.structs.replace(request, messages=again))
            or f"It gave no answer in words. {_state(actor)}"
        )
    except ModelError as error:
        actor.work.operator(f"The action {actor.key} could not be asked. {error.for_operator}")
        text = "It cannot be asked right now: its model gives no answer."
    actor.happened(AskDone(ask=ask, text=text))


async def _said(actor: "Actor", request: Request) -> str:
    """What its model says to that; calls, which it was asked not to make, are passed over."""
    generation = await actor.work.model.generate(request, actor.spent)
    actor.spent(generation.model, generation.usage)
    text = generation.text.strip()
    return "" if written_calls(text, NAMES) else within(text, RESPONSE_BYTES)


def _state(actor: "Actor") -> str:
    jobs = [f"{job.job} ({job.kind}): {job.about[:200]}" for job in actor.transcript.jobs.values()]
    return f"State: {actor.state.phase}. Open: {'; '.join(jobs) or 'nothing'}."


def _report(actor: "Actor") -> str:
    """What was done, and what it had by then."""
    state = actor.state
    ran = len(state.code)
    parts = [f"It had run {ran} piece{'s' if ran != 1 else ''} of code." if ran else "It had not run anything yet."]
    for job in state.transcript.jobs.values():
        parts.append(_open_job(actor, job))
    if state.result:
        parts.append(f"Its last response was: {state.result}")
    return within(" ".join(parts), REPORT_BYTES)


def _open_job(actor: "Actor", job: JobStarted) -> str:
    match job.kind:
        case "cell":
            output = actor.box.peek(job.job).strip()
            return f"{job.job} was still running{f'; its output so far: {output[-OUTPUT_TOLD:]}' if output else ''}."
        case "question":
            return f"It was waiting for an answer to “{job.about}”."
        case "child":
            return f"Its worker for “{job.about[:100]}” was stopped with it."
        case "ask":
            return f"It was asking {job.child}: “{job.about[:100]}”."
