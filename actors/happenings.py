"""What comes back to an action from its code, children, timers and effects; and taking up after a restart."""

from typing import TYPE_CHECKING, Any, assert_never

from actors import bounds, calls, effects, handing, idle
from actors.entries import AskAnswered, JobEnded, JobStarted, Notified, SandboxLost, Spent
from actors.sandbox.words import CellCalled, CellDone, CellLost
from actors.words import (
    AskDone,
    ChildAnswered,
    ChildAsked,
    ChildClosed,
    ChildEnded,
    ChildProgressed,
    ChildSpent,
    EffectDone,
    FileTaken,
    Happened,
    SleepWanted,
    WaitOver,
)
from gateway.events import Answer
from gateway.llm.history import within

if TYPE_CHECKING:
    from actors.actor import Actor


BEGINS = CellCalled | ChildAsked | ChildProgressed | WaitOver | SleepWanted


async def take(actor: "Actor", happening: Happened) -> None:
    """Once it has ended it begins nothing more; while it stands still, what its code asks for waits for the resume."""
    if actor.transcript.ended and isinstance(happening, BEGINS):
        return
    if actor.transcript.paused and isinstance(happening, CellCalled):
        actor.held_calls.append(happening)
    else:
        await _take(actor, happening)


async def _take(actor: "Actor", happening: Happened) -> None:
    jobs = actor.transcript.jobs
    match happening:
        case CellDone(cell=cell, status=status, value=value) if cell in jobs:
            output = "\n".join(part for part in (actor.box.fresh(cell).rstrip(), value) if part)
            text = f"{cell} ended: {status}{actor.work.limits.code_tag}."
            await _end_cell(actor, cell, f"{text}\n{output}" if output else text, failed=status == "error")
        case CellLost(cell=cell, why=why) if cell in jobs:
            output = actor.box.fresh(cell).rstrip()
            text = f"{cell} is lost: {why} What it had done by then is not known."
            await _end_cell(actor, cell, f"{text}\nOutput before:\n{output}" if output else text, failed=True)
        case CellCalled():
            await effects.called(actor, happening)
        case EffectDone(rpc=rpc, value=value, error=error):
            await effects.done(actor, rpc, value, error)
        case FileTaken():
            await handing.offer(actor, happening)
        case ChildEnded(job=job) if job in jobs:
            await _end_child(actor, happening)
        case ChildSpent(job=job, model=model, usage=usage):
            await actor.append(Spent(model=model, usage=usage, child=job))
            actor.tell_spent(model, usage)
            await bounds.heard_of_cost(actor, usage)
        case ChildAnswered(command=ref, text=text) if (asked := f"ask{ref.batch}") in jobs:
            started = jobs[asked]
            await actor.append(JobEnded(job=asked, text=f"{started.child} answered: {calls.shown(text)}", value=text))
            actor.answer_code(started, text)
        case ChildAsked(job=job, question=question) if job in jobs:
            await _hear_question(actor, job, question)
        case ChildClosed(job=job, question=closed):
            await _withdraw_questions(actor, lambda question: (question.child, question.question) == (job, closed))
        case ChildProgressed(text=text):
            await actor.append(Notified(text=text))
            actor.tell_progress(text)
        case WaitOver(call=call) if call in actor.transcript.open and call in actor.transcript.waits:
            await calls.close_for_now(actor, actor.transcript.open[call])
        case AskDone(ask=ask, text=text) if ask.ref in actor.state.asks:
            asked = within(ask.text, calls.RESPONSE_BYTES)
            await actor.append(AskAnswered(command=ask.ref, asked=asked, text=text))
            if actor.parent is not None:
                actor.parent.child_answered(actor.key, ask.ref, text)
        case SleepWanted():
            await idle.hibernate(actor)
        case CellDone() | CellLost() | ChildEnded() | ChildAnswered() | ChildAsked() | WaitOver() | AskDone():
            pass  # told again, or too late
        case _ as never:
            assert_never(never)


async def _end_child(actor: "Actor", ended: ChildEnded) -> None:
    job, started = ended.job, actor.transcript.jobs[ended.job]
    await handing.pass_up(actor, ended.files)
    await _withdraw_questions(actor, lambda question: question.child == job)
    actor.children.forget(job)
    failed = ended.end != "succeeded"
    said = f"{job} {ended.end if failed else 'ended'}: {calls.shown(ended.text)}"
    await actor.append(
        JobEnded(job=job, text=said, value=ended.text, failed=failed, usd=ended.usd, tokens=ended.tokens)
    )
    actor.answer_code(started, ended.text, failed=failed)


async def _end_cell(actor: "Actor", cell: str, text: str, *, failed: bool) -> None:
    await _withdraw_questions(actor, lambda question: question.cell == cell)
    await actor.append(JobEnded(job=cell, text=calls.shown(text), failed=failed))
    actor.box.recorded(cell)


async def _withdraw_questions(actor: "Actor", asked: Any) -> None:
    """Nobody waits for them any more: the code or the child that asked is gone."""
    for job in [job for job in actor.transcript.jobs.values() if job.kind == "question" and asked(job)]:
        gone = f"The code that asked it is gone ({job.cell})" if job.cell else f"{job.child} does not wait for it now"
        text = f"{job.job} (“{job.about}”) was withdrawn. {gone}."
        await actor.append(JobEnded(job=job.job, text=text, at=actor.work.now()))
        if actor.parent is not None:
            actor.parent.child_closed(actor.key, job.job)


async def _hear_question(actor: "Actor", child: str, question: JobStarted) -> None:
    """A child's question is its parent's too, and goes on up; told again after a restart, it may have an answer."""
    known = actor.state.child_questions.get((child, question.job))
    if known is None:
        await actor.ask_person(
            JobStarted(
                job=f"question{actor.transcript.jobs_made + 1}",
                kind="question",
                about=question.about,
                options=question.options,
                default=question.default,
                remind_at=question.remind_at,
                child=child,
                question=question.job,
            )
        )
    elif isinstance(known, JobEnded) and known.by is not None:
        start = actor.state.start
        assert start is not None
        assert known.command is not None
        answer = Answer(
            ref=known.command,
            conversation=start.conversation,
            action=actor.key,
            by=known.by,
            question=known.job,
            text=known.value,
        )
        await actor.children.answer(actor, child, question.job, answer)


# --- after a restart -------------------------------------------------------------------------------------------------


async def recover(actor: "Actor") -> None:
    """Goes on where the log ends: code that still runs is joined, what is lost is named, the last word is handed down
    again."""
    if actor.state.start is None or actor.transcript.ended:
        actor.tell_parent()
        for ask in actor.state.asks.values():
            actor.answer_again(ask)
        return
    actor.moved = actor.state.has_files and not actor.box.is_here(actor.state.moves)
    if actor.state.phase == "hibernated":
        await actor.box.kill()  # perhaps it was stopped just before that
    elif actor.moved or actor.state.code:
        await _recover_code(actor)
    for job in [job for job in actor.transcript.jobs.values() if job.kind == "child"]:
        await actor.children.start(actor, job)
    if actor.state.last_word is not None:
        await actor.children.cascade(actor)
    for question in [job for job in actor.transcript.jobs.values() if job.kind == "question"]:
        actor.tell_question(question)
    for job in [job for job in actor.transcript.jobs.values() if job.kind == "ask"]:
        await actor.children.ask(actor, job)
    for ask in actor.state.asks.values():
        actor.answer_again(ask)


async def _recover_code(actor: "Actor") -> None:
    attached = await actor.box.attach()
    for cell, shown in actor.state.shown.items():
        actor.box.show_after(cell, shown)
    await (actor.box.suspend() if actor.transcript.paused else actor.box.resume())
    for job in [job for job in actor.transcript.jobs.values() if job.kind == "cell" and job.job not in attached.cells]:
        text = f"{job.job} is lost with its sandbox. What it had done by then is not known."
        await _withdraw_questions(actor, lambda question, cell=job.job: question.cell == cell)
        await actor.append(JobEnded(job=job.job, text=text, failed=True))
    no_variables = actor.state.used_session and not attached.stateful
    if actor.moved:
        gone = f"all of your files{' and the variables of the stateful session' if no_variables else ''}"
        await actor.append(SandboxLost(text=f"(Lost with {idle.MACHINE}: {gone}.)", moved=True))
        actor.settle()
    elif no_variables:
        await actor.append(
            SandboxLost(text="(The sandbox was started anew: the variables of the stateful session are gone.)")
        )
    for call, job_name in list(actor.transcript.waits.items()):
        if actor.transcript.jobs[job_name].kind == "cell":
            actor.spawn(calls.wait_over(actor, call, calls.WAIT_SECONDS), "wait")
