"""Random but possible journals: each entry is one that the holder could have written in that state."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from actors import entries as a
from actors.journal import ActionState
from actors.sandbox.words import Lost, Name
from brain.entries import (
    Act,
    Carded,
    Decided,
    Held,
    Quieten,
    Recalled,
    Remind,
    Speak,
    Spent,
    Steer,
    Summarised,
    Taken,
    Unremind,
    Wait,
    Withdraw,
)
from brain.reminding import fire
from brain.state import LaneState
from gateway.addresses import Address, Route
from gateway.cards import Button, Card, press
from gateway.events import (
    ActionAnswered,
    ActionChanged,
    ActionEnded,
    ActionProgressed,
    ActionResponded,
    Album,
    Ask,
    ClarificationClosed,
    ClarificationRequested,
    CommandRefused,
    ControlPressed,
    FileOffered,
    Interject,
    MessageDeleted,
    MessageReacted,
    MessageReceived,
    Pause,
    Person,
    Ref,
    Resume,
    Send,
    SendClosed,
    ShowCard,
    Start,
    Stop,
    WithdrawSend,
    identity_of,
)
from gateway.files import Attachment, attachment
from gateway.journal import Emitted, Owned, Released
from gateway.llm.model import Usage
from gateway.outbox_state import Attempting, Closed, Deferred, OutboxState, PartSent, Queued, Returned
from gateway.quiet import QuietHours
from gateway.seen import erased
from mediums.local.room import Posted, RoomState, Settled

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ANA = Person(address=Address(medium="telegram", user="42"), name="Ana")
BO = Person(address=Address(medium="slack", user="T1/U7"), name="Bo ]\n[m1")
TELEGRAM = Route(medium="telegram", account="telegram-1", place="-1002471352452", reply_to="007")
SLACK = Route(medium="slack", account="slack-T1", place="C1", thread="1767600000.000010")
TEXTS = ("Book Rome.", "no, the work card", '«quotes» "and" \\ 🚂\n[m1 · a line]', "1767600000.100000", "", "x" * 300)


class Walk:
    """One random journal; `entries` are applied to `state` as they are made."""

    def __init__(self, seed: int, state: Any) -> None:
        self.any, self.state, self.n = random.Random(seed), state, 0
        self.entries: list[Any] = []

    def add(self, entry: Any) -> None:
        self.state.apply(entry)
        self.entries.append(entry)

    def at(self) -> datetime:
        self.n += 1
        return START + timedelta(seconds=37 * self.n)

    def text(self) -> str:
        return f"{self.any.choice(TEXTS)} {self.n}"

    def common(self) -> bool:
        """What every journal has now and then."""
        match self.any.randrange(12):
            case 0:
                self.add(Owned(worker="w"))
            case 1:
                self.add(Released())
            case 2 | 3 if self.state.outgoing:
                self.add(Emitted(through=self.any.choice(self.state.outgoing).ref))
            case _:
                return False
        return True


def message(walk: Walk) -> MessageReceived:
    at = walk.at()
    author, route = walk.any.choice([(ANA, TELEGRAM), (BO, SLACK)])
    edited = walk.any.random() < 0.15
    number = walk.n - walk.any.randrange(6) if edited else walk.n
    identity = f"{route.account}/message/{route.place}:{number}/{walk.n if edited else 0}"
    return MessageReceived(
        identity=erased(identity) if walk.any.random() < 0.1 else identity,
        route=route,
        author=author,
        text=walk.text(),
        at=at,
        private=walk.any.random() < 0.8,
        addressed=walk.any.random() < 0.5,
        files=(a_file(walk),) if walk.any.random() < 0.2 else (),
        album=Album(id="G1", place=walk.any.randrange(9)) if walk.any.random() < 0.1 else None,
        edited=edited,
        before=walk.text() if edited else "",
    )


def a_file(walk: Walk) -> Attachment:
    missing = walk.any.random() < 0.2
    return attachment("a.txt", "text/plain", 3, "" if missing else f"{walk.n:064x}", "too large" if missing else "")


def _change(walk: Walk) -> MessageDeleted | MessageReacted:
    """To a message that was there, or never was."""
    about = f"{TELEGRAM.account}/message/{TELEGRAM.place}:{walk.any.randrange(walk.n + 1)}"
    same: dict[str, Any] = {"message": about, "route": TELEGRAM, "author": ANA, "at": walk.at()}
    if walk.any.random() < 0.5:
        return MessageDeleted(identity=f"{about}/deleted/{walk.n}", **same)
    return MessageReacted(identity=f"{about}/reaction/{walk.n}", emoji="👍", removed=walk.any.random() < 0.3, **same)


def lane(seed: int, length: int, facts: int = 0) -> Walk:
    walk = Walk(seed, LaneState("p-ana"))
    state, rnd = walk.state, walk.any
    while len(walk.entries) < length:
        if walk.common():
            continue
        match rnd.randrange(8):
            case 0 | 1 | 2:
                walk.add(Taken(event=message(walk), at=walk.at(), attention=rnd.choice(["turn", "turn", "keep"])))
            case 3 if state.actions:
                facts += 1
                fact = _action_fact(walk, rnd.choice(list(state.actions)), Ref("act", facts, 0))
                walk.add(Taken(event=fact, at=walk.at(), attention=rnd.choice(["turn", "keep"])))
            case 4 if state.sends:
                facts += 1
                ref = rnd.choice(list(state.sends))
                outcome = rnd.choice(["sent", "failed", "unknown", "withdrawn"])
                closed = SendClosed(ref=Ref("out", facts, 0), conversation="p-ana", send=ref, outcome=outcome, why="?")
                walk.add(Taken(event=closed, at=walk.at(), attention="turn" if outcome == "failed" else "keep"))
            case 5 if state.undecided and rnd.random() < 0.5:
                walk.add(Taken(event=_change(walk), at=walk.at(), attention="keep"))
            case 5 if state.exchanges and rnd.random() < 0.2:
                through = rnd.choice(state.exchanges).decided.turn
                walk.add(Summarised(first=1, through=through, text=walk.text(), at=walk.at(), whose=(ANA.address,)))
            case 5 if state.reminders and rnd.random() < 0.2:
                walk.add(fire(state.reminders[0], walk.at(), state))
            case 5 if state.undecided and rnd.random() < 0.2:
                walk.add(Held(at=walk.at()))
            case 5:
                walk.add(Spent(usage=Usage(prompt_tokens=3, usd=0.01), model="m"))
                if state.actions:
                    card = Card(text=walk.text(), ended=rnd.random() < 0.2)
                    walk.add(Carded(action=rnd.choice(list(state.actions)), card=card, at=walk.at()))
            case 6 | 7 if state.undecided:
                walk.add(_decided(walk))
            case _:
                pass
    return walk


def _action_fact(walk: Walk, key: str, ref: Ref) -> Any:
    same: dict[str, Any] = {"ref": ref, "conversation": "p-ana", "action": key}
    match walk.any.randrange(10):
        case 9:
            return FileOffered(**same, file=a_file(walk))
        case 0:
            return ActionChanged(**same, phase=walk.any.choice(["running", "paused", "awaiting_input"]), doing="x")
        case 1:
            return ActionProgressed(**same, text=walk.text())
        case 2:
            return ActionResponded(**same, text=walk.text())
        case 3:
            return ClarificationRequested(
                **same, question=f"question{walk.any.randrange(3)}", text="Which?", options=("1", "2")
            )
        case 4:
            return ClarificationClosed(**same, question=f"question{walk.any.randrange(3)}")
        case 5:
            return ActionAnswered(**same, command=ref, asked="how far?", text=walk.text())
        case 6:
            return ActionEnded(**same, end=walk.any.choice(["succeeded", "failed", "stopped"]), text=walk.text())
        case 7:
            return CommandRefused(**same, command=ref, verb="pause", why="it has ended")
        case _:
            return ControlPressed(
                identity=f"local/press/{walk.n}/0", route=TELEGRAM, author=ANA, at=walk.at(), verb="pause", action="a1"
            )


def _decided(walk: Walk) -> Decided:
    state, rnd = walk.state, walk.any
    heard = [item for item in state.undecided if rnd.random() < 0.8]
    decisions: list[Any] = []
    for _ in range(rnd.randrange(4)):
        match rnd.randrange(9):
            case 8:
                decisions.append(Quieten(hours=rnd.choice([None, QuietHours(begin=1320, end=walk.n)])))
            case 7 if state.reminders and rnd.random() < 0.3:
                decisions.append(Unremind(label=rnd.choice(state.reminders).label))
            case 7:
                decisions.append(Remind(text=walk.text(), at=walk.at(), by=rnd.choice([ANA, BO]), route=TELEGRAM))
            case 6:
                decisions.append(Recalled(query="Rome", found=walk.text(), of=(walk.text(),)))
            case 0 | 1:
                decisions.append(
                    Speak(route=rnd.choice([TELEGRAM, SLACK]), text=walk.text(), by_tool=rnd.random() < 0.5)
                )
            case 2:
                decisions.append(Wait(reason=walk.text(), until=rnd.choice([None, walk.at()])))
            case 3:
                decisions.append(Act(name="booking", query=walk.text(), by=ANA, route=TELEGRAM, context="[m1] …"))
            case 4 if state.actions:
                verb = rnd.choice(["interject", "ask", "pause", "resume", "stop", "answer"])
                key = rnd.choice([*state.actions, "p-ana-a99"])
                decisions.append(Steer(verb=verb, action=key, by=ANA, text=walk.text(), question="question1"))
            case 5 if state.sends:
                decisions.append(Withdraw(account="telegram-1", send=rnd.choice(list(state.sends))))
            case _:
                pass
    return Decided(
        turn=state.turns + 1,
        at=walk.at(),
        covers=tuple(identity_of(item.fact) for item in heard),
        decisions=tuple(decisions),
        by=rnd.choice(["model", "model", "control", "outage"]),
        usage=Usage(prompt_tokens=100, completion_tokens=3, usd=None),
    )


def outbox(seed: int, length: int) -> Walk:
    walk = Walk(seed, OutboxState("telegram-1"))
    state, rnd, sent = walk.state, walk.any, 0
    while len(walk.entries) < length:
        if walk.common():
            continue
        ready = [ref for ref in state.rooms().values() if state.pending(ref)]
        trying = [ref for ref, item in state.open.items() if item.attempting]
        messages = [ref for ref, item in state.open.items() if isinstance(item.send, Send)]
        match rnd.randrange(7):
            case 6 if state.returnable:
                walk.add(Returned(mark=rnd.choice(list(state.returnable)), why="no such mailbox"))
            case 0 | 1:
                sent += 1
                route = Route(medium="telegram", account="telegram-1", place=str(rnd.randrange(4)))
                send = Send(
                    ref=Ref("p-ana", sent, 0), conversation="p-ana", route=route, text=walk.text(), until=walk.at()
                )
                walk.add(Queued(command=send, parts=("one", "two", "three")[: rnd.randrange(4)]))
            case 5:
                sent, number = sent + 1, rnd.randrange(4)
                walk.add(
                    Queued(
                        command=ShowCard(
                            ref=Ref("p-ana", sent, 0),
                            conversation="p-ana",
                            action=f"p-ana-a{number}",
                            run=0,
                            route=Route(medium="telegram", account="telegram-1", place=str(number)),
                            card=Card(
                                text=walk.text(),
                                buttons=(Button(text="Stop", press=press("stop", f"a{number}")),),
                                ended=rnd.random() < 0.2,
                            ),
                        )
                    )
                )
            case 2 if messages:
                sent += 1
                ref = rnd.choice(messages)
                withdraw = WithdrawSend(ref=Ref("p-ana", sent, 0), conversation="p-ana", send=ref)
                walk.add(Queued(command=withdraw, withdrew=state.pending(ref)))
            case 3 if ready:
                ref = rnd.choice(ready)
                walk.add(Attempting(send=ref, part=state.open[ref].part))
            case 4 if trying:
                ref = rnd.choice(trying)
                item = state.open[ref]
                last = item.part + 1 >= len(item.parts)
                outcome, message = rnd.choice(["sent", "failed", "unknown"]), rnd.choice(["", f"m{sent}"])
                ends = [Deferred(send=ref, why="429", until=rnd.choice([None, walk.at()]))]
                ends.append(
                    Closed(send=ref, outcome=outcome, why="?", message=message, mark=rnd.choice(["", f"{sent:016x}"]))
                    if last
                    else PartSent(send=ref, part=item.part)
                )
                walk.add(rnd.choice(ends))
            case _:
                pass
    return walk


def room(seed: int, length: int) -> Walk:
    walk = Walk(seed, RoomState(lambda: None))
    while len(walk.entries) < length:
        if walk.common():
            continue
        at = walk.at()
        if walk.any.random() < 0.6:
            author = walk.any.choice(["you", "assistant"])
            walk.add(Posted(id=f"post-{walk.n:08}", author=author, name="Ana", medium="web", text=walk.text(), at=at))
        else:
            ids = tuple(f"post-{n:08}" for n in walk.any.sample(range(walk.n + 1), 2))
            walk.add(Settled(ids=ids, silence="thanks"))
    return walk


def action(seed: int, length: int, key: str = "p-ana-a1", depth: int = 0) -> Walk:
    walk = Walk(seed, ActionState(key))
    state, rnd = walk.state, walk.any
    start = Start(
        ref=Ref("p-ana", 1, 0), conversation="p-ana", action=key, by=ANA, name="x", query="Book Rome", depth=depth
    )
    walk.add(a.Briefed(start=start, notes=("the sheet is in /data",), through=1, at=walk.at()))
    commands = effects = 1

    def same() -> dict[str, Any]:
        nonlocal commands
        commands += 1
        return {"ref": Ref("p-ana", commands, 0), "conversation": "p-ana", "action": "p-ana-a1", "by": ANA}

    while len(walk.entries) < length:
        if walk.common():
            continue
        t = state.transcript
        free = [call for call in t.open if call not in t.waits]
        match rnd.randrange(15):
            case 0 | 1 if not t.open:
                names = rnd.choices(["execute_code", "act", "request_clarification"], k=rnd.randrange(3))
                made = [
                    a.Call(
                        id=f"c{t.calls_made + n:08d}", name=name, arguments='{"code": "1"}', fields={"sig": [1, None]}
                    )
                    for n, name in enumerate(names)
                ]
                walk.add(a.Generated(text=walk.text().strip(), calls=tuple(made), model="m", usage=Usage(usd=0.5)))
            case 2 if free:
                kind = rnd.choice(["cell", "question", "child"])
                call = rnd.choice([free[0], None])
                rpc = None if call else f"rpc{walk.n}"
                job = f"{kind}{t.jobs_made + 1}"
                walk.add(
                    a.JobStarted(
                        job=job,
                        kind=kind,
                        about="# work\n1",
                        call=call,
                        rpc=rpc,
                        stateful=rnd.random() < 0.3,
                        child="child1" if kind == "question" and rnd.random() < 0.3 else None,
                        question="question7",
                        bound=kind == "question",
                        met=rnd.choice(["steps", "money"]) if kind == "question" else "",
                        default=rnd.choice([None, "the first"]),
                        at=walk.at(),
                        remind_at=walk.at(),
                    )
                )
            case 3 | 4 if t.jobs:
                job = rnd.choice(list(t.jobs))
                by = job.startswith("question") and rnd.random() < 0.7
                command = same()["ref"] if by else None
                walk.add(
                    a.JobEnded(
                        job=job,
                        text=walk.text(),
                        value=rnd.choice(["v", "Stop there"]),
                        failed=rnd.random() < 0.3,
                        usd=0.7,
                        tokens=9,
                        command=command,
                        by=ANA if by else None,
                        through=commands if command else 0,
                        at=walk.at(),
                    )
                )
            case 5 if t.open:
                walk.add(a.CallClosed(call=next(iter(t.open)), text=walk.text()))
            case 6 if not t.open:
                walk.add(
                    a.Interjected(
                        command=Interject(**same(), text=walk.text(), at=walk.at()), through=commands, at=walk.at()
                    )
                )
            case 7 if not t.open and not t.paused:
                walk.add(a.Paused(command=Pause(**same()), through=commands))
            case 8 if not t.open and t.paused:
                walk.add(a.Resumed(command=Resume(**same()), through=commands))
            case 9:
                walk.add(a.Asked(command=Ask(**same(), text="how far?"), through=commands))
            case 10 if state.asks:
                walk.add(a.AskAnswered(command=rnd.choice(list(state.asks)), asked="how far?", text=walk.text()))
            case 11:
                effects += 1
                walk.add(a.EffectStarted(rpc=f"rpc{effects}", method="web.get", about="x"))
                if rnd.random() < 0.5:
                    walk.add(a.EffectEnded(rpc=f"rpc{effects}", value={"rows": [1, 2.5, None]}))
            case 12:
                last = [
                    a.Notified(text=walk.text(), quiet=rnd.random() < 0.5),
                    a.Nudged(text="Nothing came."),
                    a.Offered(file=a_file(walk)),
                    a.SandboxLost(text="gone"),
                    a.Spent(usage=Usage(), model="m"),
                    a.Refused(command=same()["ref"], verb="pause", why="no", through=commands),
                ]
                if not t.open and not t.jobs and len(walk.entries) > length * 0.7:
                    last.append(a.Responded(text=walk.text(), ended=rnd.random() < 0.2))
                    last.append(a.Stopped(command=Stop(**same()), report="had this", through=commands))
                walk.add(rnd.choice(last))
            case 13 if t.jobs:
                walk.add(a.Reminded(job=rnd.choice(list(t.jobs))))
            case 14:
                _long_lived(walk)
            case _:
                pass
    return walk


def _long_lived(walk: Walk) -> None:
    state, rnd = walk.state, walk.any
    t = state.transcript
    if state.asleep is not None:
        walk.add(a.Woken(text="Awake again.", session=rnd.random() < 0.5))
    elif t.open or t.jobs:
        children = [job for job in t.jobs if job.startswith("child")]
        walk.add(a.Spent(usage=Usage(prompt_tokens=4, usd=0.1), model="m", child=rnd.choice([*children, "child99"])))
    elif rnd.random() < 0.5:
        walk.add(a.Responded(text=walk.text(), at=walk.at()))
        if rnd.random() < 0.5:
            lost = Lost(name="db", kind="Connection", why="it cannot be kept")
            walk.add(a.Hibernated(saved=(Name(name="x", kind="int"),), lost=(lost,)))
    else:
        through = rnd.randrange(len(t.messages) + 1)
        if all(message["role"] != "tool" for message in t.messages[through : through + 1]):
            walk.add(a.Compacted(summary=walk.text(), through=through))
