"""The actor's tools: one fixed list for its whole life, because a list that changes throws the provider's cache away.

What is not legal now gets a result that says so.
"""

from collections.abc import Mapping
from typing import Any

from gateway.llm.model import Tool


def _tool(tool: str, about: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    parameters = {
        "type": "object",
        "properties": {key: kind if isinstance(kind, dict) else {"type": kind} for key, kind in properties.items()},
        "required": list(required),
    }
    return {"type": "function", "function": {"name": tool, "description": about, "parameters": parameters}}


TOOLS: list[Tool] = [
    _tool(
        "execute_code",
        "Run Python. A clean slate each time; with stateful=true in the one session that keeps its variables.",
        ("code",),
        code="string",
        stateful="boolean",
    ),
    _tool("continue_code", "Go on waiting for code that still runs.", ("cell",), cell="string", seconds="number"),
    _tool("interrupt_code", "Interrupt code that still runs.", ("cell",), cell="string"),
    _tool("notify", "Tell the person about progress worth knowing.", ("text",), text="string"),
    _tool(
        "request_clarification",
        "Ask the person; only this call waits for the answer. default: what counts if nobody answers within so many "
        "hours.",
        ("question",),
        question="string",
        options={"type": "array", "items": {"type": "string"}},
        default="string",
        hours="number",
    ),
    _tool(
        "act",
        "Give a part of the work to a worker of its own; its response is the result.",
        ("query",),
        query="string",
        name="string",
    ),
    _tool(
        "steer",
        "Steer a worker that you started: interject, ask, pause, resume or stop. One that has ended can be asked.",
        ("action", "verb"),
        action="string",
        verb={"type": "string", "enum": ["interject", "ask", "pause", "resume", "stop"]},
        text="string",
    ),
    _tool("respond", "Give the response to the task. Plain text does the same.", ("text",), text="string"),
]

NAMES = frozenset(tool["function"]["name"] for tool in TOOLS)
_PARAMETERS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a text", (str,)),
    "boolean": ("true or false", (bool,)),
    "number": ("a number", (int, float)),
    "array": ("a list of texts", (list,)),
}


def flaw(name: str, arguments: Mapping[str, Any]) -> str:
    """Why a tool of that name cannot be run with these; "" if it can."""
    parameters = _PARAMETERS[name]
    for key in parameters["required"]:
        if (value := arguments.get(key)) is None or (isinstance(value, str) and not value.strip()):
            return f"{key} is missing"
    for key, value in arguments.items():
        if key in parameters["properties"] and value is not None:
            said, kinds = _KINDS[parameters["properties"][key]["type"]]
            fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
            if not fits or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
                return f"{key} must be {said}"
    return ""
