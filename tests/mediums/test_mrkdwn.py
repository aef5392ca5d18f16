"""How the model's Markdown looks in Slack, and that nothing in it does more than look."""

import pytest

from mediums import markup
from mediums.markup import mrkdwn
from mediums.slack import outgoing
from tests.servers.slack_mrkdwn import notified, shown


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("**bold** *italic* ~~gone~~ `a<b`", "*bold* _italic_ ~gone~ `a&lt;b`"),
        ("***both*** and **a *b* c**", "_*both*_ and *a _b_ c*"),
        ("# Title with **bold**\ntext", "*Title with bold*\ntext"),
        ("**over\ntwo lines**", "*over*\n*two lines*"),
        ("un**frei**willig", "un\u200b*frei*\u200bwillig"),
        ("**粗体**文本", "*粗体*\u200b文本"),
        ("- a\n- b\n  - c\n\n3) x\n4) y", "• a\n• b\n  • c\n\n3) x\n4) y"),
        ("```python\nx < 1\n```", "```\nx &lt; 1\n```"),
        ("`` a`b ``", "a`b"),
        ("> one\n>> two", "> one\n> two"),
        ("[here](https://x.example/?a=1&b=2)", "<https://x.example/?a=1&amp;b=2|here>"),
        ("[**bold** | `x`](https://x.example/a|b)", "<https://x.example/a%7Cb|bold | x>"),
        ("![chart](https://x.example/c.png)", "<https://x.example/c.png|chart>"),
        (
            "see https://x.example/_a_b, or (https://y.example)",
            "see <https://x.example/_a_b>, or (<https://y.example>)",
        ),
        ("<https://x.example/ä> <a@b.example>", "<https://x.example/%C3%A4> <mailto:a@b.example|a@b.example>"),
        ("|a|b|\n|-|-|\n|1|**22**|", "```\na | b\n--+---\n1 | 22\n```"),
        ("above\n---\nbelow", "above\n———\nbelow"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("a\ufdd0b", "a\ufffdb"),
        ("", ""),
    ],
)
def test_mrkdwn(markdown, written):
    assert mrkdwn(markdown) == written


SL05 = [
    ("if a < b && b > c: print('x & y')", "if a < b && b > c: print('x & y')"),
    (
        "The page said: <!channel> <!here> <@U0ALICE> **<@U1>** `<!everyone>`",
        "The page said: <!channel> <!here> <@U0ALICE> <@U1> <!everyone>",
    ),
    (
        "Use `List<String>` and\n```\nfor (;;) { x <<= 1 && y; }\n```",
        "Use List<String> and\nfor (;;) { x <<= 1 && y; }",
    ),
    ("**bold** and [docs](https://d.example/?a=1&b=2)", "bold and docs"),
    ("> quoted line", "quoted line"),
    ("@here @channel", "@here @channel"),
    ("&lt; already an entity", "< already an entity"),
    ("`&lt;` in code", "&lt; in code"),
]


@pytest.mark.parametrize(("markdown", "read"), SL05)
def test_sl05_what_is_shown_is_what_was_meant_and_nobody_is_called(markdown, read):
    assert shown(mrkdwn(markdown)) == read
    assert notified(mrkdwn(markdown)) == ()


def test_sl05_characters_are_escaped_once():
    assert mrkdwn("a < b && b > c") == "a &lt; b &amp;&amp; b &gt; c"


@pytest.mark.parametrize(
    "masked",
    ["<https://evil.example|https://bank.example>", "[https://bank.example](https://evil.example)"],
)
def test_sl05_no_address_is_laid_over_another(masked):
    written = mrkdwn(masked)
    assert "evil.example|https://bank" not in written
    assert "https://evil.example" in shown(written)


SL07 = [
    "```python\n" + "x = 1\n" * 500 + "```",
    "x" * 12001,
    "\n\n".join("word " * 100 for _ in range(60)),
    "a" * 3980 + "<" * 30,
    "|a|b|\n|-|-|\n" + "|1|<two>|\n" * 200,
    "**" + "bold & words " * 900 + "**",
]


@pytest.mark.parametrize("answer", SL07, ids=["code", "no space", "paragraphs", "escapes", "table", "bold"])
def test_sl07_no_part_is_longer_than_slack_takes_as_it_is_sent(answer):
    parts = markup.split(answer, outgoing.fullness)
    written = [mrkdwn(part) for part in parts]
    assert all(len(one) <= 4000 for one in written)
    assert all(one.count("```") % 2 == 0 for one in written)
    letters = "".join("".join(shown(one).split()) for one in written)
    for character, count in (("x", answer.count("x")), ("<", answer.count("<"))):
        assert letters.count(character) == count
