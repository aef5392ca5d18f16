"""A snapshot stands for all that lies before it, wherever it is: in every journal, and for what a model sees."""

from collections import deque
from datetime import timedelta

import pytest

from actors.entries import ActionEntry
from actors.journal import ActionState
from actors.spending import Spending
from actors.struggle import Step, Struggle
from actors.transcript import Transcript
from brain import prompt
from brain.contacts import Contact
from brain.entries import LaneEntry
from brain.rights import Rights
from brain.state import LaneState
from brain.tools import legal
from brain.turn import Turn
from gateway.journal import Folding
from gateway.outbox_state import Entry as OutboxEntry
from gateway.outbox_state import OutboxState
from gateway.record import decode, encode
from gateway.seen import Identities, Seen
from gateway.snapshots import cut
from mediums.local.room import Entry as RoomEntry
from mediums.local.room import RoomState
from tests.store import words

LENGTH = 160
FRAME = prompt.Frame("Frontdesk", Contact(key="ana", name="Ana", role="owner", timezone="Europe/Rome"))
OWNER = Rights("private", lambda address: "owner", lambda one, other: True)
KINDS = {
    "lane": (words.lane, lambda: LaneState("p-ana"), LaneEntry),
    "outbox": (words.outbox, lambda: OutboxState("telegram-1"), OutboxEntry),
    "room": (words.room, lambda: RoomState(lambda: None), RoomEntry),
    "action": (words.action, lambda: ActionState("p-ana-a1"), ActionEntry),
}


def seen(state):
    """What a model would be shown."""
    if isinstance(state, LaneState):
        turn = Turn(heard=tuple(state.undecided), state=state)
        tools = legal(turn, OWNER, turn.askers())
        return prompt.request(FRAME, turn, tools, words.START + timedelta(days=1))
    return state.transcript.snapshot({}, "how far?") if isinstance(state, ActionState) else None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_a_journal_folds_the_same_from_a_snapshot_at_every_place(kind, seed):
    walk, fresh, union = KINDS[kind]
    entries = [decode(encode(entry), union) for entry in walk(seed, LENGTH).entries]  # as they come from the disk
    whole, snapshots = fresh(), []
    for entry in entries:
        snapshots.append(encode(whole.freeze()))
        whole.apply(entry)
    expected, shown = encode(whole.freeze()), seen(whole)
    for place, frozen in enumerate(snapshots):
        folding = Folding(fresh(), union)
        for part in cut(frozen, parts=1 + place % 3):
            folding.take(place, part, 1)
        for entry in entries[place:]:
            folding.take(place, entry, 1)
        assert encode(folding.state.freeze()) == expected
        assert encode(folding.state.outgoing) == encode(whole.outgoing)
        assert seen(folding.state) == shown


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_live_holder_freezes_is_what_a_reader_of_its_journal_would(kind):
    walk, fresh, union = KINDS[kind]
    live = walk(9, LENGTH)
    read = fresh()
    for entry in live.entries:
        read.apply(decode(encode(entry), union))
    assert encode(live.state.freeze()) == encode(read.freeze())


def test_parts_without_their_last_change_nothing():
    entries = words.lane(3, 60).entries
    folding = Folding(LaneState("p-ana"), LaneEntry)
    for entry in entries[:40]:
        folding.take(1, entry, 1)
    torn = cut(encode(folding.state.freeze()), parts=3)[:2]
    for entry in (*torn, *entries[40:]):
        folding.take(1, entry, 1)
    assert encode(folding.state.freeze()) == encode(words.lane(3, 60).state.freeze())


FOLDS = LaneState | OutboxState | RoomState | ActionState | Transcript | Spending | Struggle | Step | Seen | Identities


def plain(value):
    """All that an object holds, however deep."""
    if isinstance(value, FOLDS):
        return {name: plain(held) for name, held in vars(value).items() if not callable(held)}
    if isinstance(value, deque):
        return [plain(held) for held in value]
    if isinstance(value, set):
        return sorted(value)
    return encode(list(value.items()) if isinstance(value, dict) else value)


@pytest.mark.parametrize("kind", KINDS)
def test_no_attribute_of_a_fold_is_left_out_of_its_snapshot(kind):
    """A new one that a walk does not reach is at least seen to be there: add it to the frozen struct, and to a walk."""
    walk, fresh, union = KINDS[kind]
    state = fresh()
    for entry in walk(11, LENGTH).entries:
        state.apply(decode(encode(entry), union))
    again = fresh()
    again.thaw(encode(state.freeze()))
    assert plain(again) == plain(state)
    frozen = {field.lstrip("_") for field in type(state.freeze()).__struct_fields__}
    held = {name.lstrip("_") for name, value in vars(state).items() if not callable(value)}
    worked_out = {"room": {"characters", "outgoing"}, "lane": {"weight"}}.get(kind, set())
    assert held - frozen - worked_out <= {"key", "conversation", "account", "zone"}  # given from outside


@pytest.mark.parametrize("part", [Transcript, Spending])
def test_no_attribute_of_a_part_of_an_action_is_left_out_either(part):
    frozen = {field.lstrip("_") for field in type(part().freeze()).__struct_fields__}
    assert {name.lstrip("_") for name in vars(part())} == frozen


def test_the_walk_of_an_action_reaches_what_only_some_entries_change():
    names = ["answered", "gone", "children", "handles", "reminded", "word_at", "idle_since", "asleep", "live"]
    reached = set()
    for seed in range(4):
        state = ActionState("p-ana-a1--child1")
        for entry in words.action(seed, LENGTH, key="p-ana-a1--child1", depth=1).entries:
            state.apply(entry)
            reached |= {name for name in names if getattr(state, name)}
            reached |= {"winding_up"} if state.transcript.winding_up else set()
            reached |= {"verbatim"} if len(state.transcript._verbatim) > 1 else set()
            reached |= {"below"} if state.spending._below else set()
    assert reached == {*names, "winding_up", "verbatim", "below"}
