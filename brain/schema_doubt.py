"""Whether a model that answers by schema was sure which of several pieces of work is meant: by how likely the tokens
of the name were that it wrote. A small model rarely says that it cannot tell; its probabilities do. Pure.
"""

import math
import re
from collections.abc import Sequence

from gateway.llm.model import Generation, Token

SURE = 0.7  # measured: of 12 names below it, 7 could as well have been another; of 54 above it, 5

_WORK = re.compile(r'"work"\s*:\s*"((?:[^"\\]|\\.)*)')


def chances(generation: Generation) -> list[float]:
    """Of each work that the answer names, in their order; 1.0 where the server did not tell."""
    tokens = generation.tokens
    text = "".join(token.token for token in tokens)
    if text.strip() != generation.text.strip():
        return [1.0 for _ in _WORK.finditer(generation.text)]
    return [_chance(tokens, *found.span(1)) for found in _WORK.finditer(text)]


def _chance(tokens: Sequence[Token], start: int, end: int) -> float:
    """Of the tokens that begin there: what ends the name can be one token with what follows, and is no choice."""
    place, total = 0, 0.0
    for token in tokens:
        if start <= place < end or place < start < place + len(token.token):
            total += token.logprob
        place += len(token.token)
    return math.exp(total)
