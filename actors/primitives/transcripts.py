"""`primitives.transcripts`: what was said, as far as the person whose work this is takes part in it."""

from typing import Any

from actors.workshop import Caller, Primitive, PrimitiveError
from gateway.history import History

LIMIT_MAX = 100
TEXT_CHARACTERS = 1_000


def search(history: History) -> Primitive:
    async def run(caller: Caller, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        words, limit = arguments.get("words", ""), arguments.get("limit", 20)
        if not isinstance(words, str) or not isinstance(limit, int):
            raise PrimitiveError("words is a text, limit a whole number")
        lines = await history.search(caller.by, caller.conversation, words, limit=max(1, min(limit, LIMIT_MAX)))
        return [
            {
                "at": line.at.isoformat(timespec="minutes"),
                "author": line.author,
                "text": line.text[:TEXT_CHARACTERS],
                "medium": line.medium,
                "place": line.place,
            }
            for line in lines
        ]

    return Primitive(
        signature='transcripts.search(words: str = "", limit: int = 20) -> list[dict]',
        doc='The newest things said that have all these words: [{"at", "author", "text", "medium", "place"}].',
        run=run,
        effect=False,
    )
