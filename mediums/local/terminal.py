"""The conversation in a terminal: a prompt, what is said above it, what is in flight below it.

Owns how things look there and nothing else: the client knows what is sent, status.py what is in flight. The libraries
that draw are imported when it starts, so that the gateway does not carry them.
"""

import asyncio
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

from gateway.clock import Now, utc_now
from mediums.local import wire
from mediums.local.client import Event, LocalClient
from mediums.local.commands import HELP, look_of
from mediums.local.status import Status
from mediums.visible import printable

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

HISTORY = 20  # posts of before that are shown at the start
REFRESH_SECONDS = 1.0
LONGEST_LINE = 100  # columns


async def run_terminal(
    client: LocalClient,
    *,
    suggest: Callable[[], str] | None = None,
    now: Now = utc_now,
    input: "Input | None" = None,
    output: "Output | None" = None,
) -> None:
    """Until the person leaves (/quit, Ctrl+D, Ctrl+C). `suggest` is what Enter on an empty line sends; it may be "".

    The client must be open, and nobody else may iterate over it. Raises AccessDenied.
    """
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.patch_stdout import patch_stdout

    with create_app_session(input=input, output=output), patch_stdout(raw=True):
        terminal = _Terminal(client, suggest or (lambda: ""), now)
        both = {asyncio.create_task(terminal.hear()), asyncio.create_task(terminal.ask())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            ends = await asyncio.gather(*both, return_exceptions=True)
            terminal.leave()
    for end in ends:
        if isinstance(end, Exception):
            raise end


class _Terminal:
    def __init__(self, client: LocalClient, suggest: Callable[[], str], now: Now) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.styles import Style

        self._client, self._suggest, self._now = client, suggest, now
        self._status = Status()
        self._own: set[str] = set()
        self._older: int | None = None
        self._session: PromptSession[str] = PromptSession(
            message=[("bold", "› ")],
            placeholder=self._placeholder,
            bottom_toolbar=self._toolbar,
            refresh_interval=REFRESH_SECONDS,
            erase_when_done=True,
            style=Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"}),
        )

    # --- what the person does ----------------------------------------------------------------------------------------

    async def ask(self) -> None:
        while True:
            try:
                line = (await self._session.prompt_async()).strip() or self._suggest()
            except (EOFError, KeyboardInterrupt):
                return
            if line == "/quit":
                return
            if line:
                self._take(line)

    def _take(self, line: str) -> None:
        look = look_of(line)
        self._print_said("terminal", line)
        if line == "/help":
            self._print_note(HELP)
        if look:
            self._client.look(*look)
        else:
            self._own.add(self._client.say(line))

    def _placeholder(self) -> "StyleAndTextTuples":
        suggestion = self._suggest()
        return [("fg:ansibrightblack", f"{suggestion}  (Enter sends this)" if suggestion else "")]

    def _toolbar(self) -> "StyleAndTextTuples":
        return [("", " " + printable(self._status.line(self._now(), len(self._client.unsent))).replace("\n", " "))]

    def leave(self) -> None:
        """What no gateway has taken is lost with the terminal."""
        for lost in self._client.unsent:
            self._print_note(f"not sent, no gateway took it: {lost.text}")

    # --- what is heard -----------------------------------------------------------------------------------------------

    async def hear(self) -> None:
        async for event in self._client:
            self._status.apply(event)
            self._show(event)
            self._session.app.invalidate()

    def _show(self, event: Event) -> None:
        match event:
            case wire.Hello(newest=newest, banner=banner) if self._older is None:
                self._older = newest - HISTORY
                for line in banner:
                    self._print_note(line)
            case wire.Post(position=position) if position <= (self._older or 0):
                pass
            case wire.Post(author="assistant"):
                self._print_markdown(event.text, _heading(event.name, event.medium))
                self._print_files(event.files)
            case wire.Post(id=said) if said not in self._own:
                self._print_said(event.medium, event.text, event.pressed)
                self._print_files(event.files)
            case wire.Decided(silence=silence, position=position) if silence and position > (self._older or 0):
                self._print_note(f"left alone: {silence}")
            case wire.Decided(passed_on=passed_on, position=position) if passed_on and position > (self._older or 0):
                self._print_note(passed_on)
            case wire.Looked(text=text):
                self._print_markdown(text)
            case wire.Refused(why=why):
                self._print_note(f"not taken: {why}")
            case _:
                pass

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _print_note(self, text: str) -> None:
        from rich.text import Text

        self._draw(Text(printable(text), style="dim italic"))

    def _print_files(self, files: tuple[wire.Upload, ...]) -> None:
        for file in files:
            self._print_note(self._client.line_of(file))

    def _print_said(self, medium: str, text: str, pressed: str = "") -> None:
        from rich.text import Text

        self._draw(_heading("you", medium, pressed), *([Text(printable(text))] if text else []))

    def _print_markdown(self, text: str, *heading: Any) -> None:
        from rich.markdown import Markdown

        self._draw(*heading, Markdown(printable(text), hyperlinks=False))

    def _draw(self, *parts: Any) -> None:
        """Through the library of the prompt, which puts it above the line that is being typed."""
        from prompt_toolkit import print_formatted_text
        from prompt_toolkit.formatted_text import ANSI
        from rich.console import Console

        width = min(self._session.output.get_size().columns, LONGEST_LINE)
        drawn = StringIO()
        console = Console(file=drawn, force_terminal=True, color_system="standard", width=width)
        for part in parts:
            console.print(part)
        print_formatted_text(ANSI(drawn.getvalue().rstrip("\n")))


def _heading(name: str, medium: str, pressed: str = "") -> Any:
    from rich.text import Text

    style = "bold" if name == "you" else "bold cyan"
    labels = [label for label in ("" if medium == "terminal" else medium, printable(pressed)) if label]
    return Text.assemble("\n", (printable(name), style), ("".join(f" · {label}" for label in labels), "dim"))
