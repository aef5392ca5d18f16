"""The fold of what was decided: what it leads to, what it cost, and what is in flight from now on. Pure."""

from typing import TYPE_CHECKING

import msgspec

from brain import reminding
from brain.emission import action_key, emissions
from brain.entries import NOT_NEEDED, Act, Decided, Decision, Quieten, Remind, Speak, Steer, Unremind, Wait
from brain.parts import Exchange, SendView, Timer, weight_of
from brain.working import ABOUT_KEPT, ActionView
from gateway.events import Send, identity_of
from gateway.record import decode

if TYPE_CHECKING:
    from brain.state import LaneState

EXCHANGES_KEPT, EXCHANGES_CUT_TO = 400, 300  # without a summary for so long, the oldest can only be recalled


def decide(state: "LaneState", decided: Decided) -> None:
    covers = set(decided.covers)
    heard = state.overheard + [item for item in state.undecided if identity_of(item.fact) in covers]
    state.undecided = [item for item in state.undecided if identity_of(item.fact) not in covers]
    state.overheard = []
    state.turns, state.turns_alone, state.crashes = decided.turn, state.turns_alone + 1, 0
    if decided.by not in ("control", "cap"):  # these stand beside the turns
        state.outage = decided.by == "outage"
    _settle(state, decided)
    waits = [one for one in decided.decisions if isinstance(one, Wait) and one.until is not None]
    if decided.by not in ("control", "cap"):  # what code does beside it is no turn of the model
        state.timer = Timer(decided.turn, waits[-1].until, waits[-1].reason) if waits and waits[-1].until else None
    if decided.by == "control":
        state.interrupts += 1  # a generation that runs meanwhile must see what was steered
    outgoing = emissions(state.conversation, decided, state.actions_made)
    for decision in decided.decisions:
        _follow(state, decision, decided)
    for item in outgoing:
        if isinstance(item.body, Send):
            state.sends[item.ref] = SendView(route=item.body.route, text=_shown(item.body))
    state.outgoing += outgoing
    state.exchanges.append(Exchange(heard=heard, decided=decided))
    state.weight += weight_of(state.exchanges[-1])
    if len(state.exchanges) > EXCHANGES_KEPT:
        state.keep(state.exchanges[-EXCHANGES_CUT_TO:])


def _settle(state: "LaneState", decided: Decided) -> None:
    """The money: what it cost, whether it was the word of a cap, and which work rests for that."""
    if decided.usage is not None:
        state.spending.add(state.day(decided.at), decided.charged, decided.usage.usd)
    if decided.by != "cap":
        return
    if any(isinstance(one, Speak) for one in decided.decisions):
        state.capped = state.day(decided.at)
    for one in decided.decisions:
        if isinstance(one, Steer):
            state.resting = [key for key in state.resting if key != one.action]
            state.resting += [one.action] if one.verb == "pause" else []


def _follow(state: "LaneState", decision: Decision, decided: Decided) -> None:
    state.live += 1
    match decision:
        case Act(name=name, query=query, by=by, route=route):
            state.actions_made += 1
            key = action_key(state.conversation, state.actions_made)
            label = f"a{state.actions_made}"
            state.actions[key] = ActionView(
                key=key,
                label=label,
                name=name,
                about=query[:ABOUT_KEPT],
                by=by,
                route=route,
                spoken={route.medium: route},
                since=decided.at,
                began=decided.at,
                told=decided.silent,
            )
        case Steer(action=key) if key in state.actions or decision.view != NOT_NEEDED:
            if key not in state.actions:
                view: ActionView = decode(bytes(decision.view), ActionView)
                state.actions[key] = msgspec.structs.replace(view, route=state.routes.get(decision.via, view.route))
            state.actions[key].steered(
                decision, decided.at, by_control=decided.by == "control", silently=decided.silent
            )
        case Quieten():
            state.quiet = decision
        case Remind():
            reminding.add(state, decision)
        case Unremind(label=label):
            state.reminders = [one for one in state.reminders if one.label != label]
        case _:
            pass


def _shown(send: Send) -> str:
    return " ".join(part for part in (send.text or send.reaction, *(f"[{file.name}]" for file in send.files)) if part)
