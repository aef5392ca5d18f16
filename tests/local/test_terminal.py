"""The terminal, driven by its keys and read by what it draws."""

import asyncio
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from gateway.live import ActionShown
from mediums.local import wire
from mediums.local.client import AccessDenied, Disconnected, LocalClient
from mediums.local.status import Status, age
from mediums.local.terminal import run_terminal
from mediums.visible import printable
from tests.local.house import TOKEN
from tests.patience import PATIENCE_SECONDS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Screen(io.StringIO):
    """Collects what is drawn, and says where the cursor is when it is asked; `until` waits for a text in it."""

    def __init__(self, keys):
        super().__init__()
        self.keys = keys
        self.asked = 0
        self.grown = asyncio.Event()

    def isatty(self):
        return True

    def flush(self):
        self.grown.set()
        asked = self.getvalue().count("\x1b[6n")
        if asked > self.asked:
            self.asked = asked
            self.keys.send_text("\x1b[1;1R")

    async def until(self, text):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in self.plain():
                self.grown.clear()
                await self.grown.wait()

    def plain(self):
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


@pytest_asyncio.fixture(loop_scope="session")
async def terminal(client):
    with create_pipe_input() as keys:
        screen = Screen(keys)
        output = Vt100_Output(screen, lambda: Size(rows=30, columns=80))
        running = asyncio.create_task(run_terminal(client, suggest=lambda: "try this", input=keys, output=output))
        await screen.until("● connected")
        yield keys, screen
        keys.send_text("/quit\r")
        await running


async def test_what_is_typed_is_said_and_the_answer_is_drawn(home, terminal):
    keys, screen = terminal
    keys.send_text("**strong** words\r")
    await screen.until("Frontdesk")
    assert "rehearsal: rules, no model" in screen.plain()
    await screen.until("strong words")
    assert [fact.text for fact in home.heard] == ["**strong** words"]


async def test_enter_on_an_empty_line_sends_the_suggestion(home, terminal):
    keys, screen = terminal
    await screen.until("try this  (Enter sends this)")
    keys.send_text("\r")
    await screen.until("Frontdesk")
    assert [fact.text for fact in home.heard] == ["try this"]


async def test_messages_of_the_page_are_shown_with_their_medium(home, terminal):
    _, screen = terminal
    async with LocalClient(home.medium.url, TOKEN, "web") as page:
        page.say("from the page")
        await screen.until("you · web")
        await screen.until("Frontdesk · web")


async def test_a_look_is_a_note_and_a_silence_is_marked(home, terminal):
    keys, screen = terminal
    keys.send_text("/code\r")
    await screen.until("print(6 * 7)")
    keys.send_text("thanks\r")
    await screen.until("left alone: thanks needs no answer")


async def test_what_no_gateway_took_is_named_when_one_leaves():
    with create_pipe_input() as keys:
        screen = Screen(keys)
        output = Vt100_Output(screen, lambda: Size(rows=30, columns=80))
        async with LocalClient("http://127.0.0.1:1", TOKEN) as client:
            running = asyncio.create_task(run_terminal(client, input=keys, output=output))
            keys.send_text("lost words\r")
            await screen.until("1 unsent")
            keys.send_text("/quit\r")
            await running
    assert "not sent, no gateway took it: lost words" in screen.plain()


async def test_help_names_the_terminals_own_commands_and_asks_for_the_others(home, terminal):
    keys, screen = terminal
    keys.send_text("/help\r")
    await screen.until("/trace [m12] why")
    await screen.until("Frontdesk")
    assert [fact.text for fact in home.heard] == ["/help"]


async def test_a_wrong_token_is_said_and_not_tried_for_ever(home):
    with create_pipe_input() as keys:
        output = Vt100_Output(io.StringIO(), lambda: Size(rows=30, columns=80), enable_cpr=False)
        async with LocalClient(home.medium.url, "wrong") as client:
            with pytest.raises(AccessDenied, match=r"mediums\.web\.token"):
                await run_terminal(client, input=keys, output=output)


def test_the_status_line_says_the_most_urgent_first():
    status = Status()
    assert status.line(NOON, unsent=2) == "○ reconnecting…  │  2 unsent"
    status.apply(wire.Hello(assistant="Frontdesk", person="Ana", banner=(), newest=0))
    status.apply(wire.Typing(on=True, medium="web"))
    action = ActionShown(
        action="a1", name="totals", about="", phase="running", since=NOON - timedelta(seconds=75), doing="reading"
    )
    status.apply(wire.Actions(actions=(action,)))
    assert status.line(NOON, 1) == "● connected  │  Frontdesk is typing…  │  totals: running 1 min · reading"
    status.apply(Disconnected(why="gone", retry_seconds=1))
    assert status.line(NOON, 0) == "○ reconnecting…  │  totals: running 1 min · reading"
    assert [age(seconds) for seconds in (-1, 59, 60, 3900)] == ["0 s", "59 s", "1 min", "1 h 05"]


def test_no_text_can_write_to_the_terminal_itself():
    assert printable("a\x1b]0;title\x07\x9b2J\nb\tc") == "a]0;title2J\nb\tc"
