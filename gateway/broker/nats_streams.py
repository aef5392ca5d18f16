"""The streams: how they must be set up. Made at start where they are missing; a wrong one is refused with the mend.

One stream for each family of subjects. Nothing that was acknowledged is ever dropped: no age, no bound on number or
size, and a full disk refuses the new (the default, `discard=old`, would drop what it has acknowledged).
"""

from collections.abc import Mapping
from typing import Any

from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from gateway.broker.nats_calls import ask
from gateway.broker.protocol import MAX_ENTRY_BYTES, BrokerUnusable

FAMILIES = ("log", "cmd", "evt")
HEADER_BYTES = 1024  # max_msg_size counts the headers too
BLOB_BYTES = 128 * 1024  # one piece of a blob

# What must be so in every stream: the value, and the flag of `nats stream edit` (none: it cannot be changed).
_MUST: Mapping[str, tuple[Any, str]] = {
    "storage": (StorageType.FILE, ""),
    "retention": (RetentionPolicy.LIMITS, ""),
    "discard": (DiscardPolicy.NEW, "--discard=new"),
    "max_age": (0, "--max-age=0"),
    "max_msgs": (-1, "--max-msgs=-1"),
    "max_bytes": (-1, "--max-bytes=-1"),
    "sealed": (False, ""),
    "no_ack": (False, "--ack"),
    "deny_purge": (False, ""),
}


def journals(prefix: str, family: str) -> StreamConfig:
    return _stream(f"{prefix}-{family}", [f"{prefix}.{family}.>"], max_msg_size=MAX_ENTRY_BYTES + HEADER_BYTES)


def leases(prefix: str) -> StreamConfig:
    """A key-value bucket, as `nats kv` shows it. No limit markers: they hold up whoever takes over."""
    return _stream(
        f"KV_{prefix}-leases",
        [f"$KV.{prefix}-leases.>"],
        max_msgs_per_subject=1,
        allow_msg_ttl=True,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )


def blobs(prefix: str) -> StreamConfig:
    """An object store, as `nats object` shows it."""
    return _stream(f"OBJ_{prefix}-blobs", [f"$O.{prefix}-blobs.C.>", f"$O.{prefix}-blobs.M.>"], allow_rollup_hdrs=True)


def _stream(name: str, subjects: list[str], **more: Any) -> StreamConfig:
    must = {key: value for key, (value, _) in _MUST.items()}
    return StreamConfig(name=name, subjects=subjects, **must, **more)


async def prepare(js: JetStreamContext, wanted: StreamConfig) -> None:
    """Raises BrokerUnusable, or Unconfirmed."""
    name = wanted.name or ""
    try:
        stored = (await ask(js.stream_info(name), name)).config
    except NotFoundError:
        try:
            stored = (await ask(js.add_stream(wanted), name)).config
        except APIError as error:
            raise BrokerUnusable(f"the stream {name} cannot be made: {error.description}") from error
    if wrong := _wrong(stored, wanted):
        raise BrokerUnusable(f"the stream {name} could lose or refuse what is stored in it: {'; '.join(wrong)}.")


def _wrong(stored: StreamConfig, wanted: StreamConfig) -> list[str]:
    """Each with its mend. What is looser or stricter than needed, and harmless, may stay: replicas, compression."""
    name = wanted.name
    found = []
    for key, (value, flag) in _MUST.items():
        if (has := getattr(stored, key)) not in (value, None):
            mend = f"nats stream edit {name} {flag}" if flag else f"remove it (nats stream rm {name}) and start again"
            found.append(f"{key} is {_shown(has)} and must be {_shown(value)}: {mend}")
    if set(wanted.subjects or ()) - set(stored.subjects or ()):
        subjects = " ".join(f"--subjects='{subject}'" for subject in wanted.subjects or ())
        found.append(f"its subjects are {stored.subjects}: nats stream edit {name} {subjects}")
    if 0 < (stored.max_msg_size or -1) < (wanted.max_msg_size or 0):
        flag = f"--max-msg-size={wanted.max_msg_size}"
        found.append(f"max_msg_size is {stored.max_msg_size}: nats stream edit {name} {flag}")
    if stored.max_msgs_per_subject != wanted.max_msgs_per_subject:
        flag = f"--max-msgs-per-subject={wanted.max_msgs_per_subject}"
        found.append(f"max_msgs_per_subject is {stored.max_msgs_per_subject}: nats stream edit {name} {flag}")
    if wanted.allow_msg_ttl and not stored.allow_msg_ttl:
        found.append(f"it keeps no time to live: nats stream edit {name} --allow-msg-ttl")
    return found


def _shown(value: Any) -> str:
    return str(value.value if hasattr(value, "value") else value).lower()
