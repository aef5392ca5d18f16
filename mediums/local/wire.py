"""What the page, the terminal and the room say to each other: JSON frames, and the facts that are made of them. Pure.

A frame is one WebSocket text message with its kind under "type". Whoever connects says hello first, with the last
position it knows; from then on the room tells it everything after that, in order. No socket and no HTTP enter here.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from gateway.addresses import Address, Route
from gateway.events import ControlPressed, MessageReceived, Person
from gateway.files import FILES_MAX, Attachment, attachment
from gateway.live import ActionShown
from gateway.record import Record, Undecodable, decode, encode, whole_text

ACCOUNT, PLACE, USER = "local", "home", "owner"
MAX_TEXT = 32_000  # characters; six bytes each at worst, so that every entry made of it stays under the broker's limit
MAX_FRAME_BYTES = 256 * 1024
_SAID = f"{ACCOUNT}/message/"

Where = Literal["web", "terminal"]
PressVerb = Literal["ask", "pause", "resume", "stop", "answer"]
LookAt = Literal["trace", "code", "actions", "people"]

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Short = Annotated[str, msgspec.Meta(max_length=200)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class Frame(Record, frozen=True, kw_only=True, omit_defaults=False, tag=str.lower, tag_field="type"):
    """One message on the socket."""


# --- from a client ---------------------------------------------------------------------------------------------------


class Enter(Frame, frozen=True, kw_only=True, tag="hello"):
    """The first frame. `after` is the last position known, 0 for none; what lies after it is told at once."""

    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    medium: Where = "web"


class Upload(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A file that the room has taken; its bytes are at /files/<digest>."""

    digest: Digest
    name: Short
    kind: Short
    size: Annotated[int, msgspec.Meta(ge=0)]


class Say(Frame, frozen=True, kw_only=True):
    """`id` is the client's own and stays the same when it is said again: then it is one message."""

    id: Id
    text: Text
    files: Annotated[tuple[Upload, ...], msgspec.Meta(max_length=FILES_MAX)] = ()


class Press(Frame, frozen=True, kw_only=True):
    """A button of the panel. `action` and `question` are the references under which they were shown."""

    id: Id
    verb: PressVerb
    action: Short
    question: Short = ""
    text: Text = ""


class Look(Frame, frozen=True, kw_only=True):
    """Asks for a local note; nothing of it enters the conversation. `about` may be empty: the newest."""

    id: Id
    what: LookAt
    about: Short = ""


ClientFrame = Enter | Say | Press | Look


# --- to a client -----------------------------------------------------------------------------------------------------


class Hello(Frame, frozen=True, kw_only=True):
    """The answer to `Enter`. A `newest` below what the client knew means another room: forget what was shown."""

    assistant: str
    person: str
    banner: tuple[str, ...]
    newest: int


class Post(Frame, frozen=True, kw_only=True):
    """`html` is safe, and only given to the page and for the assistant; `pressed` says which button made the post."""

    position: int
    id: str
    author: Literal["you", "assistant"]
    name: str
    medium: str
    text: str
    html: str
    at: datetime
    reply_to: str = ""
    pressed: str = ""
    files: tuple[Upload, ...] = ()


class Decided(Frame, frozen=True, kw_only=True):
    """A turn covered these posts. Without a reply, `silence` is its reason, or `passed_on` what was done instead."""

    position: int
    ids: tuple[str, ...]
    silence: str = ""
    passed_on: str = ""


class Accepted(Frame, frozen=True, kw_only=True):
    """It is durable: the client may forget it. `position` is where it was posted."""

    id: str
    position: int


class Refused(Frame, frozen=True, kw_only=True):
    """It will not be taken, now or later. `id` is empty when the frame had none."""

    id: str
    why: str


class Typing(Frame, frozen=True, kw_only=True):
    on: bool
    medium: str = ""


class Actions(Frame, frozen=True, kw_only=True):
    """All that is in flight."""

    actions: tuple[ActionShown, ...]


class Looked(Frame, frozen=True, kw_only=True):
    id: str
    text: str
    html: str


ServerFrame = Hello | Post | Decided | Accepted | Refused | Typing | Actions | Looked


# --- bytes -----------------------------------------------------------------------------------------------------------


class Malformed(Exception):
    """A frame that cannot be taken. `id` is the client's id of it where one could be read."""

    def __init__(self, frame_id: str, why: str) -> None:
        super().__init__(why)
        self.id = frame_id


class _Named(Record, frozen=True, kw_only=True):
    id: Id = ""


def read_client(data: str | bytes) -> ClientFrame:
    """Raises Malformed."""
    frame: ClientFrame = _read(data, ClientFrame)
    return frame


def read_server(data: str | bytes) -> ServerFrame:
    """Raises Malformed."""
    frame: ServerFrame = _read(data, ServerFrame)
    return frame


def write(frame: ClientFrame | ServerFrame) -> str:
    return encode(frame).decode()


def _read(data: str | bytes, kind: Any) -> Any:
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    try:
        return decode(raw, kind)
    except Undecodable as error:
        raise Malformed(_id_of(raw), f"this cannot be read: {str(error).partition(': b')[0]}") from error


def _id_of(raw: bytes) -> str:
    try:
        named: _Named = decode(raw, _Named)
    except Undecodable:
        return ""
    return named.id


# --- facts -----------------------------------------------------------------------------------------------------------


def route(medium: Where) -> Route:
    return Route(medium=medium, account=ACCOUNT, place=PLACE)


def person_at(medium: Where, name: str) -> Person:
    """The one person who has the token: whoever that is, is the owner."""
    return Person(address=Address(medium=medium, user=USER), name=name)


def uploaded(file: Attachment) -> Upload:
    return Upload(digest=file.digest, name=file.name, kind=file.kind, size=file.size)


def attached(upload: Upload) -> Attachment:
    return attachment(upload.name, upload.kind, upload.size, upload.digest)


def message(say: Say, medium: Where, name: str, at: datetime) -> MessageReceived:
    return MessageReceived(
        identity=f"{_SAID}{say.id}/0",
        route=route(medium),
        author=person_at(medium, name),
        text=whole_text(say.text),
        at=at,
        files=tuple(attached(one) for one in say.files),
    )


def control(press: Press, medium: Where, name: str, at: datetime) -> ControlPressed:
    return ControlPressed(
        identity=f"{ACCOUNT}/press/{press.id}/0",
        route=route(medium),
        author=person_at(medium, name),
        at=at,
        verb=press.verb,
        action=press.action,
        text=whole_text(press.text),
        question=press.question,
    )


def said_ids(identities: Iterable[str]) -> tuple[str, ...]:
    """The posts among what a turn covered: its identities are turned back into the clients' ids, in order."""
    return tuple(one.removeprefix(_SAID).rpartition("/")[0] for one in identities if one.startswith(_SAID))
