"""Where people are, and where a message goes. No contact, no policy, no platform payload."""

import re

from gateway.record import Record

UNVERIFIED = "UNVERIFIED"  # before the user of an address that anybody could have written from
_KEY = re.compile(r"[^A-Za-z0-9_-]")


class Address(Record, frozen=True, kw_only=True):
    """One person's identity on one medium. `user` is the platform's own id, always text: `42`, `T1/U7`."""

    medium: str
    user: str

    def __str__(self) -> str:
        return f"{self.medium}:{self.user}"

    @property
    def vouched(self) -> bool:
        """False where the medium could not tell whether they are who they say."""
        return not self.user.startswith(f"{UNVERIFIED}:")

    @classmethod
    def parse(cls, text: str) -> "Address":
        """`medium:user`. Raises ValueError."""
        medium, colon, user = text.strip().partition(":")
        if not (colon and medium.isalnum() and user):
            raise ValueError(f"{text!r} is no address: write medium:user, as in telegram:42 or email:ana@example.org")
        return cls(medium=medium.lower(), user=user.casefold() if medium.lower() == "email" else user)


class Route(Record, frozen=True, kw_only=True):
    """Where a message goes, fixed when it is decided. `account` is the assistant's own: who holds it sends it.

    `place` is the room (a chat, a channel, a mail thread), `thread` a thread or topic in it, `reply_to` the platform's
    id of the message that is answered. All are text, byte for byte what the platform gave.
    """

    medium: str
    account: str
    place: str
    thread: str | None = None
    reply_to: str | None = None

    @property
    def room(self) -> tuple[str, str, str | None]:
        """What keeps order: messages to one room leave one after the other."""
        return (self.account, self.place, self.thread)

    @property
    def afresh(self) -> "Route":
        """Where `reply_to` is an answer by mail (RFC 6068): a mail of its own, in no thread."""
        if not (self.reply_to or "").startswith("mailto:"):
            return self
        return Route(medium=self.medium, account=self.account, place=str(self.reply_to).partition("?")[0])


def journal_key(text: str) -> str:
    """One subject token from any text: what is not a letter, digit, dash or underscore becomes its code."""
    return _KEY.sub(lambda found: f"_{ord(found.group()):x}", text)
