"""A mail's text: the person's new words, and below them what they quote, marked as quoted. Pure.

Cut only where everything that follows is a quote or a signature: who answers between the quoted lines is read whole.
"""

import re

QUOTED = "[they quote an earlier mail:]"
QUOTE_LENGTH = 600  # of an earlier mail of the thread, which the conversation mostly knows
FORWARD_LENGTH = 8000  # of what somebody passes on to be read
SIGNATURE_LINES = 12
ATTRIBUTION_LINES = 3

# "On Tue, 6 Jan 2026 at 10:00, Ana <ana@example.org> wrote:", in the languages whose mail programs are common
_WROTE = re.compile(
    r"^(on|am|le|el|il|em|op|den|dne|w dniu)\b.{4,250}\b"
    r"(wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|napsal\(?a?\)?|napisał\(?a?\)?)\b.{0,120}:$",
    re.IGNORECASE | re.DOTALL,
)
_ORIGINAL = re.compile(
    r"^\s*(-{2,}|_{2,})\s*(original message|ursprüngliche nachricht|message d'origine|mensaje original|"
    r"messaggio originale|oorspronkelijk bericht)\s*(-{2,}|_{2,})\s*$",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"^\s*(-{2,}\s*(forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|"
    r"messaggio inoltrato|doorgestuurd bericht)\s*-{2,}|begin forwarded message:|"
    r"anfang der weitergeleiteten nachricht:)"
    r"\s*$",
    re.IGNORECASE,
)
_HEADER_LINE = re.compile(r"^\*?(from|von|de|da|van|från|fra)\s*:\*?\s+\S", re.IGNORECASE)
_NEXT_HEADER_LINE = re.compile(
    r"^\*?(sent|date|gesendet|datum|envoyé|enviado|inviato|verzonden|skickat|to|an|à|para|subject|betreff|objet|asunto)"
    r"\s*:\*?\s+\S",
    re.IGNORECASE,
)


# What telephones put below each mail, without a line of dashes: known by how it begins and what it names.
_SENT_FROM = re.compile(
    r"^(sent (from|with|via|using)|gesendet (von|mit)|von mein\w+|envoyé (de|depuis|à partir de)|enviado (desde|do|de)|"
    r"inviato da|verzonden (vanaf|met|via)|skickat från|sendt fra|wysłane z|odesláno z|get|holen sie sich)\b"
    r"(?=.*\b(iphone|ipad|outlook|android|galaxy|samsung|huawei|xiaomi|blackberry|gmail|yahoo|gmx|web\.de|proton ?mail|"
    r"windows|smartphone|handy|mobile|phone|tablet)\b).{2,100}$",
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """The new words; then, under a line that says what it is, the start of what they quote, each line behind `> `."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    at, forwarded = _quote_starts(lines)
    own = "\n".join(_without_signature(lines[:at])).strip()
    below = "\n".join(_unmarked(line) for line in lines[at:]).strip()
    if not below:
        return own
    heading = "[forwarded with it:]" if forwarded else QUOTED
    if not (own or forwarded):
        heading = "[nothing new is in this mail but a quote:]"
    shown = quoted(heading, below, FORWARD_LENGTH if forwarded or not own else QUOTE_LENGTH)
    return f"{own}\n\n{shown}" if own else shown


def quoted(heading: str, text: str, length: int) -> str:
    """Somebody else's words: nothing inside them can end the quote."""
    cut = text if len(text) <= length else text[: length - 1].rstrip() + "…"
    return "\n".join([heading, *(f"> {line}".rstrip() for line in cut.splitlines())])


def _quote_starts(lines: list[str]) -> tuple[int, bool]:
    """Where the last part begins that is all quote, and whether it is something passed on."""
    last_quote = _all_quote_from(lines)
    for at, line in enumerate(lines):
        if _FORWARDED.match(line):
            return at, True
        if _ORIGINAL.match(line) or _is_header_block(lines, at):
            return at, False
        if _is_attribution(lines, at) or line.startswith(">"):
            near = range(at, min(at + ATTRIBUTION_LINES + 2, len(lines)))  # an empty line may follow it
            quote = next((n for n in near if lines[n].startswith(">")), None)
            if quote is not None and quote >= last_quote:
                return at, False
    return len(lines), False


def _is_attribution(lines: list[str], at: int) -> bool:
    """Mail programs break it over up to three lines."""
    if not re.match(r"^\w", lines[at]):
        return False
    return any(_WROTE.match(" ".join(lines[at : at + count])) for count in range(1, ATTRIBUTION_LINES + 1))


def _is_header_block(lines: list[str], at: int) -> bool:
    """As Outlook puts it over what it quotes: From, Sent, To, Subject."""
    following = [line for line in lines[at + 1 : at + 5] if line]
    return bool(_HEADER_LINE.match(lines[at])) and sum(bool(_NEXT_HEADER_LINE.match(line)) for line in following) >= 2


def _all_quote_from(lines: list[str]) -> int:
    """The line from which on nothing of the person's own comes, save a signature."""
    end = len(_without_signature(lines))
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith(">")):
        end -= 1
    return end


def _without_signature(lines: list[str]) -> list[str]:
    """A signature stands below `-- `, and is short: RFC 3676, section 4.3. (Ends of lines are stripped here.)"""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if end > 1 and _SENT_FROM.match(lines[end - 1]) and not lines[end - 2].strip():
        return _without_signature(lines[: end - 1])
    for at in range(len(lines) - 1, max(-1, len(lines) - SIGNATURE_LINES - 2), -1):
        if lines[at] == "--":
            return lines[:at]
    return lines


def _unmarked(line: str) -> str:
    return line[1:].removeprefix(" ") if line.startswith(">") else line
