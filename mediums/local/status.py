"""What a client knows of the room's live side, as lines for a terminal. Pure: it is given events and the time."""

from datetime import datetime

from gateway.live import ActionShown
from mediums.local import wire
from mediums.local.client import Disconnected, Event

PHASES = {"running": "running", "paused": "paused", "awaiting_input": "ready for more", "hibernated": "asleep"}
SHOWN_ACTIONS = 3


class Status:
    def __init__(self) -> None:
        self.connected = False
        self.assistant = "assistant"
        self.typing = False
        self.actions: tuple[ActionShown, ...] = ()

    def apply(self, event: Event) -> None:
        match event:
            case wire.Hello(assistant=assistant):
                self.connected, self.assistant = True, assistant
            case Disconnected():
                self.connected, self.typing = False, False
            case wire.Typing(on=on):
                self.typing = on
            case wire.Actions(actions=actions):
                self.actions = actions
            case _:
                pass

    @property
    def busy(self) -> bool:
        """Something works, and not only on an answer that it waits for."""
        return any(one.phase == "running" and not one.questions for one in self.actions)

    @property
    def questions(self) -> int:
        return sum(len(one.questions) for one in self.actions)

    def line(self, now: datetime, unsent: int) -> str:
        """The most urgent first: the connection, who is typing, what is in flight."""
        parts = ["● connected" if self.connected else "○ reconnecting…"]
        if unsent and not self.connected:
            parts.append(f"{unsent} unsent")
        if self.typing:
            parts.append(f"{self.assistant} is typing…")
        parts += [_action(one, now) for one in self.actions[:SHOWN_ACTIONS]]
        if len(self.actions) > SHOWN_ACTIONS:
            parts.append(f"and {len(self.actions) - SHOWN_ACTIONS} more")
        return "  │  ".join(parts)


def _action(action: ActionShown, now: datetime) -> str:
    state = "waits for an answer" if action.questions else PHASES[action.phase]
    doing = f" · {action.doing}" if action.doing and action.phase == "running" else ""
    return f"{action.name}: {state} {age((now - action.since).total_seconds())}{doing}"


def age(seconds: float) -> str:
    """`12 s`, `3 min`, `1 h 05`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02}"
