"""What must be true at the end of a run, whatever struck it. Each rule yields a sentence for each breach."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from actors.entries import (
    Asked,
    Briefed,
    EffectEnded,
    EffectStarted,
    Generated,
    Interjected,
    JobEnded,
    JobStarted,
    Paused,
    Refused,
    Resumed,
    Stopped,
)
from actors.entries import Spent as ActorSpent
from actors.transcript import Transcript
from brain.emission import emissions
from brain.entries import Decided, Speak, Spent, Taken, Wait
from brain.state import LaneState
from gateway.events import (
    ActionCommand,
    ActionProgressed,
    CommandRefused,
    Interject,
    MessageReceived,
    Send,
    identity_of,
)
from gateway.outbox import Closed, Queued
from tests.kernel.messages import problem
from tests.kernel.models import Asked as Request
from tests.kernel.reading import CONVERSATION, Reading
from tests.kernel.world import Played

STABLE_END = 2  # the events and the live state close every request of the conversation


def violations(played: Played) -> list[str]:
    if played.problems:
        return played.problems
    reading = played.reading
    return [
        *messages_are_taken_and_answered(played),
        *turns_see_all_that_came_before(reading),
        *turns_decide_only_what_they_saw(played),
        *sends_are_shown_as_their_end_says(played),
        *commands_are_heard_once(reading),
        *effects_happen_once_and_are_known(played),
        *code_is_heard_once(reading),
        *cancelled_generations_leave_only_their_cost(played),
        *transcripts_are_valid_at_every_entry(reading),
        *requests_are_valid_and_extend_each_other(played),
        *journals_have_one_writer_at_a_time(reading),
    ]


def messages_are_taken_and_answered(played: Played) -> Iterator[str]:
    lane = played.reading.lane
    taken = [entry.event for entry in lane if isinstance(entry, Taken)]
    decided = [entry for entry in lane if isinstance(entry, Decided)]
    pushed = [message.identity for message in played.story.platform.pushed]
    if [event.identity for event in taken if isinstance(event, MessageReceived)] != pushed:
        yield f"messages taken out of order, or not once: {[identity_of(event) for event in taken]}"
    if twice := [name for name, n in Counter(map(identity_of, taken)).items() if n > 1]:
        yield f"taken twice: {twice}"
    covered = Counter(name for entry in decided for name in entry.covers)
    opening = {identity_of(entry.event) for entry in lane if isinstance(entry, Taken) and entry.attention != "keep"}
    for name in {*opening, *covered}:
        if covered[name] != int(name in opening):
            yield f"{name} is decided {covered[name]} times"
    for identity in pushed:
        for entry in (one for one in decided if identity in one.covers and one.by == "model"):
            answers = [one for one in entry.decisions if isinstance(one, Speak) and identity in one.answers]
            silent = any(isinstance(one, Wait) for one in entry.decisions)
            if len(answers) > 1 or not (answers or silent):
                yield f"{identity} has {len(answers)} answers in turn {entry.turn}, silent: {silent}"


def turns_see_all_that_came_before(reading: Reading) -> Iterator[str]:
    """Nothing that cancels a generation may stand in the journal before a commit that does not cover it."""
    open_events: dict[str, Any] = {}
    for entry in reading.lane:
        if isinstance(entry, Taken) and entry.attention == "turn" and not isinstance(entry.event, ActionProgressed):
            open_events[identity_of(entry.event)] = entry.event
        if isinstance(entry, Decided) and entry.by == "model":
            for name in entry.covers:
                open_events.pop(name, None)
            if open_events:
                yield f"turn {entry.turn} was committed without {list(open_events)}"


def turns_decide_only_what_they_saw(played: Played) -> Iterator[str]:
    """What came while a turn generated, and did not cancel it, stays for the next."""
    said = {identity_of(e.event): getattr(e.event, "text", "") for e in played.reading.lane if isinstance(e, Taken)}
    asked = {one.number: str(one.request.messages[-STABLE_END]["content"]) for one in played.story.desk.asked}
    for entry in played.reading.lane:
        if isinstance(entry, Decided) and entry.usage is not None and not entry.why:
            shown = asked.get(entry.usage.prompt_tokens, "")
            for name in entry.covers:
                if said[name].strip().replace("\n", "\n  ") not in shown:
                    yield f"turn {entry.turn} decides {name} and was not shown {said[name]!r}"


def sends_are_shown_as_their_end_says(played: Played) -> Iterator[str]:
    reading, platform = played.reading, played.story.platform
    decided = [entry for entry in reading.lane if isinstance(entry, Decided)]
    sends = [one.body for one in emitted(decided) if isinstance(one.body, Send)]
    parts = {entry.command.ref: entry.parts for entry in reading.out if isinstance(entry, Queued)}
    ends = {entry.send: entry for entry in reading.out if isinstance(entry, Closed)}
    shown = Counter(one.key for one in platform.shown)
    if platform.early:
        yield f"shown before their decision was durable: {platform.early}"
    if stray := set(shown) - {f"{ref}/{n}" for ref, made in parts.items() for n in range(len(made))}:
        yield f"shown, but never decided: {stray}"
    for send in sends:
        keys = [f"{send.ref}/{n}" for n in range(len(parts.get(send.ref, ())))]
        if not keys or send.ref not in ends:
            yield f"{send.text!r} has no end"
            continue
        yield from _shown_as(send.text, ends[send.ref].outcome, [shown[key] for key in keys])
        told = [e for e in reading.lane if isinstance(e, Taken) and getattr(e.event, "send", None) == send.ref]
        if [entry.event.outcome for entry in told] != [ends[send.ref].outcome]:
            yield f"the end of {send.text!r} was told {[entry.event for entry in told]}"
    sent = [send.ref for send in sends if send.ref in ends and ends[send.ref].outcome == "sent"]
    order = [f"{ref}/{n}" for ref in sent for n in range(len(parts[ref]))]  # what is unknown may yet arrive
    seen = [key for key in dict.fromkeys(one.key for one in platform.shown) if key in order]
    if seen != [key for key in order if key in seen]:
        yield f"shown out of order: {seen}"
    unknown = [entry for entry in ends.values() if entry.outcome == "unknown"]
    if len(unknown) > played.faults + played.lapses + (not platform.repeatable):
        yield f"more unknown sends than faults: {unknown}"


def _shown_as(text: str, outcome: str, shown: list[int]) -> Iterator[str]:
    allowed = {"sent": (1, 1), "unknown": (0, 1), "withdrawn": (0, 0), "failed": (0, 0)}
    least, most = allowed[outcome]
    if min(shown) < least or max(shown) > most:
        yield f"{text!r} is {outcome} and was shown {shown} times"


def commands_are_heard_once(reading: Reading) -> Iterator[str]:
    decided = [entry for entry in reading.lane if isinstance(entry, Decided)]
    wanted: dict[str, list[Any]] = defaultdict(list)
    for one in emitted(decided):
        if isinstance(one.body, ActionCommand):
            wanted[one.body.action].append(one.body)
    told = Counter(
        e.event.command for e in reading.lane if isinstance(e, Taken) and isinstance(e.event, CommandRefused)
    )
    for key, commands in wanted.items():
        entries = reading.acts.get(key, [])
        logged = [ref for entry in entries if (ref := command_of(entry)) is not None]
        if logged != [command.ref for command in commands]:
            yield f"{key} was told {[str(c.ref) for c in commands]} and has {[str(ref) for ref in logged]}"
        refused = {entry.command for entry in entries if isinstance(entry, Refused)}
        for command in commands:
            if told[command.ref] != int(command.ref in refused):
                yield f"the refusal of {command.ref} was told {told[command.ref]} times"
        yield from _seen_in_order(key, entries, [c for c in commands if c.ref not in refused])


def _seen_in_order(key: str, entries: list[Any], commands: list[Any]) -> Iterator[str]:
    *_, last = transcripts(entries)
    text = "\n".join(str(message.get("content")) for message in last.snapshot({}, "?"))
    places = []
    for command in commands:
        if isinstance(command, Interject):
            words = f"] {command.text}"
            if text.count(words) != 1:
                yield f"{key} sees {command.text!r} {text.count(words)} times"
            places.append(text.find(words))
    if places != sorted(places):
        yield f"{key} sees its commands out of order"


def effects_happen_once_and_are_known(played: Played) -> Iterator[str]:
    done = Counter(played.story.effects)
    if twice := [what for what, n in done.items() if n > 1]:
        yield f"done twice: {twice}"
    entries = [entry for log in played.reading.acts.values() for entry in log]
    started = {entry.about: entry.rpc for entry in entries if isinstance(entry, EffectStarted)}
    ended = {entry.rpc for entry in entries if isinstance(entry, EffectEnded)}
    lost = [entry for entry in entries if isinstance(entry, JobEnded) and "is lost" in entry.text]
    for what in done:
        rpc = next((rpc for about, rpc in started.items() if what in about), None)
        if rpc is None:
            yield f"{what} was done, and was never written down"
        elif rpc not in ended and not (lost or played.story.unknown or stopped(entries)):
            yield f"{what} was done, and nobody was told that its end is unknown"


def code_is_heard_once(reading: Reading) -> Iterator[str]:
    """What running code asked of a person is asked once, however often the code is joined again."""
    for key, entries in reading.acts.items():
        asked = Counter(entry.rpc for entry in entries if isinstance(entry, JobStarted) and entry.rpc)
        if twice := [rpc for rpc, n in asked.items() if n > 1]:
            yield f"{key}: asked again: {twice}"


def stopped(entries: list[Any]) -> bool:
    return any(isinstance(entry, Stopped) for entry in entries)


def cancelled_generations_leave_only_their_cost(played: Played) -> Iterator[str]:
    lane, acts = played.reading.lane, [entry for log in played.reading.acts.values() for entry in log]
    for name, entries, watch, spent in (
        ("desk", lane, played.story.desk, Spent),
        ("worker", acts, played.story.work, ActorSpent),
    ):
        kept = [e for e in entries if isinstance(e, Decided | Generated) and e.usage and not getattr(e, "why", "")]
        made = [e.usage.prompt_tokens for e in kept]  # a mended turn has the sum of several
        cost = [e.usage.prompt_tokens for e in entries if isinstance(e, spent) and not getattr(e, "child", "")]
        if wrong := set(made) & watch.cancelled:
            yield f"{name}: cancelled, and kept: {wrong}"
        if twice := [n for n, count in Counter([*made, *cost]).items() if count > 1]:
            yield f"{name}: counted twice: {twice}"


def transcripts_are_valid_at_every_entry(reading: Reading) -> Iterator[str]:
    for key, entries in reading.acts.items():
        before: list[Any] = []
        for place, state in enumerate(transcripts(entries)):
            if not state.messages:
                continue
            if wrong := problem(state.snapshot({}, "How far are you?")):
                yield f"{key} at entry {place}: {wrong}"
            if state.messages[: len(before)] != before:
                yield f"{key} at entry {place}: the transcript was rewritten"
            before = list(state.messages)


def requests_are_valid_and_extend_each_other(played: Played) -> Iterator[str]:
    desk, work = played.story.desk.asked, played.story.work.asked
    for one in (*desk, *work):
        if wrong := problem(one.request.messages):
            yield f"request {one.number}: {wrong}"
    asked = [one for one in desk if str(one.request.messages[-1]["content"]).startswith("(State at")]
    yield from _extends(asked, STABLE_END)
    by_task: dict[str, list[Request]] = defaultdict(list)
    for one in work:
        if one.request.tool_choice != "none":
            by_task[str(one.request.messages[1]["content"])].append(one)
    for requests in by_task.values():
        yield from _extends(requests, 0)


def _extends(asked: list[Request], but_for_the_last: int) -> Iterator[str]:
    before: list[Any] = []
    for one in asked:
        messages = one.request.messages
        if messages[: len(before)] != before:
            yield f"request {one.number} does not extend the one before it"
        before = messages[: len(messages) - but_for_the_last]


def journals_have_one_writer_at_a_time(reading: Reading) -> Iterator[str]:
    for subject, epochs in reading.epochs.items():
        if epochs != sorted(epochs):
            yield f"epochs fall in {subject}: {epochs}"
    if twice := [nonce for nonce, n in Counter(reading.nonces).items() if n > 1]:
        yield f"written twice: {twice}"


# --- what the rules look at ------------------------------------------------------------------------------------------


def emitted(decided: list[Decided]) -> list[Any]:
    """What follows from those decisions, worked out by itself."""
    state, made = LaneState(CONVERSATION), []
    for entry in decided:
        made += emissions(CONVERSATION, entry, state.actions_made)
        state.actions_made += sum(type(decision).__name__ == "Act" for decision in entry.decisions)
    return made


def command_of(entry: Any) -> Any:
    match entry:
        case Briefed(start=command):
            return command.ref
        case Interjected(command=command) | Paused(command=command) | Resumed(command=command):
            return command.ref
        case Asked(command=command) | Stopped(command=command):
            return command.ref
        case Refused(command=ref) | JobEnded(command=ref):
            return ref
        case _:
            return None


def transcripts(entries: list[Any]) -> Iterator[Transcript]:
    """The same one, after each entry."""
    state = Transcript()
    for entry in entries:
        state.apply(entry)
        yield state
