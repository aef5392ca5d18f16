"""What an action must do next, from its transcript: one function decides. Pure."""

from actors.entries import Call
from actors.transcript import Transcript
from gateway.record import Record

LEAVES_OTHERS_FREE = {"act", "request_clarification", "steer"}  # calls that need not wait for each other


class Generate(Record, frozen=True):
    pass


class StartCall(Record, frozen=True, kw_only=False):
    call: Call


class Respond(Record, frozen=True, kw_only=False):
    text: str


class Rest(Record, frozen=True):
    """Wait until something happens."""


class End(Record, frozen=True):
    pass


def next_step(t: Transcript) -> Generate | StartCall | Respond | Rest | End:
    if t.ended:
        return End()
    if t.paused:
        return Rest()
    for call in t.open.values():
        if call.id not in t.waits:
            return StartCall(call)
        if call.name not in LEAVES_OTHERS_FREE:
            break
    if t.open or t.responded or not t.messages or any(job.bound for job in t.jobs.values()):
        return Rest()
    if t.draft is not None:  # with work still open, text is a remark, not the response
        return Rest() if t.jobs else Respond(t.draft)
    return Generate()
