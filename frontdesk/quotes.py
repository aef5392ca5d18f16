"""A person's words as they may stand in what others wrote: quoted whole, in part, or with other spacing. Pure.

Compared are words, without case and punctuation. A quote is a run of LONG words that the person also wrote in that
order; a whole line or sentence of theirs of SHORT words or more; or one word that names something (a number, an
address, a code), unless somebody else had used it before them. What was only retold in other words is not found.
"""

import re
from collections.abc import Iterable, Iterator

LONG, SHORT = 6, 4
SHORT_CHARACTERS = 20
QUOTED = "(erased)"
_WORD = re.compile(r"\w(?:[\w@.+\-]*\w)?")
_END = re.compile(r"[.!?;:]\s|[\n\r]+")


class Quotes:
    def __init__(self) -> None:
        self._phrases: set[tuple[str, ...]] = set()
        self._others: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._phrases)

    def add(self, text: str) -> None:
        """Theirs. In the order in which it was said, among what others said."""
        for part in (text, *_END.split(text)):
            words = _words(part)
            if len(words) >= SHORT and len(part) >= SHORT_CHARACTERS:
                self._phrases.add(tuple(words)) if len(words) < LONG else None
        words = _words(text)
        self._phrases |= {tuple(words[at : at + LONG]) for at in range(len(words) - LONG + 1)}
        self._phrases |= {(word,) for word in words if names(word) and word not in self._others}

    def add_other(self, text: str) -> None:
        """What somebody else said."""
        self._others |= {word for word in _words(text) if names(word) and (word,) not in self._phrases}

    def without(self, text: str) -> str:
        """The same, with what is quoted in it blanked."""
        found = list(_WORD.finditer(text))
        words = [_plain(one[0]) for one in found]
        spans = [
            (found[at].start(), found[at + length - 1].end())
            for length in range(1, LONG + 1)
            for at in range(len(words) - length + 1)
            if tuple(words[at : at + length]) in self._phrases
        ]
        for begin, end in reversed([*_merged(sorted(spans), text)]):
            text = f"{text[:begin]}{QUOTED}{text[end:]}"
        return text


def names(word: str) -> bool:
    """Whether it stands for one thing alone: an address, or a code or number longer than a year or a day."""
    digits = sum(letter.isdigit() for letter in word)
    if "@" in word or (digits == len(word) and digits >= 5):
        return True
    return len(word) >= 6 and digits >= 3 and digits < len(word) and not re.fullmatch(r"[\d.\-+]{,10}", word)


def _merged(spans: list[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    """Those that overlap, or have nothing readable between them, are one."""
    open_span: tuple[int, int] | None = None
    for begin, end in spans:
        if open_span is None:
            open_span = (begin, end)
        elif begin <= open_span[1] or not _WORD.search(text[open_span[1] : begin]):
            open_span = (open_span[0], max(end, open_span[1]))
        else:
            yield open_span
            open_span = (begin, end)
    if open_span is not None:
        yield open_span


def _words(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text)]


def _plain(word: str) -> str:
    return word.casefold()


def quotes_of(said: Iterable[tuple[bool, str]]) -> Quotes:
    """`said` is what people said, in its order: whether it is theirs, and the text."""
    quotes = Quotes()
    for theirs, text in said:
        (quotes.add if theirs else quotes.add_other)(text)
    return quotes
