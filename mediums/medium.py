"""What every medium is to the rest: facts in, messages out, and an honest word about its health.

A medium publishes a fact durably before it confirms it to its platform, and says of each send exactly one of three
things: it was done (returns), it surely was not (SurelyNotSent, Rejected), or nobody knows (OutcomeUnknown).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from gateway.addresses import Route
from gateway.cards import Card
from gateway.events import MediumFact, PlaceMoved
from gateway.files import Keep
from gateway.live import LiveSignal
from gateway.outbox import CameBack, Carried, OutcomeUnknown, Rejected, SurelyNotSent
from gateway.record import Record

Told = MediumFact | PlaceMoved | CameBack
Publish = Callable[[Told], Awaitable[None]]


class Health(Record, frozen=True, kw_only=True):
    """`well` means that events flow, not that a socket is open. `text` says what is wrong and what mends it."""

    well: bool
    text: str = ""


class Medium(Protocol):
    @property
    def name(self) -> str:
        """As in routes and addresses: `telegram`."""

    @property
    def account(self) -> str:
        """The assistant's own account, one subject token: `telegram-8123`. Known before any connection."""

    @property
    def repeatable(self) -> bool:
        """True when sending again with the same `key` shows it once: then an unknown end is simply tried again."""

    @property
    def may_come_back(self) -> bool:
        """True where what was handed over may turn out later not to have arrived: then CameBack is published."""

    @property
    def files_with_text(self) -> bool:
        """True when files go in the message itself, as in a mail; else each is a message after the text."""

    async def receive(self, publish: Publish, keep: Keep) -> None:
        """For ever. `publish` returns when the fact is durable; only then the platform is told. `keep` stores the
        bytes of a file, before the fact that names them. Survives its platform's failures by itself, with back-off;
        raises only what a restart of the role may mend."""

    def split(self, text: str) -> tuple[str, ...]:
        """The model's Markdown in parts that each fit one message of this platform, none empty. Pure."""

    async def send(self, route: Route, text: str, key: str) -> None:
        """One part. Raises SurelyNotSent (try again later), Rejected (never will be) or OutcomeUnknown."""

    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None:
        """One part with files, with `text` where `files_with_text`. Raises as `send`."""

    async def react(self, route: Route, emoji: str, key: str) -> None:
        """To the message that the route answers. Raises as `send`, Rejected where the platform has no such thing."""

    async def show_card(self, route: Route, card: Card, message: str | None) -> str:
        """A status card, or with `message` an edit of the one with that id. Answers with its id. Raises as `send` does:
        Rejected where the medium has no cards, or the message is gone. An edit can be repeated."""

    async def show(self, signal: LiveSignal) -> None:
        """Typing and other live things, as far as the platform can. Raises nothing; never waits long."""

    def health(self) -> Health: ...


__all__ = [
    "CameBack",
    "Carried",
    "Health",
    "Keep",
    "Medium",
    "OutcomeUnknown",
    "Publish",
    "Rejected",
    "SurelyNotSent",
    "Told",
]
