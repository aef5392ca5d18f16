"""What of a model's text is for people: not what it thought, in any of the marks that models put around it. Pure.

Providers take thoughts out of the text where they know a model's marks; where they do not, the marks come as text.
"""

import re

_TAG = r"(?i:think(?:ing)?|seed:think)"
_THOUGHT_OR_CODE = re.compile(
    rf"(```.*?(?:```|$)|`[^`\n]*`)"
    rf"|<{_TAG}>.*?(?:</{_TAG}>|$)|\[THINK\].*?(?:\[/THINK\]|$)|◁think▷.*?(?:◁/think▷|$)",
    re.DOTALL,
)
_OPENED = re.compile(rf"<{_TAG}>|\[THINK\]|◁think▷")
_CLOSED = re.compile(rf"(?<!`)(?:</{_TAG}>|\[/THINK\]|◁/think▷)(?!`)")
_FIRST = re.compile(r"\s*<(thoughts?|reasoning|reflection|scratchpad)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)

# gpt-oss: https://cookbook.openai.com/articles/openai-harmony. A header, then the message until the next mark.
_CHANNEL = re.compile(
    r"<\|channel\|>(?P<header>[^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>(?P<said>.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|$)",
    re.DOTALL,
)
_MARKS_LOST = re.compile(r"analysis.*?assistantfinal", re.DOTALL)

# What ends an answer, where a server does not know it, and what a model then goes on with.
_END = re.compile(
    r"(```.*?(?:```|$)|`[^`\n]*`)|<\|(?:im_end|im_start|eot_id|endoftext|start_header_id)\|>.*|<end_of_turn>.*|</s>\s*$",
    re.DOTALL,
)


def shown(text: str) -> str:
    """The text without what is marked as thought, closed or not, and without what stands before a closing mark that
    nothing opened (some templates open it in the prompt). In code, the marks are text like any other."""
    if "<|channel|>" in text:
        text = _of_channels(text)
    elif text.startswith("analysis") and "assistantfinal" in text:
        text = _MARKS_LOST.sub("", text, count=1)
    closing = _CLOSED.search(text)
    if closing and not _OPENED.search(text[: closing.start()]):
        text = text[closing.end() :]
    if _OPENED.search(text):
        text = _THOUGHT_OR_CODE.sub(lambda match: match.group(1) or "", text).strip()
    if first := _FIRST.match(text):
        text = text[first.end() :]
    return _END.sub(lambda match: match.group(1) or "", text) if "<" in text else text


def _of_channels(text: str) -> str:
    """What was said to people, and calls as they are written elsewhere: `<tool_call>{…}</tool_call>`."""
    said = [text[: text.index("<|channel|>")].replace("<|start|>assistant", "")]
    for found in _CHANNEL.finditer(text):
        channel, _, to = found["header"].partition("to=")
        if to.strip():
            name = to.split()[0].removeprefix("functions.")
            said.append(f'<tool_call>{{"name": "{name}", "arguments": {found["said"].strip() or "{}"}}}</tool_call>')
        elif channel.strip() != "analysis":
            said.append(found["said"].strip())
    return "\n".join(part for part in said if part.strip())
