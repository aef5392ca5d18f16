"""Bounded text with positions, alone."""

from actors.sandbox.worker.output import HEAD_CHARACTERS, TAIL_CHARACTERS, Output, shorten


def test_text_that_fits_is_kept_whole() -> None:
    output = Output()
    for piece in ("one ", "two ", "three"):
        output.append(piece)
    assert output.since(0, 100) == "one two three"
    assert output.since(4, 100) == "two three"


def test_what_comes_twice_counts_once() -> None:
    output = Output()
    output.append("abcdef", 0)
    output.append("cdefgh", 2)
    output.append("abc", 0)
    assert output.since(0, 100) == "abcdefgh"


def test_the_middle_of_much_is_left_out_and_counted() -> None:
    output = Output()
    for number in range(200_000):
        output.append(f"{number:06d}\n")
    assert output.end == 1_400_000
    text = output.since(0, 1_000_000)
    head, mark, tail = text.partition("\n… ")
    assert head.startswith("000000\n000001\n")
    assert tail.endswith("199999\n")
    assert len(head) == HEAD_CHARACTERS
    missing, _, rest = tail.partition(" characters left out …\n")
    assert len(head) + int(missing) + len(rest) == output.end
    assert TAIL_CHARACTERS <= len(rest) < TAIL_CHARACTERS + 10_000
    assert mark


def test_a_gap_in_what_comes_is_counted() -> None:
    output = Output()
    output.append("a" * HEAD_CHARACTERS, 0)
    output.append("b" * 10, HEAD_CHARACTERS + 500)
    output.append("c" * 10, HEAD_CHARACTERS + 700)
    text = output.since(HEAD_CHARACTERS - 5, 100)
    assert text == "aaaaa\n… 700 characters left out …\ncccccccccc"


def test_a_reader_gets_the_head_then_what_is_left_of_the_tail() -> None:
    output = Output()
    output.append("h" * HEAD_CHARACTERS)
    for _ in range(100):
        output.append("t" * 10_000)
    position, text = output.read(0, 1 << 30)
    assert (position, len(text)) == (0, HEAD_CHARACTERS)
    position, text = output.read(HEAD_CHARACTERS, 1 << 30)
    assert position + len(text) == output.end
    assert TAIL_CHARACTERS <= len(text) < TAIL_CHARACTERS + 10_000


def test_one_piece_larger_than_everything() -> None:
    output = Output()
    output.append("x" * 10_000_000 + "y")
    assert output.end == 10_000_001
    assert output.since(0, 10).endswith("xxxxy")


def test_shorten_keeps_both_ends() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 4) == "ab\n… 6 characters left out …\nij"
