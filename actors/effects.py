"""What running code asks of the world outside, answered here after a check: never by the sandbox itself.

An effect is written down before it is tried and after it has ended, by the id of the call: a call that comes again
after a restart is answered from the log, and one whose end nobody knows says so.
"""

from typing import TYPE_CHECKING, Any

from actors.calls import NotRun, options_of, shown
from actors.entries import EffectEnded, EffectStarted, JobStarted, Notified
from actors.sandbox.words import CellCalled
from actors.words import EffectDone
from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.broker.protocol import Deposed
from gateway.record import encode

if TYPE_CHECKING:
    from actors.actor import Actor

ABOUT_CHARACTERS = 500
VALUE_BYTES = 100_000
UNKNOWN = (
    "outcome unknown: it was begun before a restart, and nobody knows whether it happened. Check before you repeat it."
)


async def called(actor: "Actor", call: CellCalled) -> None:
    state = actor.state
    if call.cell not in state.transcript.jobs or any(job.rpc == call.rpc for job in state.transcript.jobs.values()):
        return  # told again, and being dealt with
    if call.rpc in state.answers:
        actor.box.reply(call.rpc, state.answers[call.rpc])
    elif call.rpc in state.effects:
        _answer_from_log(actor, call.rpc)
    else:
        await _begin(actor, call)


def _answer_from_log(actor: "Actor", rpc: str) -> None:
    ended = actor.state.effects[rpc]
    if ended is not None:
        actor.box.reply(rpc, ended.value, error=ended.error or None)
    elif rpc not in actor.effects_running:
        actor.box.reply(rpc, error=UNKNOWN)


async def _begin(actor: "Actor", call: CellCalled) -> None:
    arguments = call.arguments
    match call.method:
        case "request_clarification":
            await actor.ask_person(
                JobStarted(
                    job=f"question{actor.transcript.jobs_made + 1}",
                    kind="question",
                    about=str(arguments.get("question") or "?"),
                    options=options_of(arguments),
                    cell=call.cell,
                    rpc=call.rpc,
                )
            )
        case "act":
            await _begin_child(actor, call)
        case "notify" | "status":
            text, quiet = shown(str(arguments.get("text") or "")), call.method == "status"
            await actor.append(Notified(text=text, quiet=quiet))
            if not quiet:
                actor.tell_progress(text)
            actor.box.reply(call.rpc)
        case method if method in actor.work.primitives:
            await _begin_primitive(actor, call, actor.work.primitives[method])
        case method:
            known = ", ".join(["request_clarification", "act", "notify", "status", *actor.work.primitives])
            actor.box.reply(call.rpc, error=f"there is no primitives.{method}; there are: {known}")


async def _begin_child(actor: "Actor", call: CellCalled) -> None:
    query, name = str(call.arguments.get("query") or ""), str(call.arguments.get("name") or "")
    try:
        await actor.start_child(query, name, cell=call.cell, rpc=call.rpc)
    except NotRun as why:
        actor.box.reply(call.rpc, error=str(why))


async def _begin_primitive(actor: "Actor", call: CellCalled, primitive: Primitive) -> None:
    if primitive.effect:
        about = encode(call.arguments).decode()[:ABOUT_CHARACTERS]
        await actor.append(EffectStarted(rpc=call.rpc, method=call.method, about=about))
    actor.work.check()
    actor.effects_running.add(call.rpc)
    actor.spawn(_run(actor, call, primitive), call.method)


async def _run(actor: "Actor", call: CellCalled, primitive: Primitive) -> None:
    start = actor.state.start
    assert start is not None
    value: Any = None
    error = ""
    try:
        actor.work.check()
    except Deposed:
        return  # the action stops; whoever has it next says that nobody knows
    try:
        value = await primitive.run(Caller(action=actor.key, by=start.by), call.arguments)
        if len(encode(value)) > VALUE_BYTES:
            value, error = None, f"the answer is larger than {VALUE_BYTES} bytes"
    except PrimitiveError as why:
        error = str(why)
    actor.happened(EffectDone(rpc=call.rpc, value=value, error=error))


async def done(actor: "Actor", rpc: str, value: Any, error: str) -> None:
    actor.effects_running.discard(rpc)
    if rpc in actor.state.effects:
        await actor.append(EffectEnded(rpc=rpc, value=value, error=error))
    actor.box.reply(rpc, value, error=error or None)
