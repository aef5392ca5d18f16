"""Text that was sent as `format=flowed`, with its lines as they were written: https://www.rfc-editor.org/rfc/rfc3676"""

_SIGNATURE = "-- "


def unflowed(text: str, *, delsp: bool) -> str:
    """A line that ends with a space goes on in the next, if both are quoted as deep. With `delsp` that space is not of
    the text. An empty line ends it in any case."""
    lines: list[str] = []
    going_on = None  # how deep the line is quoted that goes on
    for line in text.splitlines():
        words = line.lstrip(">")
        depth = len(line) - len(words)
        words = words.removeprefix(" ")
        goes_on = words.endswith(" ") and words != _SIGNATURE
        shown = words[:-1] if goes_on and delsp else words
        if going_on == depth and words not in ("", _SIGNATURE):
            lines[-1] += shown
        else:
            lines.append(f"{'>' * depth} {shown}" if depth else shown)
        going_on = depth if goes_on else None
    return "\n".join(lines)
