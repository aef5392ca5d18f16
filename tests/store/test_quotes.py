"""What counts as a quote of a person's words, and what does not."""

import pytest

from frontdesk.quotes import names, quotes_of

SAID = """My secret is Zaragoza-4711, really.
Call me at ana@example.org or +34 600 123 456 please, before the sun goes down"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("> my  SECRET is\n> zaragoza-4711, really", "> (erased)"),
        ("She said: “My secret is Zaragoza-4711, really.” Hm.", "She said: “(erased).” Hm."),
        ("Write to ana@example.org.", "Write to (erased)."),
        ("the code Zaragoza-4711 again", "the code (erased) again"),
        ("as you said, call me at ana@example.org or +34 600 now", "as you said, (erased) now"),
        ("he left before the sun goes down", "he left before the sun goes down"),
        ("please, before the sun goes down", "(erased)"),
        ("My secret is another one.", "My secret is another one."),
        ("", ""),
    ],
)
def test_a_quote_goes_and_the_rest_stays(text, left):
    assert quotes_of([(True, SAID)]).without(text) == left


def test_what_somebody_else_used_before_is_theirs():
    quotes = quotes_of([(False, "Ticket ABC-12345 is open."), (True, "I close ABC-12345 and DEF-98765.")])
    assert quotes.without("ABC-12345, DEF-98765") == "ABC-12345, (erased)"


def test_ordinary_words_name_nothing():
    for word in ("2026", "2026-11-29", "hello", "q3-2026"[:2], "12", "covid19", "well-known"):
        assert not names(word)
    for word in ("a@b.org", "0815-helsinki", "12345", "+34600123456", "de89x370"):
        assert names(word)
