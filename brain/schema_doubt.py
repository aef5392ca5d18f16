"""Whether a model that answers by schema was sure of the kind of a message, and which of several pieces of work is
meant: by how likely the tokens were that it wrote. A small model rarely says that it cannot tell; its probabilities do.
Pure.
"""

import math
import re
from collections.abc import Sequence

from gateway.llm.model import Generation, Token

SURE = 0.7  # measured: of 12 names below it, 7 could as well have been another; of 54 above it, 5
SURE_OF_KIND = {"nothing": 0.4, "unclear": 0.5, "new work": 0.5}  # measured: of silences below 0.4 none of 3 was right,
# above it 11 of 12. Others are seldom wrong; and a halt is never doubted: it is undone by a word, what goes on is not.

_VALUE = r'"{}"\s*:\s*"((?:[^"\\]|\\.)*)'


def chances(generation: Generation, key: str) -> list[float]:
    """Of each `kind`, or `work`, that the answer names, in their order; 1.0 where the server did not tell."""
    what = re.compile(_VALUE.replace("{}", key))
    tokens = generation.tokens
    text = "".join(token.token for token in tokens)
    if text.strip() != generation.text.strip():
        return [1.0 for _ in what.finditer(generation.text)]
    return [_chance(tokens, *found.span(1)) for found in what.finditer(text)]


def _chance(tokens: Sequence[Token], start: int, end: int) -> float:
    """Of the tokens that begin there: what ends the name can be one token with what follows, and is no choice."""
    place, total = 0, 0.0
    for token in tokens:
        if start <= place < end or place < start < place + len(token.token):
            total += token.logprob
        place += len(token.token)
    return math.exp(total)
