"""What later facts make of a message that was heard: edits, deletions, emojis, and the pieces of an album. Pure.

Before its turn is decided, an edit is the message and a deletion takes it away. After that they are facts of their own,
which show what it said before.
"""

from typing import TYPE_CHECKING

import msgspec

from brain.parts import Heard
from gateway.events import MessageDeleted, MessageReacted, MessageReceived

if TYPE_CHECKING:
    from brain.state import LaneState

Change = MessageDeleted | MessageReacted


LATE = 3  # exchanges within which an original may come after its own edit


def known(message: str, state: "LaneState", within: int | None = None) -> Heard | None:
    """As it was heard last, as far as it is remembered; `within` so many of the last exchanges."""
    for heard in (*reversed(state.undecided), *reversed(state.overheard)):
        if _is(heard, message):
            return heard
    for exchange in reversed(state.exchanges[-within:] if within else state.exchanges):
        for heard in reversed(exchange.heard):
            if _is(heard, message):
                return heard
    return None


def _is(heard: Heard, message: str) -> bool:
    return isinstance(heard.fact, MessageReceived) and heard.fact.message == message


def says_nothing_new(fact: MessageReceived, state: "LaneState") -> bool:
    """An edit of a command, or of nothing that is read unless it calls the assistant now; an original that comes after
    its own edit."""
    before = known(fact.message, state, None if fact.edited else LATE)
    if before is None or not isinstance(before.fact, MessageReceived):
        return False
    if not fact.edited:
        return before.fact.edited
    same_files = [one.digest for one in fact.files] == [one.digest for one in before.fact.files]
    calls_now = fact.addressed and not before.fact.addressed
    return before.control or (before.fact.text.strip() == fact.text.strip() and same_files and not calls_now)


def is_part_of_the_turn(fact: MessageReceived, state: "LaneState") -> bool:
    """A piece of an album of which another one calls for an answer."""
    return any(_same_album(heard, fact) for heard in state.undecided)


def _same_album(heard: Heard, fact: MessageReceived) -> bool:
    other = heard.fact
    return (
        fact.album is not None
        and isinstance(other, MessageReceived)
        and other.album is not None
        and (other.album.id, other.author.address, other.route.room)
        == (fact.album.id, fact.author.address, fact.route.room)
    )


def goes_on_only(turn: tuple[Heard, ...], state: "LaneState") -> bool:
    """All that came since are more pieces of albums that the turn is about already."""
    fresh = [item.fact for item in state.undecided if item not in turn and not item.control]
    return bool(fresh) and all(
        isinstance(fact, MessageReceived) and any(_same_album(heard, fact) for heard in turn) for fact in fresh
    )


# --- what the fold does with them ------------------------------------------------------------------------------------


def replace(state: "LaneState", edit: Heard, *, opens: bool) -> bool:
    """By an edit, the message that is not decided on yet; true if there was one. A new `Heard`, as a turn that is being
    generated still has the old one."""
    assert isinstance(edit.fact, MessageReceived)
    for items in (state.undecided, state.overheard):
        for place, heard in enumerate(items):
            if _is(heard, edit.fact.message):
                fresh = msgspec.structs.replace(edit, label=heard.label)
                if items is state.overheard and opens:
                    del items[place]
                    state.undecided.append(fresh)
                else:
                    items[place] = fresh
                return True
    return False


def gather(state: "LaneState", fact: MessageReceived) -> None:
    """The pieces of an album, one after the other in their order, with those that were only overheard."""
    if fact.album is None:
        return
    joining = [heard for heard in state.overheard if _same_album(heard, fact)]
    state.overheard = [heard for heard in state.overheard if heard not in joining]
    pieces = [heard for heard in state.undecided if _same_album(heard, fact)]
    first = state.undecided.index(pieces[0])
    others = [heard for heard in state.undecided if heard not in pieces]
    state.undecided = [*others[:first], *sorted([*joining, *pieces], key=_place), *others[first:]]


def _place(heard: Heard) -> int:
    assert isinstance(heard.fact, MessageReceived)
    return heard.fact.album.place if heard.fact.album else 0


def note(state: "LaneState", change: Heard) -> bool:
    """A deletion or an emoji; true if it took away what a turn was to be about."""
    assert isinstance(change.fact, Change)
    before = known(change.fact.message, state)
    label = before.label if before else ""
    text = before.fact.text if before and isinstance(before.fact, MessageReceived) else ""
    gone = isinstance(change.fact, MessageDeleted) and before is not None and not before.control
    undecided = gone and before in state.undecided
    if gone:
        state.undecided = [heard for heard in state.undecided if heard is not before]
        state.overheard = [heard for heard in state.overheard if heard is not before]
    state.overheard.append(
        msgspec.structs.replace(change, label=label or change.label, about=label, before="" if undecided else text)
    )
    return undecided
