"""Who writes to the bot, what is shown to them, and what can go wrong on the way: the words of the Bot API's server."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.servers.telegram import BotApi

Payload = dict[str, Any]


@dataclass
class Person:
    """Somebody with Telegram. In `says`, what the Bot API would add to the message may be given by name."""

    server: "BotApi"
    id: int
    name: str

    @property
    def chat(self) -> Payload:
        """The private one with the bot."""
        return {"id": self.id, "type": "private", "first_name": self.name}

    @property
    def user(self) -> Payload:
        return {"id": self.id, "is_bot": False, "first_name": self.name}

    def says(self, text: str | None, chat: Payload | None = None, **fields: Any) -> Payload:
        """Sends it at once; returns the message as the Bot API tells it."""
        return self.server.deliver(self.user, chat or self.chat, text, fields)

    def edits(self, message: Payload, text: str, **fields: Any) -> Payload:
        return self.server.edit(message, text, fields)

    def reacts(self, message: "Payload | Shown", *new: str, old: tuple[str, ...] = ()) -> None:
        """`new` is what stands there then, `old` what did."""
        shown = isinstance(message, Shown)
        chat, number = (message.chat, message.message_id) if shown else (message["chat"]["id"], message["message_id"])
        self.server.react(self.user, chat, number, old, new)

    def presses(self, shown: "Shown", button: str, **fields: Any) -> Payload:
        """A button under a message of the bot, by its words; returns the callback query."""
        (data,) = [data for text, data in shown.buttons if text == button]
        return self.server.press(self.user, shown, data, fields)

    def blocks(self) -> None:
        self.server.blocked.add(self.id)

    def unblocks(self) -> None:
        self.server.blocked.discard(self.id)


@dataclass(frozen=True)
class Shown:
    """A message of the bot as it stands there. `text` is what is read, `html` what was sent, `buttons` are texts and
    data, `before` is what it said before each edit, `at` is on the monotonic clock.
    """

    @dataclass(frozen=True)
    class File:
        """`kind` is how it is shown: photo or document."""

        kind: str
        name: str
        data: bytes

    chat: int
    text: str
    html: str
    formatted: bool
    thread: int | None
    reply_to: int | None
    at: float
    message_id: int
    file: File | None = None
    buttons: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()
    silent: bool = False


@dataclass(frozen=True)
class Call:
    method: str
    parameters: Payload
    at: float


# --- faults ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refuse:
    """An answer other than "ok"; nothing is done."""

    status: int
    description: str
    retry_after: int | None = None
    migrate_to_chat_id: int | None = None


@dataclass(frozen=True)
class Fault:
    name: str


DROPPED = Fault("the connection is closed before anything is done")
LOST_ANSWER = Fault("it is done, and the connection is closed instead of an answer")
SILENCE = Fault("nothing is done, and no answer comes for as long as the server lives")
