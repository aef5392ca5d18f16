"""Where text may be cut without tearing what a person sees as one character. Pure.

Not the whole of Unicode's annex 29 (https://www.unicode.org/reports/tr29/): marks, joiners, skin tones, flags, tags and
Hangul, which is what chat contains.
"""

import unicodedata

ZERO_WIDTH_JOINER = "\u200d"
LONGEST = 64  # code points; a longer pile of marks is cut


def cut_at_or_before(text: str, position: int) -> int:
    """The nearest whole-character boundary; `position` itself when a character is longer than LONGEST."""
    for at in range(position, max(position - LONGEST, 0), -1):
        if not _joined(text, at):
            return at
    return position


def _joined(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before == ZERO_WIDTH_JOINER or _extends(after) or (before, after) == ("\r", "\n"):
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, at) % 2 == 1
    return "\u1100" <= before <= "\u11ff" and "\u1100" <= after <= "\u11ff"


def _extends(character: str) -> bool:
    return (
        character == ZERO_WIDTH_JOINER
        or unicodedata.category(character) in ("Mn", "Me", "Mc")  # variation selectors too
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int) -> int:
    start = at
    while start > 0 and at - start < LONGEST and _is_flag_letter(text[start - 1]):
        start -= 1
    return at - start
