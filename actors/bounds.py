"""Where an action stops by itself: its budget, a model that gives nothing, the same failure again and again.

At a bound it asks whether to go on. A budget is the whole tree's: its root asks, and nothing below it generates until
there is an answer. "Stop here" ends everything that runs, and then the model says what it has.
"""

import re
from typing import TYPE_CHECKING

import msgspec

from actors import calls
from actors.entries import Bound, Failed, JobEnded, JobStarted, Nudged, Responded
from actors.struggle import CUT, NOT_RUN, NOTHING, SAME_MAX
from gateway.events import Ref
from gateway.llm.model import ErrorKind, ModelError, Usage

if TYPE_CHECKING:
    from actors.actor import Actor

GO_ON, STOP_HERE = "go on", "stop here and say what you have"
TRY_AGAIN, GIVE_UP = "try again", "give up"
LAST_WORD = "Stop here. Say now what you have so far, and what is missing; nothing more can be run."
NO_MODEL = "my model cannot be reached or is not set up right; the person who runs me has been told"
WHY_NOT: dict[ErrorKind, str] = {
    "content_filtered": "the provider of my model refuses to answer this (its content filter)",
    "context_too_long": "this has become longer than my model can take in",
}


_NO = re.compile(r"(no|nope|don't|do not|stop|give up|enough|cancel)\b(?!.*\b(go on|continue|try again)\b)", re.DOTALL)


def means_no(answer: str) -> bool:
    """To "Shall I go on?"; what is not clear is a yes, with words that its model sees."""
    return _NO.match(answer.strip().casefold().replace("’", "'")) is not None


def held(actor: "Actor") -> bool:
    """Whether its budget, or that of one above, is used up, and a person has to say what next, or has said to stop."""
    asks = any(job.met in ("tokens", "money") for job in actor.transcript.jobs.values() if job.bound)
    own = asks or bool(actor.transcript.winding_up)
    return own or (actor.parent is not None and actor.parent.held)


async def met(actor: "Actor") -> bool:
    """Before a generation: true when it must not be, because a bound was met and a person was asked."""
    limits, state = actor.work.limits, actor.state
    minutes = (actor.work.now() - state.word_at).total_seconds() / 60 if state.word_at else 0.0
    bound: Bound
    if state.transcript.steps >= limits.max_steps:
        bound, what = "steps", f"worked on this for {state.transcript.steps} steps"
    elif minutes >= limits.max_minutes:
        bound, what = "minutes", f"worked on this for {minutes:.0f} min"
    else:
        return await met_budget(actor)
    await _ask(actor, bound, f"I have {what}. Shall I go on?", (GO_ON, STOP_HERE))
    return True


async def heard_of_cost(actor: "Actor", usage: Usage) -> None:
    """Of what is below it."""
    actor.purse.heard(usage)
    await met_budget(actor)
    actor.let_others_spend()


async def met_budget(actor: "Actor") -> bool:
    """Also while only what is below it works. A child's budget is its root's."""
    limits, spending = actor.work.limits, actor.state.spending
    if actor.parent is not None or actor.transcript.ended or held(actor):
        return False
    if spending.usd_since_word >= limits.max_usd:
        await _ask(actor, "money", f"This has cost ${spending.usd_since_word:.2f}. Shall I go on?", (GO_ON, STOP_HERE))
    elif spending.tokens_since_word >= limits.max_tokens:
        text = f"This has taken {spending.tokens_since_word:,} tokens. Shall I go on?"
        await _ask(actor, "tokens", text, (GO_ON, STOP_HERE))
    else:
        return False
    return True


async def without_model(actor: "Actor", error: ModelError) -> None:
    """A session is kept until somebody says whether to try again; a one-off fails."""
    start, why = actor.state.start, WHY_NOT.get(error.kind, NO_MODEL)
    assert start is not None
    if start.persist:
        await _ask(actor, "model", f"I cannot go on: {why}. Shall I try again?", (TRY_AGAIN, GIVE_UP))
    else:
        await fail(actor, f"I could not go on: {why}.")


async def gave_up(actor: "Actor") -> bool:
    """True when the same thing has failed too often: the action has failed, and says what."""
    stuck = actor.state.struggle.stuck
    if stuck is None:
        return False
    if stuck == NOTHING:
        why = "my model answered nothing, several times."
    elif stuck == CUT:
        why = "my model's answers are longer than it is allowed to give, and were cut off several times."
    elif stuck.startswith(NOT_RUN):
        why = f"my model keeps writing calls that cannot be run ({stuck.removeprefix(NOT_RUN).rstrip('.')})."
    else:
        why = f"the same thing failed {SAME_MAX} times in a row: {stuck}"
    await fail(actor, f"I could not go on: {why}")
    return True


async def fail(actor: "Actor", text: str) -> None:
    for call in list(actor.transcript.open.values()):
        await actor.close_call(call, "Not finished.")
    await actor.append(Failed(text=f"{text}{_last(actor)}"))
    actor.tell_parent()


async def wind_up(actor: "Actor") -> None:
    """Step by step, again after a restart: what runs is ended, then the model says what it has."""
    if actor.transcript.winding_up == "model":
        await fail(actor, "I gave up, as I was told: my model had given no answer.")
        return
    jobs = list(actor.transcript.jobs.values())
    for job in jobs:
        match job.kind:
            case "cell":
                actor.box.interrupt(job.job)
            case "child":
                ref = Ref(f"act-{actor.key}/wound-up", actor.state.commands_taken, int(job.job.removeprefix("child")))
                await actor.children.steer(actor, job.job, "stop", "the work was stopped here", ref)
            case "question" | "ask":
                await actor.append(JobEnded(job=job.job, text=f"{job.job} (“{job.about}”) was withdrawn."))
                actor.answer_code(job, "it was withdrawn: the work was stopped here", failed=True)
    if any(job.kind in ("cell", "child") for job in jobs):
        await actor.something_happens()
        return
    if actor.transcript.messages[-1].get("content") != LAST_WORD:
        await actor.append(Nudged(text=LAST_WORD))
    if not await actor.say_what_you_have():
        return
    if actor.transcript.draft is None:
        start = actor.state.start
        assert start is not None
        text = calls.shown(_so_far(actor))
        await actor.append(Responded(text=text, ended=not start.persist, at=actor.work.now()))
        actor.tell_parent()


async def _ask(actor: "Actor", bound: Bound, text: str, options: tuple[str, ...]) -> None:
    job = calls.question(actor, text, {"options": list(options)})
    await actor.ask_person(_bound(job, bound))


def _bound(job: JobStarted, bound: Bound) -> JobStarted:
    return msgspec.structs.replace(job, bound=True, met=bound)


def _so_far(actor: "Actor") -> str:
    ran = len(actor.state.code)
    return f"I was stopped before I was done; I had run {ran} piece{'s' if ran != 1 else ''} of code.{_last(actor)}"


def _last(actor: "Actor") -> str:
    return f" My last response was: {actor.state.result}" if actor.state.result else ""
