"""Two conversations of one person become one, and an address that is somebody else's again leaves it. Pure.

Of what was said, as much comes along as fits one entry, newest first; the rest is found by search. Labels are given
anew, so that none means two things; keys and refs stay. Nothing is copied that is not the same person's.
"""

import re
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from brain import reminding
from brain.entries import Joined, Parted, Summarised
from brain.parts import Exchange, Heard, Share, Timer
from gateway.addresses import Address
from gateway.events import Fact, MessageReceived
from gateway.record import decode, encode, newest_that_fit

if TYPE_CHECKING:
    from brain.state import LaneState

SHARE_BYTES = 200_000  # an entry holds 256 KB
OVERHEARD_BYTES = 40_000
TEXT_CARRIED = 500  # of what is only shown

_MESSAGE_LABEL = re.compile(r"m\d+")


def leave(state: "LaneState", to: str) -> None:
    """A generation under way is for nothing."""
    state.moved, state.left = to, [item.fact for item in state.undecided]
    state.undecided = []
    state.interrupts += 1
    state.live += 1


def share(state: "LaneState", at: datetime) -> Joined:
    """What the other conversation is given; the same however often it is worked out."""
    actions = [msgspec.structs.replace(one.carried(), about=one.about[:TEXT_CARRIED]) for one in state.actions.values()]
    pending = [
        (ref, msgspec.structs.replace(send, text=send.text[:TEXT_CARRIED]))
        for ref, send in state.sends.items()
        if send.outcome is None
    ]
    found = Share(
        exchanges=[],
        actions=actions,
        sends=pending,
        routes=state.routes,
        reached=list(state.reached.items()),
        wait=(state.timer.until, state.timer.reason) if state.timer else None,
        joined=state.joined,
        reminders=state.reminders,
        quiet=state.quiet,
        overheard=list(newest_that_fit(state.overheard, OVERHEARD_BYTES)),
        resting=state.resting,
    )
    bare = [
        Exchange(heard=one.heard, decided=one.decided, origin=one.origin or state.conversation)
        for one in state.exchanges
    ]
    whole = msgspec.structs.replace(found, exchanges=list(newest_that_fit(bare, SHARE_BYTES - len(encode(found)))))
    return Joined(origin=state.conversation, at=at, share=msgspec.Raw(encode(whole)))


def join(state: "LaneState", joined: Joined) -> None:
    """In the order of time. Their places are known from now on; where both know one, ours stays."""
    found: Share = decode(bytes(joined.share), Share)
    state.joined += [joined.origin, *found.joined]
    labels: dict[str, str] = {}
    for action in found.actions:
        state.actions_made += 1
        labels[action.label] = action.label = f"a{state.actions_made}"
        state.actions[action.key] = action
    for item in (*(item for exchange in found.exchanges for item in exchange.heard), *found.overheard):
        _relabel(item, labels, state)
    merged = sorted([*state.exchanges, *found.exchanges], key=attrgetter("decided.at"))
    before = state.summary.through if state.summary else 0
    for exchange in merged:
        exchange.after = 0 if not exchange.origin else before
        before = exchange.place
    state.keep(merged)
    state.summary = _both(state.summary, found.summary, before=state.summary.through if state.summary else 0)
    state.sends |= dict(found.sends)
    state.routes = {medium: one for medium, one in found.routes.items() if medium not in state.routes} | state.routes
    state.reached = dict(found.reached) | state.reached
    if found.wait is not None and state.timer is None:
        state.timer = Timer(state.turns, *found.wait)
    reminding.join(state, found.reminders)
    state.overheard = sorted([*state.overheard, *found.overheard], key=attrgetter("at"))
    state.resting += found.resting
    state.quiet = state.quiet or found.quiet
    state.interrupts += 1
    state.live += 1


def parting(state: "LaneState", address: Address, at: datetime) -> Parted:
    events = tuple(item.fact for item in state.undecided if _said_by(item.fact, address))
    return Parted(address=address, at=at, events=events)


def part(state: "LaneState", parted: Parted) -> None:
    """What that address said, and what was said to it, is another's: it leaves the memory too."""
    state.keep([one for one in state.exchanges if not any(_said_by(item.fact, parted.address) for item in one.heard)])
    if state.summary is not None and parted.address in state.summary.whose:
        state.summary = None
    medium = parted.address.medium
    state.parted.add(parted.address)
    state.reached.pop(parted.address, None)
    state.routes.pop(medium, None)
    for address, route in state.reached.items():
        if address.medium == medium:
            state.routes = {medium: route} | state.routes
    for action in state.actions.values():
        action.part(parted.address)
    gone = {id(item) for item in state.undecided if _said_by(item.fact, parted.address)}
    state.undecided = [item for item in state.undecided if id(item) not in gone]
    state.reminders = [one for one in state.reminders if one.by.address != parted.address]
    state.left += parted.events
    state.interrupts += 1


def _said_by(fact: Fact, address: Address) -> bool:
    return isinstance(fact, MessageReceived) and fact.author.address == address


def _both(ours: Summarised | None, theirs: Summarised | None, before: int) -> Summarised | None:
    """One after the other, until the next one is made of both."""
    if theirs is None:
        return ours
    if ours is None:
        return msgspec.structs.replace(theirs, first=before, through=before)
    whose = tuple(dict.fromkeys((*ours.whose, *theirs.whose)))
    return msgspec.structs.replace(ours, text=f"{theirs.text}\n{ours.text}", whose=whose)


def _relabel(item: Heard, labels: dict[str, str], state: "LaneState") -> None:
    if _MESSAGE_LABEL.fullmatch(item.label):
        state.messages += 1
        labels[item.label] = item.label = f"m{state.messages}"
    else:
        item.label = labels.get(item.label, item.label)
    item.about, item.files = labels.get(item.about, ""), state.keep_files(item.fact)
