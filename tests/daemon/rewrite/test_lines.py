"""Lines as editors count them."""

from hypothesis import given
from hypothesis import strategies as st

from specd.daemon.rewrite.lines import LineBuffer, common_line_end, content, core, line_end, normalise, split_lines

text = st.text(st.one_of(st.sampled_from("\r\n\x0b\x0c\x1c\x85\u2028ab"), st.characters()), max_size=40)


def test_only_lf_crlf_and_cr_end_a_line() -> None:
    assert split_lines("a\nb\r\nc\rd\x0ce\u2028f\x85g") == ["a\n", "b\r\n", "c\r", "d\x0ce\u2028f\x85g"]
    assert split_lines("") == []
    assert split_lines("\r\r\n\n") == ["\r", "\r\n", "\n"]


@given(text)
def test_lines_joined_are_the_text_and_each_has_one_end(value: str) -> None:
    lines = split_lines(value)
    assert "".join(lines) == value
    assert all(line_end(line) in ("\n", "\r\n", "\r") for line in lines[:-1])
    assert not any(set(content(line)) & {"\r", "\n"} for line in lines)
    assert "".join(content(line) + ("\n" if line_end(line) else "") for line in lines) == normalise(value)


@given(text, st.lists(st.integers(0, 6), max_size=20))
def test_a_buffer_gives_the_same_lines_however_the_text_is_cut(value: str, sizes: list[int]) -> None:
    buffer, at, lines = LineBuffer(), 0, []
    for size in [*sizes, len(value)]:
        lines += buffer.push(value[at : at + size])
        at += size
    assert lines + buffer.finish() == [content(line) for line in split_lines(value)]


def test_a_cr_waits_for_its_lf() -> None:
    buffer = LineBuffer()
    assert buffer.push("a\r") == []
    assert buffer.push("\nb") == ["a"]
    assert buffer.push("\r") == buffer.push("") == []
    assert buffer.push("c\r") == ["b"], "a CR on its own ended it"
    assert buffer.finish() == ["c"]


def test_the_common_line_end_is_the_most_frequent() -> None:
    assert common_line_end("a\r\nb\r\nc\n") == "\r\n"
    assert common_line_end("a\nb\r\n") == "\n"
    assert common_line_end("a") == "\n"


def test_the_core_is_without_blank_lines_at_both_ends() -> None:
    assert core(["", "\t", "a", "", "b", ""]) == (2, 5)
    assert core(["", "a", ""], exact=True) == (0, 3)
    assert core(["", " "]) == (0, 2), "all blank: all of it"
    assert core([]) == (0, 0)
