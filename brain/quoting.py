"""How texts from outside stand in a prompt: indented, so that none can look like an event, and bounded. Pure."""

from collections.abc import Sequence

TEXT_SHOWN = 24_000
COMPARED = 4_000


def indented(text: str, characters: int = TEXT_SHOWN) -> str:
    """All lines but the first, whatever ends them; what is left out is said, with how much it is."""
    if len(text) > characters:
        text = f"{text[:characters]} [… {len(text) - characters:,} more characters are not shown]"
    return "\n  ".join(text.strip().splitlines())


def one_line(text: str) -> str:
    return " ".join(text.translate({ord("["): "(", ord("]"): ")"}).split())


def shortened(text: str, characters: int) -> str:
    line = one_line(text)
    return line if len(line) <= characters else line[: characters - 1] + "…"


def told_apart(texts: Sequence[str], characters: int) -> list[str]:
    """Each shortened; where two begin alike, the place where they differ is among what is kept."""
    lines = [one_line(text[:COMPARED]) for text in texts]
    return [_apart(line, lines, characters) for line in lines]


def _apart(line: str, lines: Sequence[str], characters: int) -> str:
    half = characters // 2
    near = [other for other in lines if other != line and other[: characters - 1] == line[: characters - 1]]
    if len(line) <= characters or not near:
        return shortened(line, characters)
    alike = max(_differ_at(line, other) for other in near)
    begin = max(half, alike - half // 2)
    return f"{line[: half - 3]} … {shortened(line[begin:], half)}"


def _differ_at(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
