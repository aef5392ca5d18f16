"""How things stand, as the model reads it: the last message of a prompt, new with each turn. Pure."""

from datetime import datetime
from zoneinfo import ZoneInfo

from brain import files, reminding
from brain.quoting import shortened, told_apart
from brain.turn import Turn
from brain.working import ActionView

ABOUT_SHOWN = 300


def live_state(turn: Turn, zone: ZoneInfo, now: datetime, *, sees: bool) -> str:
    state = turn.state
    lines = [f"(State at {now.astimezone(zone).strftime('%a %d %b %Y %H:%M')})"]
    lines += _work(turn, now) if sees else ["What is in flight is not for those who wrote."]
    pending = [send for send in state.sends.values() if send.outcome is None]
    if pending:
        lines.append("Not yet delivered: " + "; ".join(f"“{shortened(send.text, 60)}”" for send in pending[-5:]))
    if at_hand := files.at_hand(state):
        lines.append(at_hand)
    lines += reminding.lines(state, zone)
    lines.append(f"Decide about: {', '.join(dict.fromkeys(item.label for item in turn.heard))}.")
    return "\n".join(lines)


def _work(turn: Turn, now: datetime) -> list[str]:
    in_flight, completed = turn.in_flight(), turn.completed()
    lines = ["In flight:" if in_flight else "Nothing is in flight."]
    abouts = told_apart([action.about for action in in_flight], ABOUT_SHOWN)
    for action, about in zip(in_flight, abouts, strict=True):
        lines.append(_action(action, about, now))
        lines += [f"  open question {q.question}: {shortened(q.text, 200)}" for q in action.questions.values()]
    if completed:
        lines.append("Ended: " + "; ".join(f"{a.label} {a.name} {a.phase}" for a in completed[-10:]))
    return lines


def _action(action: ActionView, about: str, now: datetime) -> str:
    age = f", {_age((now - action.since).total_seconds())}" if action.since else ""
    parts = [f"{action.label} {action.name} · {action.phase}{age} · “{about}”"]
    if action.doing and action.phase == "running":
        parts.append(f"doing: {shortened(action.doing, 120)}")
    if action.elsewhere:
        parts.append("kept private" if action.narrowed else f"asked for on {action.route.medium}, told there")
    if action.last:
        parts.append(f"last: {shortened(action.last, 200)}")
    return " · ".join(parts)


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
