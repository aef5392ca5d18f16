"""How texts from outside stand in a prompt: indented, so that none can look like an event, and bounded. Pure."""

TEXT_SHOWN = 24_000


def indented(text: str, characters: int = TEXT_SHOWN) -> str:
    """All lines but the first; what is left out is said, with how much it is."""
    if len(text) > characters:
        text = f"{text[:characters]} [… {len(text) - characters:,} more characters are not shown]"
    return text.strip().replace("\n", "\n  ")


def one_line(text: str) -> str:
    return " ".join(text.replace("]", ")").split())


def shortened(text: str, characters: int) -> str:
    line = one_line(text)
    return line if len(line) <= characters else line[: characters - 1] + "…"
