"""A `Model` whose tools are called in text: for models without reliable calls of their own.

Python in a fenced block is a call of the tool that runs code, a JSON object that names a tool is one of that tool, and
any other text is a text: so a small model does what it has been trained to do. Each longer history maps to an extension
of what it made of the shorter one, so that a cache holds.
"""

import json
import re
from textwrap import dedent
from typing import Any

import msgspec

from gateway.llm.model import Generation, Message, Model, OnSpent, RawCall, Request, Tool, Usage

CODE = "execute_code"
KEEPS = {"stateful": True}  # a small model takes for granted that variables are kept
NOTHING_PRINTED = "\n(nothing was printed)"

HOW = """\
Answer with one of these each time, and nothing else:
- Python that is run now, in a block: ```python … ```. Print what you want to see; variables are kept.
- The response to the task, as plain text, once the result above answers it.
- To do something else, one JSON object:
{others}"""

EXAMPLES = (
    ("user", "[task from Eva] How many letters has the word harbour?"),
    ("assistant", '```python\nprint(len("harbour"))\n```'),
    ("user", "Result: cell1 ended: ok.\n7"),
    ("assistant", "The word has 7 letters."),
    ("user", "[Eva] Sorry, I meant: which vowels?"),
    ("assistant", '```python\nprint([letter for letter in "harbour" if letter in "aeiou"])\n```'),
    ("user", "Result: cell2 ended: ok.\n['a', 'o', 'u']"),
    ("assistant", "Its vowels are: a, o, u."),
    (
        "user",
        "[task from Eva] How heavy are the sweet things together?\n  [file: received-1/order.csv (text/csv, 2 KB)]\n"
        "    | name,taste,kg\n    | honey,sweet,2\n    | salt,salty,1\n    | …",
    ),
    (
        "assistant",
        '```python\nimport csv\nwith open("received-1/order.csv") as file:\n    rows = list(csv.DictReader(file))\n'
        'print(sum(float(row["kg"]) for row in rows if row["taste"] == "sweet"))\n```',
    ),
    ("user", "Result: cell1 ended: ok.\n7.5"),
    ("assistant", "The sweet things weigh 7.5 kg together."),
)
AGAIN = "You have run exactly this already; its result stands above. Give the answer that it is to the task."
SAME_FAILURE = "You have run exactly this already, and it failed as above. Write it otherwise."
UNRUN = "Nothing was run for this yet. Work it out with Python: write the block now."
FAILED = (
    "That code failed. Print what is really there, and write it otherwise. If it cannot be done at all, say in plain "
    "text why."
)
LEFT_OUT = "Give the answer to the task with what was computed in it, which is: {printed}"
CHANGED = "\n(Do it again with that. The task was: {task})"
TASK_CHARACTERS = PRINTED_CHARACTERS = 300
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}

_BLOCK = re.compile(r"```(?:python|py)\b(.*?)(?:```(?=\s|\Z)|\Z)", re.DOTALL | re.IGNORECASE)
_RAN = re.compile(r"cell\d+ ended: (ok|error)\b")
_SAID = re.compile(r"\[(?!(paused|resumed)\])")  # so begins what a person says
_TASK = re.compile(r"\[task from [^\]\n]*\] (.*?)(?:\n  \[file: |\n\n|\Z)", re.DOTALL)
_WORDS = re.compile(r"\w+")
_OPENED = re.compile(r"```(?:json)?\s*(?=\{)")


class InText:
    """Asks `model` without tools; asks once more where a small model goes astray: it runs the same again instead of
    answering, or answers what nothing was run for."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, request: Request, on_spent: OnSpent | None = None) -> Generation:
        """See `Model.generate`."""
        if not request.tools or request.response_schema is not None:
            return await self._model.generate(request, on_spent)
        asked = msgspec.structs.replace(
            request, messages=_written(request.messages, request.tools), tools=[], tool_choice="auto"
        )
        generation = await self._model.generate(asked, on_spent)
        if request.tool_choice == "none":
            return generation
        made = understood(generation)
        objection, schema = _objection(made, request.messages)
        if not objection:
            return made
        wrote = [{"role": "assistant", "content": generation.text}] if made.calls else []  # a text would be repeated
        more = [*wrote, {"role": "user", "content": objection}]
        again = msgspec.structs.replace(asked, messages=[*asked.messages, *more], response_schema=schema)
        try:
            second = await self._model.generate(again, on_spent)
        except BaseException:  # cancelled or failed: what the first has cost is told all the same
            if on_spent is not None:
                on_spent(generation.model, generation.usage)
            raise
        second = msgspec.structs.replace(second, usage=_sum(generation.usage, second.usage))
        return _answer(second) if schema else understood(second)


def understood(generation: Generation) -> Generation:
    """With the call that its text is, if it is one."""
    text, complete = generation.text, not generation.cut
    if (block := _BLOCK.search(text)) is not None:
        arguments = {"code": dedent(block[1].strip("\r\n")).rstrip(), **KEEPS}
        return _calling(generation, CODE, arguments, complete, said=text[: block.start()].strip())
    opened, closed = _OPENED.search(text), text.rfind("```")
    try:
        value = json.loads(text[opened.end() : closed] if opened and opened.end() < closed else text)
        name = value.pop("tool")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return generation
    return _calling(generation, name, value, complete) if isinstance(name, str) else generation


def _calling(
    generation: Generation, name: str, arguments: dict[str, Any], complete: bool, said: str = ""
) -> Generation:
    call = RawCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False), complete=complete)
    return msgspec.structs.replace(generation, text=said, calls=(call,), finish="tool_calls")


def _objection(made: Generation, messages: list[Message]) -> tuple[str, dict[str, Any] | None]:
    """What to ask for instead, and the schema that it must have."""
    ran = _ran_since_the_last_word(messages)
    if made.calls:
        code = str((made.calls[0].parsed() or {}).get("code")) if made.calls[0].name == CODE else ""
        match _ended(ran.get(code, "")):
            case "ok":
                return AGAIN, ANSWER
            case "error":
                return SAME_FAILURE, None
        return "", None
    if not ran:
        return UNRUN, None
    last = list(ran.values())[-1]
    if _ended(last) == "error":
        return FAILED, None
    printed = last.partition("\n")[2]
    if _leaves_out(made.text, printed):
        return LEFT_OUT.format(printed=printed[:PRINTED_CHARACTERS]), ANSWER
    return "", None


def _ended(result: str) -> str:
    found = _RAN.match(result)
    return found[1] if found else ""


def _leaves_out(text: str, printed: str) -> bool:
    """Whether no word and no number of what code printed is in it."""
    words = set(_WORDS.findall(printed.lower()))
    return bool(words) and words.isdisjoint(_WORDS.findall(text.lower()))


def _ran_since_the_last_word(messages: list[Message]) -> dict[str, str]:
    """Code, and its result; the newest last."""
    codes: dict[str, str] = {}
    ran: dict[str, str] = {}
    for message in messages:
        if message["role"] == "user" and _SAID.match(str(message["content"])):
            ran = {}
        for call in message.get("tool_calls") or ():
            if call["function"]["name"] == CODE:
                codes[call["id"]] = str(json.loads(call["function"]["arguments"]).get("code"))
        if message["role"] == "tool" and (code := codes.get(message["tool_call_id"])) is not None:
            ran.pop(code, None)
            ran[code] = str(message["content"])
    return ran


def _answer(generation: Generation) -> Generation:
    try:
        return msgspec.structs.replace(generation, text=str(json.loads(generation.text)["answer"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return generation


def _sum(first: Usage, second: Usage) -> Usage:
    return Usage(
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        usd=None if first.usd is None or second.usd is None else first.usd + second.usd,
        estimated=first.estimated or second.estimated,
    )


# --- what it is shown ------------------------------------------------------------------------------------------------


def _written(messages: list[Message], tools: list[Tool]) -> list[Message]:
    head = [message for message in messages[:1] if message["role"] in ("system", "developer")]
    others = "\n".join(_line(tool["function"]) for tool in tools if tool["function"]["name"] not in (CODE, "respond"))
    told = "\n\n".join([*(str(message["content"]) for message in head), HOW.format(others=others)])
    return [
        {"role": "system", "content": told},
        *({"role": role, "content": text} for role, text in EXAMPLES),
        *_talk(messages[len(head) :]),
    ]


def _talk(messages: list[Message]) -> list[Message]:
    """With the task beside each word that changes it: a small model takes such a word alone for all that is wanted."""
    task = ""
    shown: list[Message] = []
    for message in messages:
        said = str(message.get("content"))
        found = _TASK.match(said) if message["role"] == "user" else None
        task = found[1][:TASK_CHARACTERS] if found else task
        changes = message["role"] == "user" and not found and task and _SAID.match(said)
        shown += _one({**message, "content": said + CHANGED.format(task=task)} if changes else message)
    return shown


def _one(message: Message) -> list[Message]:
    if message["role"] == "tool":
        said = str(message["content"])
        nothing = NOTHING_PRINTED if _ended(said) and "\n" not in said else ""
        return [{"role": "user", "content": f"Result: {said}{nothing}"}]
    calls = message.get("tool_calls")
    if not calls:
        return [message]
    parts = [message.get("content") or "", *(_as_text(call["function"]) for call in calls)]
    return [{"role": "assistant", "content": "\n".join(part for part in parts if part)}]


def _as_text(function: dict[str, Any]) -> str:
    arguments = json.loads(function["arguments"])
    if function["name"] == CODE and isinstance(arguments.get("code"), str):
        return f"```python\n{arguments['code']}\n```"
    return json.dumps({"tool": function["name"], **arguments}, ensure_ascii=False)


def _line(function: dict[str, Any]) -> str:
    """Only what is required: a small model fills in whatever it may."""
    keys = {"tool": function["name"], **dict.fromkeys(function["parameters"].get("required", ()), "…")}
    return f"{json.dumps(keys, ensure_ascii=False)}: {function['description']}"
