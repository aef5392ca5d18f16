"""What follows from a decision: the commands to publish. Pure: the same refs, whoever works it out and whenever."""

from datetime import timedelta
from typing import Any

import msgspec

from brain.entries import (
    Act,
    Carded,
    Decided,
    Decision,
    Inward,
    React,
    Speak,
    Steer,
    Withdraw,
)
from brain.working import ActionView
from gateway.addresses import journal_key
from gateway.events import (
    ActionCommand,
    Answer,
    Ask,
    Interject,
    Pause,
    Ref,
    Resume,
    Send,
    ShowCard,
    Start,
    Stop,
    WithdrawSend,
)
from gateway.journal import Outgoing

GOOD_FOR = timedelta(hours=24)  # a reply that could not be delivered by then would only confuse


CARDS_FROM = 1_000_000  # their refs stand behind those of the turn before them


def action_key(conversation: str, number: int) -> str:
    return f"{conversation}-a{number}"


def emissions(conversation: str, decided: Decided, actions_made: int) -> list[Outgoing]:
    """`actions_made` is how many actions this conversation had started before."""
    made: list[Outgoing] = []
    for decision in decided.decisions:
        ref = Ref(conversation, decided.turn, len(made))
        if isinstance(decision, Act):
            actions_made += 1
        made += _emission(conversation, decided, decision, ref, actions_made)
    return made


def ref_of(conversation: str, decided: Decided, place: int) -> Ref:
    """Of what follows from the decision at that place, if anything does."""
    before = msgspec.structs.replace(decided, decisions=decided.decisions[:place])
    return Ref(conversation, decided.turn, len(emissions(conversation, before, 0)))


def _emission(conversation: str, decided: Decided, decision: Decision, ref: Ref, number: int) -> list[Outgoing]:
    if isinstance(decision, Inward):
        return []
    match decision:
        case Speak(route=route, text=text, files=files):
            send = Send(
                ref=ref, conversation=conversation, route=route, text=text, until=decided.at + GOOD_FOR, files=files
            )
            return [Outgoing(subject=f"cmd.out.{journal_key(route.account)}", ref=ref, body=send)]
        case React(route=route, emoji=emoji):
            reaction = Send(
                ref=ref, conversation=conversation, route=route, text="", until=decided.at + GOOD_FOR, reaction=emoji
            )
            return [Outgoing(subject=f"cmd.out.{journal_key(route.account)}", ref=ref, body=reaction)]
        case Withdraw(account=account, send=earlier):
            withdraw = WithdrawSend(ref=ref, conversation=conversation, send=earlier)
            return [Outgoing(subject=f"cmd.out.{journal_key(account)}", ref=ref, body=withdraw)]
        case Act():
            key = action_key(conversation, number)
            start = Start(
                ref=ref,
                conversation=conversation,
                action=key,
                by=decision.by,
                name=decision.name,
                query=decision.query,
                context=decision.context,
                persist=decision.persist,
                files=decision.files,
            )
            return [Outgoing(subject=f"cmd.act.{key}", ref=ref, body=start)]
        case Steer():
            command = _command(conversation, decided, decision, ref)
            return [Outgoing(subject=f"cmd.act.{decision.action}", ref=ref, body=command)]


def card_emission(conversation: str, carded: Carded, action: ActionView, turn: int, number: int) -> Outgoing:
    """`number` rises with each state of any card."""
    show = ShowCard(
        ref=Ref(conversation, turn, CARDS_FROM + number),
        conversation=conversation,
        action=action.key,
        run=action.run,
        route=action.route,
        card=carded.card,
        until=carded.at + GOOD_FOR,
    )
    return Outgoing(subject=f"cmd.out.{journal_key(action.route.account)}", ref=show.ref, body=show)


def _command(conversation: str, decided: Decided, steer: Steer, ref: Ref) -> ActionCommand:
    same: dict[str, Any] = {"ref": ref, "conversation": conversation, "action": steer.action, "by": steer.by}
    match steer.verb:
        case "interject":
            return Interject(**same, text=steer.text, via=steer.via, at=decided.at, files=steer.files)
        case "ask":
            return Ask(**same, text=steer.text)
        case "pause":
            return Pause(**same)
        case "resume":
            return Resume(**same)
        case "stop":
            return Stop(**same, why=steer.text)
        case "answer":
            return Answer(**same, question=steer.question, text=steer.text, files=steer.files)
