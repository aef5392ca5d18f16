"""Who writes on Slack, what is shown to them, and what can go wrong on the way: the words of Slack's server."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.servers.slack import SlackServer

Payload = dict[str, Any]


@dataclass
class Channel:
    """A public channel, or a direct message with the bot (`id` begins with D)."""

    id: str
    name: str
    joined: bool = True  # the bot is in it
    archived: bool = False
    external: bool = False  # shared with another company

    @property
    def direct(self) -> bool:
        return self.id.startswith("D")


@dataclass
class Person:
    """Somebody with Slack. In `says`, what Slack would add to the message may be given by name."""

    server: "SlackServer"
    id: str
    name: str
    team: str
    fields: Payload = field(default_factory=dict)  # of the user object

    @property
    def chat(self) -> Channel:
        """The direct message with the bot."""
        return self.server.channels[f"D{self.id}"]

    @property
    def user(self) -> Payload:
        shown = {"display_name": self.name, "real_name": f"{self.name} Doe"}
        return {"id": self.id, "team_id": self.team, "name": self.name.lower(), "profile": shown} | self.fields

    def says(
        self, text: str, channel: Channel | None = None, thread: "Payload | str | None" = None, **fields: Any
    ) -> Payload:
        """Sends it at once; returns the message as Slack tells it. `thread` is its first message, or that one's ts."""
        return self.server.deliver(self, channel or self.chat, text, thread, fields)

    def edits(self, message: Payload, text: str, **fields: Any) -> Payload:
        return self.server.edit(message, text, fields)

    def reacts(self, name: str, channel: Channel, ts: str, author: str, *, removed: bool = False) -> None:
        """`author` is the id of whose message it is."""
        item = {"type": "message", "channel": channel.id, "ts": ts}
        kind = "reaction_removed" if removed else "reaction_added"
        at = self.server.next_ts()
        self.server.event(type=kind, user=self.id, reaction=name, item_user=author, item=item, event_ts=at)

    def presses(self, shown: "Shown", button: str) -> Payload:
        """A button of a message of the bot, by its words; returns the payload."""
        (element,) = [one for one in shown.elements if one["text"]["text"] == button]
        return self.server.press(self, shown, element)

    def deletes(self, message: Payload) -> None:
        self.server.event(
            type="message",
            subtype="message_deleted",
            hidden=True,
            channel=message["channel"],
            channel_type=message["channel_type"],
            ts=self.server.next_ts(),
            deleted_ts=message["ts"],
            previous_message=message,
        )


@dataclass(frozen=True)
class Shown:
    """A message of the bot as it stands there. `text` is what is read, `raw` what was sent, `notified` who is called.

    With blocks `text` is what they say. `before` is what it said before each edit; `only_for` who sees it.
    """

    @dataclass(frozen=True)
    class File:
        name: str
        data: bytes

    channel: str
    text: str
    raw: str
    notified: tuple[str, ...]
    thread: str | None
    ts: str
    at: float
    file: File | None = None
    elements: tuple[Payload, ...] = ()  # the buttons
    before: tuple[str, ...] = ()
    only_for: str = ""

    @property
    def buttons(self) -> tuple[str, ...]:
        return tuple(one["text"]["text"] for one in self.elements)


@dataclass(frozen=True)
class Call:
    method: str
    parameters: Payload
    at: float


# --- faults ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refuse:
    """An answer other than "ok"; nothing is done. `fields` are more of the answer; no `error`: no JSON, a page."""

    error: str = ""
    status: int = 200
    retry_after: int | None = None
    fields: Payload = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    name: str


NONE = Fault("nothing goes wrong this time")
DROPPED = Fault("the connection is closed before anything is done")
LOST_ANSWER = Fault("it is done, and the connection is closed instead of an answer")
SILENCE = Fault("nothing is done, and no answer comes for as long as the server lives")
