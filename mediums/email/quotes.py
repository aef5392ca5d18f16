"""A mail's text: the person's new words, and below them what they quote, marked as quoted. Pure.

Cut only where everything that follows is a quote or a signature: who answers between the quoted lines is read whole.
"""

from mediums.email import clients

QUOTED = "[they quote an earlier mail:]"
QUOTE_LENGTH = 600  # of an earlier mail of the thread, which the conversation mostly knows
FORWARD_LENGTH = 8000  # of what somebody passes on to be read
SIGNATURE_LINES = 12
ATTRIBUTION_LINES = 3


def own_words(text: str, *, at_length: bool = False) -> str:
    """The new words; then, under a line that says what it is, the start of what they quote, each line behind `> `.
    `at_length` for what the conversation has not heard before."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    at, forwarded = _quote_starts(lines)
    own = "\n".join(_without_signature(lines[:at])).strip()
    below = "\n".join(_unmarked(line) for line in lines[at:]).strip()
    if not below:
        return own
    heading = "[forwarded with it:]" if forwarded else QUOTED
    if not (own or forwarded):
        heading = "[nothing new is in this mail but a quote:]"
    shown = quoted(heading, below, FORWARD_LENGTH if forwarded or at_length or not own else QUOTE_LENGTH)
    return f"{own}\n\n{shown}" if own else shown


def quoted(heading: str, text: str, length: int) -> str:
    """Somebody else's words: nothing inside them can end the quote."""
    cut = text if len(text) <= length else text[: length - 1].rstrip() + "…"
    return "\n".join([heading, *(f"> {line}".rstrip() for line in cut.splitlines())])


def _quote_starts(lines: list[str]) -> tuple[int, bool]:
    """Where the last part begins that is all quote, and whether it is something passed on."""
    last_quote, marked = _all_quote_from(lines), any(_is_marked(line) for line in lines)
    for at, line in enumerate(lines):
        if clients.FORWARDED.match(line):
            return at, True
        if clients.ORIGINAL.match(line) or clients.is_title(line) or _is_header_block(lines, at):
            return _with_what_stands_over_it(lines, at), False
        if _is_marked(line) and at >= last_quote:
            return _with_what_stands_over_it(lines, at), False
        if not marked and _begins(lines, at) and any(clients.stands_alone(one) for one in _joined(lines, at)):
            return at, False
    return len(lines), False


def _with_what_stands_over_it(lines: list[str], at: int) -> int:
    """A rule, a title, or whose words it is; mail programs break that over up to three lines."""
    end = at
    while end and (not lines[end - 1] or clients.RULE.match(lines[end - 1])):
        end -= 1
    starts = [n for n in range(max(end - ATTRIBUTION_LINES, 0), end) if all(lines[n:end])]
    told = {n: " ".join(lines[n:end]).strip() for n in starts}
    for is_it in (clients.WROTE.match, clients.stands_alone, clients.is_attribution):
        if found := [n for n in starts if is_it(told[n])]:
            return found[-1]
    return end if any(lines[end:at]) else at


def _begins(lines: list[str], at: int) -> bool:
    """A paragraph does."""
    return bool(lines[at]) and (not at or not lines[at - 1])


def _joined(lines: list[str], at: int) -> list[str]:
    counts = [count for count in range(1, ATTRIBUTION_LINES + 1) if all(lines[at : at + count])]
    return [" ".join(lines[at : at + count]).strip() for count in counts]


def _is_header_block(lines: list[str], at: int) -> bool:
    """As Outlook puts it over what it quotes: From, Sent, To, Subject. People write From, To and Date of journeys."""
    if not clients.HEADER_LINE.match(lines[at]):
        return False
    following = [line for line in lines[at + 1 : at + 6] if clients.NEXT_HEADER_LINE.match(line)]
    return len(following) >= 3 or (len(following) == 2 and any("@" in line for line in (lines[at], *following)))


def _is_marked(line: str) -> bool:
    return line.lstrip(" ").startswith(">")


def _all_quote_from(lines: list[str]) -> int:
    """The line from which on nothing of the person's own comes, save a signature."""
    end = len(_without_signature(lines))
    while end and (not lines[end - 1].strip() or _is_marked(lines[end - 1])):
        end -= 1
    return end


def _without_signature(lines: list[str]) -> list[str]:
    """A signature stands below `-- `, and is short: RFC 3676, section 4.3. (Ends of lines are stripped here.)"""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if end > 1 and clients.SENT_FROM.match(lines[end - 1]) and not lines[end - 2].strip():
        return _without_signature(lines[: end - 1])
    for at in range(len(lines) - 1, max(-1, len(lines) - SIGNATURE_LINES - 2), -1):
        if lines[at] == "--":
            return lines[:at]
    return lines


def _unmarked(line: str) -> str:
    return line.lstrip(" ")[1:].removeprefix(" ") if _is_marked(line) else line
