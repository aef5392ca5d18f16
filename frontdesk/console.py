"""What the local page, the terminal and the command line can look up: why, what runs, which code. Markdown, read only.

It folds what is stored, whoever wrote it: so it works beside the brain and without it.
"""

import shlex

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain import prompt
from brain.contacts import Contacts, owner
from brain.controls import status
from brain.emission import ref_of
from brain.entries import Act, Decision, LaneEntry, React, Recalled, Speak, Steer, Wait, Withdraw
from brain.parts import Exchange
from brain.state import LaneState
from brain.working import ActionView
from frontdesk.orders import Orders
from gateway.broker.protocol import Broker
from gateway.events import MessageReceived, Ref
from gateway.journal import Follower

TURNS_SHOWN = 3


class Console:
    """Of the owner's conversation: the local page is the owner's alone."""

    def __init__(self, broker: Broker, contacts: Contacts, assistant: str) -> None:
        self._broker = broker
        contact = owner(contacts.settings)
        self._frame = prompt.Frame(assistant, contact, False)
        conversation = f"p-{contact.key}"
        self._orders = Orders(broker, contacts.with_book)
        self._lane = Follower(broker, f"log.lane.{conversation}", LaneState(conversation), LaneEntry)

    async def people(self, words: str) -> str:
        """Who is who; or a change of it: see `frontdesk.orders`."""
        try:
            return await self._orders.people(shlex.split(words))
        except ValueError as error:
            raise LookupError(f"{words}: {error}") from None

    async def trace(self, about: str) -> str:
        """Why: the turns about a message (`m12`, or its identity), or the last few."""
        state = await self._lane.now()
        found = [exchange for exchange in state.exchanges if not about or _is_about(exchange, about)]
        if not found:
            raise LookupError(f"No turn about {about}." if about else "Nothing was decided yet.")
        return "\n\n".join(_turn(exchange, state, self._frame) for exchange in found[-TURNS_SHOWN:])

    async def code(self, about: str) -> str:
        """The Python that an action ran: by label or name, or the newest."""
        action = self._action(about, await self._lane.now())
        state = await Follower(self._broker, f"log.act.{action.key}", ActionState(action.key), ActionEntry).now()
        if not state.code:
            return f"**{action.name}** ({action.label}) has not run any code."
        cells = "\n\n".join(f"`{cell}`\n\n```python\n{code.strip()}\n```" for cell, code in state.code)
        return f"**{action.name}** ({action.label}) ran:\n\n{cells}"

    async def actions(self) -> str:
        state = await self._lane.now()
        if not state.turns:
            raise LookupError("Nothing was said here yet.")
        ended = [action for action in state.actions.values() if not action.in_flight]
        lines = [status(state), *(f"- {a.name} ({a.label}) {a.phase}: {a.last[:200]}" for a in ended[-10:])]
        return "\n".join(lines)

    def _action(self, about: str, state: LaneState) -> ActionView:
        actions = list(state.actions.values())
        found = [a for a in actions if not about or about in (a.label, a.name)]
        if not found:
            known = ", ".join(f"{a.label} {a.name}" for a in actions) or "none"
            raise LookupError(f"There is no action {about}. There are: {known}.")
        return found[-1]


def _is_about(exchange: Exchange, about: str) -> bool:
    for item in exchange.heard:
        if about == item.label:
            return True
        if isinstance(item.fact, MessageReceived) and about in item.fact.identity:
            return True
    return False


def _turn(exchange: Exchange, state: LaneState, frame: prompt.Frame) -> str:
    decided = exchange.decided
    heard = prompt.events_text(exchange.heard, state, frame.zone)
    by = f"the model {decided.model}" if decided.by == "model" else f"code ({decided.by})"
    lines = [f"**Turn {decided.turn}**, decided by {by}", "", "Heard:", "", "```", heard or "(nothing new)", "```", ""]
    for n, decision in enumerate(decided.decisions):
        lines.append(f"- {_decision(decision, state, ref_of(exchange.origin or state.conversation, decided, n))}")
    if decided.why:
        lines.append(f"- on the way: {decided.why}")
    if decided.usage is not None:
        usage = decided.usage
        cost = f", {usage.usd:.4f} USD" if usage.usd is not None else ""
        lines.append(f"- cost: {usage.prompt_tokens} + {usage.completion_tokens} tokens{cost}")
    return "\n".join(lines)


def _decision(decision: Decision, state: LaneState, ref: Ref) -> str:
    match decision:
        case Speak(route=route, text=text):
            send = state.sends.get(ref)
            end = f", {send.outcome or 'on its way'}" if send else ""
            attached = "".join(f" [{file.name}]" for file in decision.files)
            return f"**said** on {route.medium}{end}: {text[:300]}{attached}"
        case React(route=route, emoji=emoji):
            return f"**put** {emoji} on {route.medium}"
        case Wait(reason=reason):
            return f"**stayed silent**: {reason}"
        case Act(name=name, query=query, by=by):
            return f"**started** {name} for {by.name}: {query[:300]}"
        case Steer(verb=verb, action=key, text=text, by=by):
            action = state.actions.get(key)
            return f"**{verb}** {action.name if action else key} for {by.name}{f': {text[:300]}' if text else ''}"
        case Recalled(query=query, of=of):
            return f"**looked up** “{query[:200]}”: {len(of)} found"
        case Withdraw(send=send_ref):
            return f"**withdrew** {send_ref}"
