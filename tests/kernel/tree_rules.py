"""What must be true of a tree of actions at the end, whatever was said to it and struck it, and where."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from actors.entries import (
    AskAnswered,
    Asked,
    Briefed,
    CallClosed,
    Closed,
    EffectStarted,
    Failed,
    Generated,
    Interjected,
    JobEnded,
    JobStarted,
    Paused,
    Refused,
    Responded,
    Resumed,
    Stopped,
)
from actors.journal import ActionState
from gateway.actions import refusal, verb_of
from gateway.broker.sqlite import SqliteBroker
from gateway.events import Answer, Interject, Ref
from tests.kernel.messages import problem
from tests.kernel.reading import Reading
from tests.kernel.rules import command_of, journals_have_one_writer_at_a_time, transcripts_are_valid_at_every_entry
from tests.kernel.tree import ROOT, Tree

SLACK = 6  # entries that an action may write before it comes to what it was just told


async def broken_tree(tree: Tree) -> list[str]:
    """Lets it run to its end, and reads its journals afresh."""
    if why := await tree.run():
        return [why]
    broker = SqliteBroker(tree.path)
    reading = await Reading.of(broker)
    await broker.close()
    return list(_violations(tree, reading))


def _violations(tree: Tree, reading: Reading) -> Iterator[str]:
    root = reading.acts[ROOT]
    logged = [ref for entry in root if (ref := command_of(entry)) is not None]
    if logged != [command.ref for command in tree.commands]:
        yield f"told {[str(c.ref) for c in tree.commands]}, logged {[str(ref) for ref in logged]}"
    yield from _words_are_seen_once_in_order(tree, root)
    yield from _the_table_is_kept(tree, root)
    yield from tree.breaches
    for key, entries in reading.acts.items():
        yield from _a_parent_hears_of_each_end(key, reading)
        yield from _a_worker_steers_its_own(key, reading)
        yield from _nothing_happens_while_paused(key, entries)
        yield from _output_is_shown_once(key, entries)
        yield from _children_hear_what_their_parent_heard(key, reading)
    yield from _all_ends(tree, reading)
    yield from transcripts_are_valid_at_every_entry(reading)
    yield from journals_have_one_writer_at_a_time(reading)
    yield from _requests_extend(tree)
    refs = [fact.ref for fact in reading.facts]
    if sorted(set(refs)) != list(dict.fromkeys(refs)):
        yield "facts out of order"
    if twice := [what for what, n in Counter(tree.effects).items() if n > most_effects(what, reading)]:
        yield f"done more often than called: {twice}"
    if tree.notices:
        yield f"the operator was told {tree.notices}"


def most_effects(what: str, reading: Reading) -> int:
    """How often code of that cell has begun it, by what was written down before."""
    key, cell = what.split(" ")
    return sum(getattr(entry, "rpc", "") and entry.rpc.startswith(f"{cell}.") for entry in begun(reading.acts[key]))


def begun(entries: list[Any]) -> list[Any]:
    return [entry for entry in entries if isinstance(entry, EffectStarted)]


def _words_are_seen_once_in_order(tree: Tree, root: list[Any]) -> Iterator[str]:
    state = folded(root)
    text = "\n".join(str(message.get("content")) for message in state.transcript.snapshot({}, "?"))
    refused = {entry.command for entry in root if isinstance(entry, Refused)}
    places = []
    for command in tree.commands:
        if isinstance(command, Interject) and command.ref not in refused:
            if text.count(f"] {command.text}") != 1:
                yield f"{command.text} is seen {text.count(f'] {command.text}')} times"
            places.append(text.find(f"] {command.text}"))
        if isinstance(command, Answer) and command.ref not in refused and text.count(command.text) > 1:
            yield f"{command.text} is seen {text.count(command.text)} times"
    if places != sorted(places):
        yield "the words are seen out of order"


def _the_table_is_kept(tree: Tree, root: list[Any]) -> Iterator[str]:
    commands = {command.ref: command for command in tree.commands}
    state = ActionState(ROOT)
    for entry in root:
        command = commands.get(command_of(entry))
        if command is not None and (verb := verb_of(command)) != "start":
            job = state.transcript.jobs.get(getattr(command, "question", ""))
            legal = refusal(state.phase, verb) is None and (verb != "answer" or bool(job and job.kind == "question"))
            if legal == isinstance(entry, Refused):
                yield f"{verb} while {state.phase}: {type(entry).__name__}"
        if state.transcript.ended and not isinstance(entry, Refused | Asked | AskAnswered) and not _bookkeeping(entry):
            yield f"{type(entry).__name__} after the end"
        state.apply(entry)


def _nothing_happens_while_paused(key: str, entries: list[Any]) -> Iterator[str]:
    state = ActionState(key)
    for entry in entries:
        by_code = isinstance(entry, EffectStarted) or (isinstance(entry, JobStarted) and entry.rpc)
        if state.transcript.paused and (isinstance(entry, Generated | Responded) or by_code):
            yield f"{key}: {type(entry).__name__} while paused"
        state.apply(entry)


def _output_is_shown_once(key: str, entries: list[Any]) -> Iterator[str]:
    told = [one.text for one in entries if isinstance(one, CallClosed | JobEnded) and one.text.startswith("cell")]
    lines = Counter(line for text in told for line in text.splitlines() if line.startswith("line "))
    if twice := [line for line, n in lines.items() if n > 1]:
        yield f"{key}: shown twice: {twice}"


def _children_hear_what_their_parent_heard(key: str, reading: Reading) -> Iterator[str]:
    """Every child that works then has it in its own log, once, unless it ended first."""
    state = ActionState(key)
    for place, entry in zip(reading.places[key], reading.acts[key], strict=True):
        state.apply(entry)
        if not isinstance(entry, Interjected | Paused | Resumed):
            continue
        for job in [job for job in state.transcript.jobs.values() if job.kind == "child"]:
            child = reading.acts.get(f"{key}--{job.job}", [])
            ref = Ref(f"act-{key}/cascade", state.commands_taken)
            heard = sum(command_of(one) == ref for one in child)
            if heard > 1 or (heard == 0 and steps_after(place, f"{key}--{job.job}", reading) > SLACK):
                yield f"{key}--{job.job} heard {type(entry).__name__} {ref} {heard} times"
    words = Counter(entry.command.text for entry in reading.acts[key] if isinstance(entry, Interjected))
    if twice := [text for text, n in words.items() if n > 1 and text.startswith("word")]:
        yield f"{key} heard {twice} again"


def steps_after(place: int, key: str, reading: Reading) -> int:
    """What an action wrote after that place in the store, but for what writes itself."""
    entries = zip(reading.places[key], reading.acts.get(key, []), strict=True)
    return sum(at > place and not _bookkeeping(entry) for at, entry in entries)


def _a_parent_hears_of_each_end(key: str, reading: Reading) -> Iterator[str]:
    if "--" not in key:
        return
    parent, _, job = key.rpartition("--")
    ends = zip(reading.places[key], reading.acts[key], strict=True)
    ended = next((at for at, entry in ends if _is_end(entry) or isinstance(entry, Failed)), None)
    told = any(isinstance(entry, JobEnded) and entry.job == job for entry in reading.acts[parent])
    if ended is not None and not told and steps_after(ended, parent, reading) > SLACK:
        yield f"{parent} was not told that {job} had ended"


def _a_worker_steers_its_own(key: str, reading: Reading) -> Iterator[str]:
    """What its model was told was passed on is in the child's log."""
    entries = list(zip(reading.places[key], reading.acts[key], strict=True))
    calls = {call.id: call for _, entry in entries if isinstance(entry, Generated) for call in entry.calls}
    for place, entry in entries:
        if isinstance(entry, CallClosed) and entry.text == "Passed on.":
            child = f"{key}--{json.loads(calls[entry.call].arguments)['action']}"
            ref = Ref(f"act-{key}/own", int(entry.call.removeprefix("c")))
            heard = sum(command_of(one) == ref for one in reading.acts.get(child, []))
            if heard > 1 or (heard == 0 and steps_after(place, child, reading) > SLACK):
                yield f"{child} heard {ref} of its parent's model {heard} times"


def _all_ends(tree: Tree, reading: Reading) -> Iterator[str]:
    for key, entries in reading.acts.items():
        kinds = Counter(type(entry) for entry in entries)
        if not folded(entries).transcript.ended:
            yield f"{key} has not ended"
        if kinds[Briefed] != 1 or kinds[Stopped] + kinds[Failed] + sum(_is_end(one) for one in entries) != 1:
            yield f"{key} was begun {kinds[Briefed]} times, and its end is {[e for e in entries if _is_end(e)]}"
        asked = [entry.command.ref for entry in entries if isinstance(entry, Asked)]
        if Counter(asked) != Counter(entry.command for entry in entries if isinstance(entry, AskAnswered)):
            yield f"{key}: not every ask has one answer"
        born = [f"{key}--{e.job}" for e in entries if isinstance(e, JobStarted) and e.kind == "child"]
        ended = {f"{key}--{e.job}" for e in entries if isinstance(e, JobEnded)}
        if missing := [child for child in born if child not in reading.acts and child not in ended]:
            yield f"never begun, and never ended: {missing}"
    if left := [key for key, room in tree.machine.rooms.items() if room.alive]:
        yield f"still running: {left}"


def _requests_extend(tree: Tree) -> Iterator[str]:
    before: dict[str, list[Any]] = defaultdict(list)
    for one in tree.watch.asked:
        messages = one.request.messages
        if wrong := problem(messages):
            yield f"request {one.number}: {wrong}"
        if one.request.tool_choice != "none" and str(messages[1]["content"]).endswith("part 0"):
            if messages[: len(before[ROOT])] != before[ROOT]:
                yield f"request {one.number} does not extend the one before it"
            before[ROOT] = messages


def folded(entries: list[Any]) -> ActionState:
    state = ActionState(ROOT)
    for entry in entries:
        state.apply(entry)
    return state


def _is_end(entry: Any) -> bool:
    return isinstance(entry, Closed) or (isinstance(entry, Responded) and entry.ended)


def _bookkeeping(entry: Any) -> bool:
    return type(entry).__name__ in ("Owned", "Released", "Emitted", "Spent", "EffectEnded", "JobEnded")
