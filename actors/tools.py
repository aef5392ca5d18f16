"""The actor's tools: one fixed list for its whole life, because a list that changes throws the provider's cache away.

What is not legal now gets a result that says so.
"""

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
