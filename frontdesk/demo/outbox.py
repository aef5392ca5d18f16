"""The demo's mail: written to a file, one JSON object a line. Nothing leaves the machine."""

import json
import os
from pathlib import Path
from typing import Any

from actors.workshop import Caller, Primitive, PrimitiveError

NAME = "outbox.jsonl"


def mail(path: Path) -> Primitive:
    async def run(caller: Caller, arguments: dict[str, Any]) -> str:
        letter = {key: arguments.get(key) for key in ("to", "subject", "text")}
        if not all(isinstance(value, str) and value.strip() for value in letter.values()):
            raise PrimitiveError("to, subject and text must be texts that are not empty")
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(letter, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return f"In the demo's outbox: a mail to {letter['to']}."

    return Primitive(
        signature="mail.send(to: str, subject: str, text: str) -> str", doc="Send a mail.", run=run, effect=True
    )


def letters(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
