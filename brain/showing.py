"""What a lane shows besides messages: typing, what is in flight, what was decided. All of it may be lost."""

import asyncio
from collections.abc import Callable

from brain.entries import Act, Decided, React, Speak, Steer, Wait
from brain.parts import Heard
from brain.state import LaneState
from brain.working import ActionView
from gateway.actions import verbs
from gateway.addresses import Route
from gateway.events import ControlPressed, MessageReceived
from gateway.journal import Journal
from gateway.live import ActionShown, ActionsShown, LiveSignal, QuestionShown, TurnDecided, Typing

REPEATED = 10  # decisions, at the start

Tell = Callable[[str, LiveSignal], None]  # account, signal


class Shows:
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._typing: Route | None = None

    def again(self, state: LaneState) -> None:
        """All that is shown, to who has missed it."""
        for exchange in state.exchanges[-REPEATED:]:
            self.decided(tuple(exchange.heard), exchange.decided)
        self._actions(state)

    def _actions(self, state: LaneState) -> None:
        actions = tuple(_shown(action) for action in state.in_flight())
        for route in {route.account: route for route in state.routes.values()}.values():
            self._tell(route.account, ActionsShown(route=route, actions=actions))

    def typing(self, heard: tuple[Heard, ...], on: bool) -> None:
        """Where the newest message came from; off wherever it was on."""
        if not on:
            if self._typing is not None:
                self._tell(self._typing.account, Typing(route=self._typing, on=False))
            self._typing = None
            return
        said = [item.fact.route for item in heard if isinstance(item.fact, MessageReceived)]
        if said and self._typing is None:
            self._typing = said[-1]
            self._tell(said[-1].account, Typing(route=said[-1], on=True))

    def decided(self, heard: tuple[Heard, ...], decided: Decided) -> None:
        """Each person's message is told apart by its account; silence comes with its reason."""
        by_account: dict[str, list[MessageReceived | ControlPressed]] = {}
        for item in heard:
            if isinstance(item.fact, MessageReceived | ControlPressed):
                by_account.setdefault(item.fact.route.account, []).append(item.fact)
        spoken = any(isinstance(decision, Speak | React) for decision in decided.decisions)
        passed_on = "" if spoken else _passed_on(decided)
        silence = "" if spoken or passed_on else _silence(decided)
        for account, facts in by_account.items():
            covers = tuple(fact.identity for fact in facts)
            self._tell(account, TurnDecided(route=facts[-1].route, covers=covers, silence=silence, passed_on=passed_on))

    async def follow(self, journal: Journal[LaneState]) -> None:
        """Tells what is in flight at the start and on each change, wherever the conversation has been.

        At the start the last decisions are told again: the signal may have been lost with a process.
        """
        self.again(journal.state)
        shown = journal.state.live
        while True:
            state = await journal.until(lambda state, shown=shown: state.live > shown)  # type: ignore[misc]
            shown = state.live
            self._actions(state)
            await asyncio.sleep(0)


def _passed_on(decided: Decided) -> str:
    """What was done without a word; empty when nothing was."""
    names = {"answer": "answered", "interject": "passed on", "ask": "asked", "pause": "paused", "resume": "resumed"}
    done = [f"started {d.name}" for d in decided.decisions if isinstance(d, Act)]
    done += [names.get(d.verb, "stopping") for d in decided.decisions if isinstance(d, Steer)]
    return ", ".join(dict.fromkeys(done))


def _silence(decided: Decided) -> str:
    reasons = [decision.reason for decision in decided.decisions if isinstance(decision, Wait)]
    return "; ".join(reasons) or decided.why or "nothing to say"


def _shown(action: ActionView) -> ActionShown:
    assert action.phase in ("running", "paused", "awaiting_input", "hibernated")
    assert action.since is not None
    return ActionShown(
        action=action.label,
        name=action.name,
        about=action.about,
        phase=action.phase,
        since=action.since,
        doing=action.doing or action.last[:200],
        questions=tuple(
            QuestionShown(question=q.question, text=q.text, options=q.options) for q in action.questions.values()
        ),
        can=verbs(action.phase, bool(action.questions)),
    )
