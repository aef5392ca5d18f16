"""How the rules answer: a text, or calls. Nothing is decided here."""

from typing import Any

from gateway.llm.model import Generation, RawCall
from gateway.record import encode


def say(text: str) -> Generation:
    return Generation(text=text, finish="stop", model="rehearsal")


def call(tool: str, **arguments: Any) -> RawCall:
    return RawCall(name=tool, arguments=encode(arguments).decode())


def calls(*made: RawCall, text: str = "") -> Generation:
    return Generation(text=text, calls=made, finish="tool_calls", model="rehearsal")
