"""From splices to LSP edits and from ranges to what is asked for: what the editor makes of it is what was meant."""

import random
from collections import deque

import slow_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lsprotocol import types

from specd.daemon.rewrite.lines import split_lines
from specd.lsp.documents import Document
from specd.lsp.edits import text_edits, workspace_edit
from specd.lsp.ledger import Ledger
from specd.lsp.positions import Encoding
from specd.lsp.splice import Splice
from specd.lsp.target import asked_of

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
LINE = st.builds(
    lambda text, end: text + end, st.text("ab\té😀\x0b", max_size=4), st.sampled_from(["\n", "\r\n", "\n", "\r\n"])
)
LINES = st.lists(LINE, max_size=6)


def edited(text: str, edits: list[types.TextEdit], encoding: Encoding) -> str:
    """The text after the edits, as an editor makes them: all places are of the text before."""
    places = []
    for edit in edits:
        ends = [(place.line, place.character) for place in (edit.range.start, edit.range.end)]
        places.append((*(slow_text.offset(text, *end, encoding) for end in ends), edit.new_text))
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text


@given(LINES, st.text("ab😀", max_size=3), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), LINES)), st.data())
@example(["a\r\n", "b\r\n"], "", [(0, 1, ["a\n"])], None)
def test_edits_make_just_the_splices(
    lines: list[str], last: str, cuts: list[tuple[int, int, list[str]]], data: st.DataObject | None
) -> None:
    encoding = data.draw(st.sampled_from(ENCODINGS)) if data else "utf-16"
    document = Document("untitled:1", "x", 1, "".join(lines) + last, encoding)
    splices: list[Splice] = []
    for start, size, new in sorted(cuts, key=lambda cut: cut[0]):
        end = min(start + size, len(document.lines) - 1)
        if start <= end and (not splices or splices[-1].end < start):
            splices.append(Splice(start, tuple(document.lines[start:end]), tuple(new)))
    after = list(document.lines)
    for splice in reversed(splices):
        after[splice.start : splice.end] = splice.new
    edits = text_edits(document, splices)
    assert edited(document.text, edits, encoding) == "".join(after)
    assert len(edits) <= len(splices)


def test_an_edit_is_as_small_as_the_change() -> None:
    document = Document("untitled:1", "x", 1, "class Grid:\r\n    pass\r\n")
    (edit,) = text_edits(document, [Splice(0, ("class Grid:\r\n",), ("class Mesh:\r\n",))])
    assert edit == types.TextEdit(types.Range(types.Position(0, 6), types.Position(0, 10)), "Mesh")


def test_splices_that_touch_are_one_edit() -> None:
    document = Document("untitled:1", "x", 1, "a\nb\n")
    edits = text_edits(document, [Splice(1, (), ("new\n",)), Splice(1, ("b\n",), ("B\n",))])
    assert len(edits) == 1
    assert edited(document.text, edits, "utf-16") == "a\nnew\nB\n"


def test_an_edit_names_the_version_or_where_the_client_has_none_the_document() -> None:
    document = Document("file:///c%3A/x", "x", 7, "a")
    versioned = workspace_edit(document, [], versioned=True)
    assert versioned.changes is None
    assert versioned.document_changes is not None
    (change,) = versioned.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document == types.OptionalVersionedTextDocumentIdentifier("file:///c%3A/x", 7)
    assert workspace_edit(document, [], versioned=False).changes == {"file:///c%3A/x": []}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 12), st.sampled_from(ENCODINGS))
def test_mirror_and_buffer_agree_whatever_is_typed_and_applied(seed: int, count: int, encoding: Encoding) -> None:
    """Characters typed anywhere, line ends too, while edits are under way: the mirror follows the buffer."""
    draw = random.Random(seed)
    text = "".join(
        draw.choice(["a", "é😀", "", "    b"]) + f"{at}" + draw.choice(["\n", "\r\n"]) for at in range(count)
    )
    document = Document("untitled:1", "x", 1, text, encoding)
    ledger = Ledger(document.lines)
    document.observers.append(ledger.observe)  # type: ignore[arg-type]  # its answer is not asked for
    for line in range(0, count, 2):
        ledger.add(line, line + 1, [f"hunk {line}\n"])
    version = 1
    under_way: deque[tuple[int, list[types.TextDocumentContentChangePartial]]] = deque()
    for _ in range(30):
        what = draw.choice(["type", "read", "edit"])
        changes: list[tuple[tuple[int, int], tuple[int, int], str]] = []
        if what == "read" and under_way:
            document.change(*under_way.popleft())
        elif what == "type":
            a, b = sorted(draw.randrange(len(text) + 1) for _ in range(2))
            b = min(b, a + draw.choice([0, 0, 1, 3]))
            ends = (slow_text.position(text, a, encoding), slow_text.position(text, max(a, b), encoding))
            changes.append((*ends, draw.choice(["x", "\n", "\r", "\r\n", "", "x\ny"])))
        elif what == "edit" and document.version == version:
            taken = ledger.take()
            for entry, _ in taken:
                entry.is_asked = True
            for edit in reversed(text_edits(document, [splice for _, splice in taken])):
                places = [(place.line, place.character) for place in (edit.range.start, edit.range.end)]
                changes.append((places[0], places[1], edit.new_text))
        if changes:
            told = []
            for start, end, new in changes:
                told.append(
                    types.TextDocumentContentChangePartial(
                        types.Range(types.Position(*start), types.Position(*end)), new
                    )
                )
                text = slow_text.change(text, start, end, new, encoding)
            version += 1
            under_way.append((version, told))
    while under_way:
        document.change(*under_way.popleft())
    assert document.text == text
    assert ledger.lines == document.lines
    for entry in ledger.entries:
        if entry.is_in and ledger.place(entry) is not None:
            assert entry.new[0] in document.lines


@given(LINES.filter(bool), st.integers(0, 6), st.data())
def test_lines_around_a_comment_lead_back_to_the_document(lines: list[str], at: int, data: st.DataObject) -> None:
    comment = min(at, len(lines) - 1)
    document = Document("untitled:1", "x", 1, "".join(lines))
    asked = asked_of(document, None, path="a.py", comment=comment)
    sent = split_lines(asked.target.text)
    assert sent == lines[:comment] + lines[comment + 1 :]
    start = data.draw(st.integers(0, len(sent)))
    end = data.draw(st.integers(start, len(sent)))
    first, last = asked.lines(start, end)
    covered = [line for line in range(first, last) if line != comment]
    assert [lines[line] for line in covered] == sent[start:end]
    assert first <= last
    assert first != comment or start == end


@given(LINES, st.tuples(st.integers(0, 7), st.integers(0, 7)), st.booleans(), st.integers(0, 6))
def test_a_range_never_leaves_the_text_that_is_sent(
    lines: list[str], ends: tuple[int, int], is_empty: bool, comment: int
) -> None:
    document = Document("untitled:1", "x", 1, "".join(lines))
    start, end = sorted(ends)
    end = start if is_empty else end
    where = types.Range(types.Position(start, 0), types.Position(end, 0))
    asked = asked_of(document, where, path=None, comment=comment)
    count = len(split_lines(asked.target.text))
    if asked.target.lines:
        assert 0 <= asked.target.lines[0] < asked.target.lines[1] <= count
        assert asked.target.at is None
    elif asked.target.at is not None:
        assert 0 <= asked.target.at < count
    else:
        assert count == 0
