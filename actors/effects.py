"""What running code asks of the world outside, answered here after a check: never by the sandbox itself.

An effect is written down before it is tried and after it has ended, by the id of the call: a call that comes again
after a restart is answered from the log, and one whose end nobody knows says so.
"""

import logging
from typing import TYPE_CHECKING, Any

from actors import handing
from actors.calls import NotRun, ask_child, check_steering, question, shown
from actors.entries import EffectEnded, EffectStarted, Notified
from actors.readers import READERS
from actors.sandbox.words import CellCalled
from actors.words import EffectDone
from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.broker.protocol import Deposed
from gateway.events import Ref
from gateway.record import encode

if TYPE_CHECKING:
    from actors.actor import Actor

log = logging.getLogger(__name__)

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
        ended = state.answers[call.rpc]
        answer_code(actor, call.rpc, ended.text if ended.failed and not ended.value else ended.value, ended.failed)
    elif call.method == "steer":  # told again it is harmless: the child knows its ref
        await _begin(actor, call)
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


def answer_code(actor: "Actor", rpc: str, text: str, failed: bool) -> None:
    actor.box.reply(rpc, None if failed else text, error=text if failed else None)


async def _begin(actor: "Actor", call: CellCalled) -> None:
    arguments = call.arguments
    try:
        _check_allowed(actor, call.method)
        match call.method:
            case "request_clarification":
                text = str(arguments.get("question") or "?")
                await actor.ask_person(question(actor, text, arguments, cell=call.cell, rpc=call.rpc))
            case "act":
                query, name = str(arguments.get("query") or ""), str(arguments.get("name") or "")
                await actor.children.begin(actor, query, name, cell=call.cell, rpc=call.rpc)
            case "steer":
                await _steer(actor, call)
            case "notify" | "status":
                text, quiet = shown(str(arguments.get("text") or "")), call.method == "status"
                await actor.append(Notified(text=text, quiet=quiet))
                if not quiet:
                    actor.tell_progress(text)
                actor.box.reply(call.rpc)
            case "files.send":
                path, name = str(arguments.get("path") or ""), str(arguments.get("name") or "")
                actor.spawn(handing.take(actor, call.rpc, path, name), "take a file")
            case method if method in actor.work.primitives:
                await _begin_primitive(actor, call, actor.work.primitives[method])
            case method if method in READERS:
                query = str(arguments.get("question") or "")
                family = READERS[method].family
                await actor.children.begin(actor, query, family, cell=call.cell, rpc=call.rpc, only=family)
            case method:
                known = ", ".join(stub.method for stub in actor.stubs)
                actor.box.reply(call.rpc, error=f"there is no primitives.{method}; there are: {known}")
    except NotRun as why:
        actor.box.reply(call.rpc, error=str(why))


def _check_allowed(actor: "Actor", method: str) -> None:
    """A reader has its own family of primitives alone, and of that what changes nothing. Raises NotRun."""
    only = actor.only
    if not only:
        return
    primitive = actor.work.primitives.get(method)
    if primitive is None or primitive.effect or method.partition(".")[0] != only:
        raise NotRun(f"primitives.{method} is not for you: you read primitives.{only}")


async def _steer(actor: "Actor", call: CellCalled) -> None:
    """A word of code to a child, by the call that started it."""
    arguments = call.arguments
    verb, text = str(arguments.get("verb") or ""), str(arguments.get("text") or "")
    child = actor.state.handles.get(str(arguments.get("handle")))
    if child is None:
        raise NotRun("it has not begun to work yet" if arguments.get("handle") else "steer a worker by its handle")
    if verb == "ask":
        await ask_child(actor, child, text, cell=call.cell, rpc=call.rpc)
        return
    if actor.state.effects.get(call.rpc) is not None:
        actor.box.reply(call.rpc)
        return
    check_steering(actor, child, verb, text)
    if call.rpc not in actor.state.effects:
        await actor.append(EffectStarted(rpc=call.rpc, method="steer", about=f"{verb} {child}"))
    ref = Ref(f"act-{actor.key}/handles", list(actor.state.effects).index(call.rpc) + 1, 0)
    await actor.children.steer(actor, child, verb, text, ref)
    await done(actor, call.rpc, None, "")


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
    caller = Caller(action=actor.key, by=start.by, name=start.name, conversation=start.conversation)
    try:
        actor.work.check()
    except Deposed:
        return  # the action stops; whoever has it next says that nobody knows
    try:
        value = await primitive.run(caller, call.arguments)
        if len(encode(value)) > VALUE_BYTES:
            value, error = None, f"the answer is larger than {VALUE_BYTES} bytes"
    except PrimitiveError as why:
        error = str(why)
    except Exception as failure:  # whatever a primitive raises: the code that called must not wait for ever
        log.exception("%s: primitives.%s failed inside", actor.key, call.method)
        error = f"it failed inside ({type(failure).__name__}); whether anything was done is not known"
    actor.happened(EffectDone(rpc=call.rpc, value=value, error=error))


async def done(actor: "Actor", rpc: str, value: Any, error: str) -> None:
    actor.effects_running.discard(rpc)
    if rpc in actor.state.effects:
        await actor.append(EffectEnded(rpc=rpc, value=value, error=error))
    actor.box.reply(rpc, value, error=error or None)
