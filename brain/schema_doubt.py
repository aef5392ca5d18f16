"""Whether a model that answers by schema was sure which of several pieces of work is meant: by how likely the name was
that it wrote, among those that it could have written. A small model rarely says that it cannot tell; its probabilities
do. Pure.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence

from gateway.llm.model import Generation, Token

SURE = 0.87  # measured: a name that is meant has 0.89 and more, one of two that could be meant 0.86 and less

_WORK = re.compile(r'"work"\s*:\s*"((?:[^"\\]|\\.)*)"')


def chances(generation: Generation, possible: Sequence[Collection[str]]) -> list[float]:
    """Of each work that the answer names, in their order, among the `possible` ones there; 1.0 where the server did not
    tell."""
    tokens = generation.tokens
    text = "".join(token.token for token in tokens)
    if text.strip() != generation.text.strip():
        return [1.0 for _ in possible]
    named = _WORK.finditer(text)
    return [_chance(tokens, text, found, names) for found, names in zip(named, possible, strict=True)]


def _chance(tokens: Sequence[Token], text: str, named: re.Match[str], possible: Iterable[str]) -> float:
    """Token by token: of what can be written there, how much leads to this name. A name has several spellings in
    tokens, and what no answer can begin with is likely too: neither is doubt."""
    before = text[: named.start(1)]
    this, all_of_them = before + named[1] + '"', [f'{before}{name}"' for name in possible]
    chance, place = 1.0, 0
    for token in tokens:
        if len(before) < place + len(token.token) and place < len(this):
            written, other = text[:place], {one.token: one.logprob for one in token.top_logprobs or ()}
            likely = {**other, token.token: token.logprob}
            wanted = _mass(likely, written, [this])
            chance *= wanted / _mass(likely, written, all_of_them) if other else wanted
        place += len(token.token)
    return chance


def _mass(likely: dict[str, float], written: str, texts: Collection[str]) -> float:
    """Of the tokens after which it can still become one of the texts."""
    return sum(math.exp(logprob) for token, logprob in likely.items() if _leads(written + token, texts))


def _leads(so_far: str, texts: Collection[str]) -> bool:
    return any(text.startswith(so_far) or so_far.startswith(text) for text in texts)
