"""The mirror of the editor's documents: positions in every encoding, incremental changes, line ends."""

import pytest
import slow_text
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol import types

from specd.lsp.documents import Document, Documents, lines_of
from specd.lsp.positions import Encoding, index_of, units_of
from specd.lsp.splice import Splice, blocks_of, canonical, trimmed

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
# what other mirrors take for line ends, lone surrogates, characters of every length
TEXT = st.text(st.sampled_from("ab \t\n\r\x0b\x0c\x1c\x85\u2028\u2029é€😀\ud83d\ude00\ufeff"), max_size=30)
PLACE = st.tuples(st.integers(0, 8), st.integers(0, 12))
CHANGES = st.lists(st.tuples(PLACE, PLACE, TEXT), max_size=6)


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)


@given(TEXT, CHANGES, st.sampled_from(ENCODINGS))
@example("a\r", [((1, 0), (1, 0), "\nb")], "utf-16")
@example("a\rx\nb", [((1, 0), (1, 1), "")], "utf-16")
@example("a\r\nb", [((0, 9), (1, 0), "\r")], "utf-16")
@example("a\n", [((5, 5), (9, 9), "c")], "utf-16")
def test_a_mirror_is_what_the_editor_shows(text: str, changes: list[tuple], encoding: Encoding) -> None:  # type: ignore[type-arg]
    document = Document("untitled:1", "x", 1, text, encoding)
    for number, (start, end, new) in enumerate(changes, 2):
        text = slow_text.change(text, start, end, new, encoding)
        document.change(number, [partial(start, end, new)])
        assert document.lines == lines_of(text)
        assert document.text == text
    assert document.version == len(changes) + 1


@given(TEXT, CHANGES, st.sampled_from(ENCODINGS))
def test_splices_tell_a_change_completely(text: str, changes: list[tuple], encoding: Encoding) -> None:  # type: ignore[type-arg]
    document = Document("untitled:1", "x", 1, text, encoding)
    told = list(document.lines)

    def follow(splice: Splice) -> None:
        assert tuple(told[splice.start : splice.end]) == splice.old
        told[splice.start : splice.end] = splice.new

    document.observers.append(follow)
    document.change(2, [partial(*change) for change in changes])
    assert told == document.lines
    document.change(3, [types.TextDocumentContentChangeWholeDocument("x\ny")])
    assert told == document.lines == ["x\n", "y"]


@given(TEXT, st.integers(0, 40), st.sampled_from(ENCODINGS))
def test_a_column_is_clamped_and_never_inside_of_a_character(text: str, units: int, encoding: Encoding) -> None:
    line = lines_of(text)[0]
    index = index_of(line, units, encoding)
    assert index == slow_text.offset(line, 0, units, encoding)
    back = units_of(line, index, encoding)
    assert back <= units
    assert index_of(line, back, encoding) == index


@given(TEXT, st.sampled_from(ENCODINGS))
def test_every_place_has_a_position_that_leads_back(text: str, encoding: Encoding) -> None:
    document = Document("untitled:1", "x", 1, text, encoding)
    for line, content in enumerate(document.lines):
        for index in range(len(content.rstrip("\r\n")) + 1):
            position = document.position(line, index)
            offset = len("".join(document.lines[:line])) + index
            assert (position.line, position.character) == slow_text.position(text, offset, encoding)
            assert document.place(position) == (line, index)


@pytest.mark.parametrize(
    ("encoding", "units", "index"),
    [("utf-8", 4, 1), ("utf-8", 5, 2), ("utf-8", 3, 0), ("utf-16", 1, 0), ("utf-16", 2, 1), ("utf-32", 1, 1)],
)
def test_an_emoji_has_four_bytes_two_units_and_one_character(encoding: Encoding, units: int, index: int) -> None:
    assert index_of("😀b\n", units, encoding) == index


def test_only_three_line_ends_are_line_ends() -> None:
    assert lines_of("a\x0bb\x0cc\x85d\u2028e\rf\r\ng\n") == ["a\x0bb\x0cc\x85d\u2028e\r", "f\r\n", "g\n", ""]
    assert lines_of("") == [""]


def test_a_position_behind_the_end_is_the_end() -> None:
    document = Document("untitled:1", "x", 1, "ab\r\ncd")
    assert document.place(types.Position(0, 99)) == (0, 2)
    assert document.place(types.Position(7, 0)) == (1, 2)
    assert document.position(2, 0) == types.Position(1, 2)


def test_two_spellings_of_a_uri_are_one_document_and_the_first_is_kept() -> None:
    documents = Documents()
    documents.open(types.TextDocumentItem("file:///c%3A/a%20b.py", "python", 1, "x"))
    found = documents.get("file:///C:/a b.py")
    assert found is not None
    assert found.uri == "file:///c%3A/a%20b.py"
    assert documents.close("file:///c:/a%20b.py") is found
    assert documents.get(found.uri) is None


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n"]), max_size=8)


def applied(lines: list[str], splice: Splice) -> list[str]:
    assert tuple(lines[splice.start : splice.end]) == splice.old
    return [*lines[: splice.start], *splice.new, *lines[splice.end :]]


@given(LINES, LINES, st.data())
def test_a_canonical_splice_says_the_same_and_is_one_for_all(
    lines: list[str], new: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    splice = Splice(start, tuple(lines[start:end]), tuple(new))
    after = applied(lines, splice)
    short = canonical(splice, lines)
    assert applied(lines, short) == after == applied(lines, trimmed(splice))
    whole = Splice(0, tuple(lines), tuple(after))
    if bool(short.old) != bool(short.new):  # what an editor tells as a change of the whole text is the same splice
        assert canonical(whole, lines) == short
    for block in blocks_of(whole):
        lines = applied(lines, block)
    assert lines == after
