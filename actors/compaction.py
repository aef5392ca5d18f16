"""When a transcript has become long: its older part is replaced by a summary that the model writes itself.

What people said to it stays word by word (`Transcript` keeps it), and so do open questions. The summary is made in a
side call that extends the loop's last request, so the provider's cache serves it. Pure but for that call.
"""

from actors.entries import Compacted
from actors.transcript import Transcript
from gateway.llm.history import estimated_tokens, shortened
from gateway.llm.model import Message

KEEP_SHARE = 0.25  # of the bound, at the end of the transcript, stays as it is
SUMMARY_CHARACTERS = 12_000
AGAIN_SHARE = 1.25  # after a summary that could not be made: not before the transcript is so much longer
ASKED = """\
Your transcript has become long. Write a summary that replaces it for you, but for its last part and what people said \
to you, which stay word by word. Keep: what was found, with the exact figures, names, paths and ids; what was done to \
the world outside; which variables and files there are and what is in them; every answer that a person gave, word by \
word; what failed, and why; what is left to do. No call; the summary alone."""


def due(transcript: Transcript, tokens_max: int) -> bool:
    return size(transcript.messages) > tokens_max


def size(messages: list[Message]) -> int:
    return sum(estimated_tokens(message) for message in messages)


def through(messages: list[Message], tokens_max: int) -> int:
    """How many of the messages go. A call stays with its results; 0 when there is nothing worth it."""
    left = int(tokens_max * KEEP_SHARE)
    place = len(messages)
    while place > 1 and (left := left - estimated_tokens(messages[place - 1])) > 0:
        place -= 1
    while place < len(messages) and messages[place]["role"] == "tool":
        place += 1
    return place if place > 2 else 0


def compacted(summary: str, messages: list[Message], tokens_max: int) -> Compacted | None:
    """The entry; None when nothing would be won."""
    count = through(messages, tokens_max)
    if not summary.strip() or not count:
        return None
    return Compacted(summary=shortened(summary.strip(), SUMMARY_CHARACTERS), through=count)
