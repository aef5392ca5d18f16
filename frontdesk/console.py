"""What the local page, the terminal and the command line can look up: why, what runs, which code. Markdown, read only.

It folds what is stored, whoever wrote it: so it works beside the brain and without it.
"""

import shlex
from typing import TypeVar

from actors.entries import ActionEntry
from actors.journal import ActionState
from brain import prompt
from brain.contacts import Contacts, owner
from brain.controls import status
from brain.emission import ref_of
from brain.entries import (
    Act,
    Decided,
    Decision,
    LaneEntry,
    Quieten,
    React,
    Recalled,
    Remind,
    Speak,
    Steer,
    Unremind,
    Wait,
    Withdraw,
)
from brain.lanes import MEND
from brain.parts import Exchange, Heard
from brain.state import LaneState
from brain.telling import events_text
from brain.working import ActionView
from frontdesk.orders import Orders
from gateway.broker.protocol import Broker
from gateway.events import MessageReceived, Ref, identity_of
from gateway.folding import Folding
from gateway.journal import Follower, unstamped
from gateway.record import Undecodable

TURNS_SHOWN = 3
LANE = "log.lane."

S = TypeVar("S", LaneState, ActionState)


class Console:
    """Of the owner's conversation, where no other is named: the local page is the owner's alone, who runs it all."""

    def __init__(self, broker: Broker, contacts: Contacts, assistant: str) -> None:
        self._broker = broker
        self._owner = owner(contacts.settings)
        self._frame = prompt.Frame(assistant, self._owner, False)
        self._orders = Orders(broker, contacts.with_book)
        self._lanes: dict[str, Follower[LaneState]] = {}

    async def people(self, words: str) -> str:
        """Who is who; or a change of it: see `frontdesk.orders`."""
        try:
            return await self._orders.people(shlex.split(words))
        except ValueError as error:
            raise LookupError(f"{words}: {error}") from None

    async def _own(self) -> LaneState:
        conversation = (await self._orders.contacts()).home(f"p-{self._owner.key}")
        if conversation not in self._lanes:
            lane = Follower(self._broker, f"{LANE}{conversation}", LaneState(conversation), LaneEntry)
            self._lanes = {conversation: lane}
        return await _now(self._lanes[conversation])

    async def _lane(self, conversation: str) -> LaneState:
        return await _now(Follower(self._broker, f"{LANE}{conversation}", LaneState(conversation), LaneEntry))

    async def _conversations(self) -> list[str]:
        return sorted(subject.removeprefix(LANE) for subject in await self._broker.subjects(f"{LANE}>"))

    async def _meant(self, about: str) -> tuple[LaneState, str]:
        """The conversation that it begins with, the owner's where it does not, and the rest."""
        named, _, rest = about.partition(" ")
        if not named.startswith(("p-", "s-")):
            return await self._own(), about
        if named not in (there := await self._conversations()):
            raise LookupError(f"There is no conversation {named}. There are: {', '.join(there)}.")
        return await self._lane(named), rest.strip()

    async def trace(self, about: str) -> str:
        """Why: the turns about a message (`m12`, or its identity), or the last few; of another conversation with its
        name before (`p-ben m12`)."""
        state, about = await self._meant(about)
        found = [exchange for exchange in state.exchanges if not about or _is_about(exchange, about)]
        waiting = [item for item in state.undecided if about and _is_it(item, about)]
        if not found and waiting:
            return _waiting(waiting, state, self._frame)
        found = found or await self._older(state.conversation, about)
        if not found:
            raise LookupError(f"No turn about {about}." if about else "Nothing was decided yet.")
        return "\n\n".join(_turn(exchange, state, self._frame) for exchange in found[-TURNS_SHOWN:])

    async def _older(self, conversation: str, about: str) -> list[Exchange]:
        """Of turns that left the prompt, as far as the journal goes back."""
        folding = Folding(LaneState(conversation), LaneEntry)
        found = []
        for stored in await self._broker.read(f"{LANE}{conversation}"):
            entry = unstamped(stored, folding.entries)[2]
            folding.take(stored.sequence, entry, len(stored.data))
            if isinstance(entry, Decided) and _is_about(folding.state.exchanges[-1], about):
                found.append(folding.state.exchanges[-1])
        return found

    async def code(self, about: str) -> str:
        """The Python that an action ran: by label or name, or the newest."""
        state, about = await self._meant(about)
        action = self._action(about, state)
        work = await _now(Follower(self._broker, f"log.act.{action.key}", ActionState(action.key), ActionEntry))
        if not work.code:
            return f"**{action.name}** ({action.label}) has not run any code."
        cells = "\n\n".join(f"`{cell}`\n\n```python\n{code.strip()}\n```" for cell, code in work.code)
        return f"**{action.name}** ({action.label}) ran:\n\n{cells}"

    async def actions(self, about: str) -> str:
        """Those of the owner's conversation; of all, each under its conversation's name: `all`."""
        own = await self._own()
        if about != "all":
            if not own.turns:
                raise LookupError("Nothing was said here yet.")
            return _actions(own)
        states = [await self._lane(name) for name in await self._conversations() if name != own.conversation]
        told = [f"**{one.conversation}**\n\n{_actions(one)}" for one in (own, *states) if one.actions and not one.moved]
        return "\n\n".join(told) or "Nothing is in flight, and nothing has ended."

    def _action(self, about: str, state: LaneState) -> ActionView:
        actions = list(state.actions.values())
        found = [a for a in actions if not about or about in (a.label, a.name)]
        if not found:
            known = ", ".join(f"{a.label} {a.name}" for a in actions) or "none"
            raise LookupError(f"There is no action {about}. There are: {known}.")
        return found[-1]


def _actions(state: LaneState) -> str:
    ended = [action for action in state.actions.values() if not action.in_flight]
    lines = [status(state.in_flight()), *(f"- {a.name} ({a.label}) {a.phase}: {a.last[:200]}" for a in ended[-10:])]
    return "\n".join(lines)


async def _now(follower: Follower[S]) -> S:
    try:
        return await follower.now()
    except Undecodable as error:
        raise LookupError(f"What is stored of it cannot be read: {error}. {MEND}") from error


def _is_about(exchange: Exchange, about: str) -> bool:
    return any(_is_it(item, about) for item in exchange.heard)


def _is_it(item: Heard, about: str) -> bool:
    return about == item.label or (isinstance(item.fact, MessageReceived) and about in item.fact.identity)


def _waiting(items: list[Heard], state: LaneState, frame: prompt.Frame) -> str:
    why = "the model cannot be reached" if state.outage else "the day's budget is used up" if state.capped else ""
    return f"Not decided yet{f': {why}' if why else ''}.\n\n```\n{events_text(items, state, frame.zone)}\n```"


def _rules(exchange: Exchange) -> str:
    """What the rules before any model made of each event."""
    covers = set(exchange.decided.covers)
    made = []
    for item in exchange.heard:
        if identity_of(item.fact) not in covers:
            made.append(f"{item.label} was only kept")
        else:
            made.append(f"{item.label} {'needs no model' if item.control else 'opened the turn'}")
    return "; ".join(dict.fromkeys(made))


def _turn(exchange: Exchange, state: LaneState, frame: prompt.Frame) -> str:
    decided = exchange.decided
    heard = events_text(exchange.heard, state, frame.zone)
    by = f"the model {decided.model}" if decided.by == "model" else f"code ({decided.by})"
    lines = [f"**Turn {decided.turn}**, decided by {by}", "", "Heard:", "", "```", heard or "(nothing new)", "```", ""]
    for n, decision in enumerate(decided.decisions):
        lines.append(f"- {_decision(decision, state, ref_of(exchange.origin or state.conversation, decided, n))}")
    if rules := _rules(exchange):
        lines.append(f"- by the rules: {rules}")
    if decided.why:
        lines.append(f"- on the way: {decided.why}")
    if (shown := decided.prompt) is not None:
        lines.append(
            f"- the model saw about {shown.tokens:,} tokens: {shown.messages} messages, {shown.tools} tools "
            f"(prompt {shown.digest})"
        )
    if decided.usage is not None:
        usage = decided.usage
        cost = f", {usage.usd:.4f} USD" if usage.usd is not None else ""
        lines.append(f"- cost: {usage.prompt_tokens} + {usage.completion_tokens} tokens{cost}")
    return "\n".join(lines)


def _decision(decision: Decision, state: LaneState, ref: Ref) -> str:
    match decision:
        case Speak(route=route, text=text):
            send = state.sends.get(ref)
            end = f", {send.outcome or 'on its way'}" if send else ", its end is no longer kept"
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
        case Remind(text=text, at=at, by=by):
            return f"**will remind** {by.name} at {at:%Y-%m-%d %H:%M} UTC: {text[:300]}"
        case Unremind(label=label):
            return f"**took back** reminder {label}"
        case Quieten(hours=hours):
            return f"**quiet hours**: {hours or 'none'}"
        case Withdraw(send=send_ref):
            return f"**withdrew** {send_ref}"
