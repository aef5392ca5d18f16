"""Cutting long answers into messages: TG01, and the same for texts that nobody thought of."""

import random

import pytest

from mediums.markup import plain, split, telegram_html
from mediums.markup.graphemes import cut_at_or_before
from mediums.telegram import outgoing
from tests.servers.telegram_entities import parsed, utf16_length

FAMILY = "👨\u200d👩\u200d👧\u200d👦"


def check(markdown, parts):
    """What holds for the parts of any text."""
    for part in parts:
        shown = parsed(telegram_html(part))
        assert shown.strip()
        assert utf16_length(shown) <= 4096
        shown.encode()  # no lone surrogate
    return parts


def cut(markdown):
    return check(markdown, split(markdown, outgoing.fullness))


def shown_words(*parts):
    return "".join("".join(plain(part) for part in parts).split())


@pytest.mark.parametrize(
    "answer",
    [
        "😀" * 5000,
        "!" * 4096,
        "a" * 4090 + " **bold text that crosses the limit** " + "b" * 3000,
        "&" * 5000,
        "<" * 5000,
    ],
    ids=["emoji", "marks", "bold at the limit", "ampersands", "angle brackets"],
)
def test_tg01_parts_fit_and_join_to_the_answer(answer):
    assert "".join(cut(answer)) == answer


def test_tg01_bold_that_crosses_the_limit_stays_whole():
    first, second = cut("a" * 4090 + " **bold text that crosses the limit** " + "b" * 3000)
    assert first == "a" * 4090 + " "
    assert telegram_html(second).startswith("<b>bold text that crosses the limit</b>")


def test_tg01_code_keeps_its_language_in_each_part():
    lines = [f"line_{n:03} = '{'x' * 48}'" for n in range(300)]
    parts = cut("```python\n" + "\n".join(lines) + "\n```")
    assert len(parts) > 1
    assert all(part.startswith("```python\n") and part.rstrip().endswith("\n```") for part in parts)
    bodies = [part.removeprefix("```python\n").rstrip().removesuffix("```").rstrip("\n") for part in parts]
    assert "\n".join(bodies).split("\n") == lines


def test_tg01_code_within_a_long_answer():
    code = "\n".join(f"    step({n})" for n in range(400))
    parts = cut(f"First:\n\n```js\n{code}\n```\n\nThen **done**.")
    assert shown_words(*parts) == "".join(f"First:{code}Thendone.".split())
    assert parts[-1].endswith("Then **done**.")


@pytest.mark.parametrize("before", range(4085, 4097))
def test_tg01_a_family_at_the_boundary_is_not_torn(before):
    parts = cut("a" * before + FAMILY * 3 + "b" * 50)
    assert len(parts) == 2
    assert all(part.count("👨") == part.count("👦") for part in parts)


def test_tg01_line_breaks_alone_are_no_message():
    assert split("\n" * 2100, outgoing.fullness) == ()


def test_tg01_line_breaks_between_words_are_no_message_either():
    assert cut("a" + "\n" * 9000 + "b") == ("a" + "\n" * 9000 + "b",)


@pytest.mark.parametrize("mark", ["**", "*", "~~", "`", "__"])
def test_a_mark_longer_than_a_message_is_closed_and_opened_again(mark):
    text = f"{mark}" + "word " * 2000 + f"end{mark}"
    parts = cut(text)
    assert all(part.startswith(mark) and part.rstrip().endswith(mark) for part in parts)
    assert shown_words(*parts) == "word" * 2000 + "end"


def test_a_quote_longer_than_a_message_stays_a_quote():
    parts = cut("> " + "word " * 2000)
    assert all(telegram_html(part).startswith("<blockquote>") for part in parts)


def test_a_table_longer_than_a_message_repeats_its_head():
    parts = cut("|city|rent|\n|-|-|\n" + "".join(f"|town {n}|{n}|\n" for n in range(600)))
    assert all(telegram_html(part).startswith("<pre>city ") for part in parts)
    assert sum(part.count("town") for part in parts) == 600


def test_a_link_is_not_torn():
    parts = cut("word " * 815 + "[a link with some words](https://x.example/a/b/c) " + "more " * 100)
    assert sum("<a " in telegram_html(part) for part in parts) == 1


def test_cuts_are_made_where_the_writer_paused():
    paragraph = "A sentence of some words. " * 60
    parts = cut("\n\n".join([paragraph] * 8))
    assert all(part.startswith("A sentence") and part.rstrip().endswith("words.") for part in parts)
    lines = cut("\n".join([paragraph] * 8))
    assert all(part.startswith("A sentence") and part.rstrip().endswith("words.") for part in lines)


def test_what_fits_is_not_touched():
    text = "  **a** \n\n```\nb\n```  "
    assert split(text, outgoing.fullness) == (text,)


def test_code_longer_than_any_line_is_cut_within_it():
    parts = cut("```\n" + "x" * 9000 + "\n```")
    assert all(part.startswith("```\n") for part in parts)
    assert shown_words(*parts) == "x" * 9000


PIECES = [
    "word ",
    "Sentence. ",
    "\n",
    "\n\n",
    "  ",
    "long" * 30 + " ",
    "**bold words** ",
    "*it* ",
    "`code` ",
    "**",
    "`",
    "_",
    "&<>",
    "😀",
    FAMILY,
    "e\u0301",
    "🇩🇪🇫🇷",
    "[l](https://x.example/a_b) ",
    "https://e.example/a_b?c=(d) ",
    "\n- item ",
    "\n1. x ",
    "\n> quote ",
    "\n# Head\n",
    "\n---\n",
    "\n```py\nx = 1\ny = 2\n```\n",
    "\n```\nopen\n",
    "\n|a|b|\n|-|-|\n|1|2|\n",
]


@pytest.mark.parametrize("seed", range(60))
def test_any_text_is_cut_into_parts_that_fit_and_lose_nothing(seed):
    chance = random.Random(seed)
    text = "".join(chance.choices(PIECES, k=chance.randrange(5, 120)))
    limit = chance.randrange(150, 500)
    parts = split(text, lambda part: utf16_length(plain(part)) / limit)
    for part in parts:
        assert utf16_length(plain(part)) <= limit
        assert part.strip()
        parsed(telegram_html(part))
    kept, at = "".join(text.split()), 0
    for character in "".join("".join(parts).split()):  # what was added at the cuts stands between
        at += at < len(kept) and character == kept[at]
    assert at == len(kept)


@pytest.mark.parametrize("whole", [FAMILY, "e\u0301", "👍🏽", "🇩🇪", "\u1112\u1161\u11ab", "❤\ufe0f"])
def test_no_character_is_torn(whole):
    text = "a" + whole + "b"
    cuts = {cut_at_or_before(text, position) for position in range(1, len(text))}
    assert cuts <= {1, 1 + len(whole)}


def test_a_pile_of_marks_is_cut_all_the_same():
    assert cut_at_or_before("e" + "\u0301" * 500, 300) == 300
