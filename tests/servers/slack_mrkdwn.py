"""How Slack shows `text`: https://docs.slack.dev/messaging/formatting-message-text

Marks count beside white space, punctuation and other marks only, and do not reach over lines.
"""

import re

_FENCE = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_REFERENCE = re.compile(r"<([^<>\n]+)>")
_MARKS = [
    re.compile(rf"(?<![\w{mark}]){mark}(?=\S)([^\n{mark}]*[^\s{mark}]){mark}(?!\w)") for mark in (r"\*", "_", "~")
]
_ENTITY = re.compile("&(amp|lt|gt);")
_KEPT = re.compile("\0(\\d+)\0")


def shown(text: str) -> str:
    """What a reader sees, without what is not seen."""
    kept: list[str] = []

    def keep(words: str) -> str:
        kept.append(words)
        return f"\0{len(kept) - 1}\0"

    text = _FENCE.sub(lambda found: keep(found.group(1)), text)
    text = _CODE.sub(lambda found: keep(found.group(1)), text)
    text = _REFERENCE.sub(lambda found: keep(_read(found.group(1))), text)
    text = re.sub(r"(?m)^(> )", "", text)
    for _ in range(3):  # marks in marks
        for mark in _MARKS:
            text = mark.sub(r"\1", text)
    while _KEPT.search(text):
        text = _KEPT.sub(lambda found: kept[int(found.group(1))], text)
    return _ENTITY.sub(lambda found: {"amp": "&", "lt": "<", "gt": ">"}[found.group(1)], text).replace("\u200b", "")


def notified(text: str) -> tuple[str, ...]:
    """Whom the references in it call: ids, `here`, `channel`, `everyone`, a group's id. In code too."""
    found = [reference.partition("|")[0] for reference in _REFERENCE.findall(text)]
    return tuple(one.lstrip("@!").removeprefix("subteam^") for one in found if one[0] in "@!")


def _read(reference: str) -> str:
    target, _, label = reference.partition("|")
    return label or target.removeprefix("mailto:")
