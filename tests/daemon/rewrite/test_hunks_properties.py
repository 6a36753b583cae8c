"""The promises of the hunk stream over random files and random new texts (hypothesis)."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from specd.daemon.rewrite.hunks import HELD_FROM, Hunk, HunkStream, apply_hunks
from specd.daemon.rewrite.indent import Reindenter
from specd.daemon.rewrite.lines import BOM, content, core, is_blank, line_end, split_lines
from specd.daemon.rewrite.omission import is_omission

CODE = [
    "}",
    "end",
    "",
    "  ",
    "x = 1",
    "y = 2",
    "return x",
    "    return x",
    "\treturn x",
    "def f(x):",
    "def g(x):",
    "});",
]
ODD = ["x = 1  ", "a\x0cb", "a\u2028b", "a\x85b", "\x1c", "é😀", "```", "```julia", "<think>", "\ufeff", " \t "]
OMITS = ["# ... rest unchanged", "// ... existing code ...", "...", "-- …"]

line = st.one_of(
    st.sampled_from(CODE),
    st.sampled_from(ODD),
    st.integers(0, 40).map("value_{0} = compute({0})".format),
    st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), max_size=12),
)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r\n", "\r"])


@st.composite
def originals(draw: st.DrawFn, lines: st.SearchStrategy[str] = line) -> str:
    """A region: one kind of line end or a mix, a last line with or without one, sometimes a byte order mark."""
    texts = draw(st.lists(lines, max_size=24))
    one_end = draw(st.one_of(st.none(), ends))
    text = "".join(t + (one_end or draw(ends)) for t in texts)
    if draw(st.integers(0, 3)) == 0:
        text = text.rstrip("\r\n")
    return BOM + text if text and draw(st.integers(0, 7)) == 0 else text


@st.composite
def edited(draw: st.DrawFn, original: str, extra: st.SearchStrategy[str] = line) -> str:
    """What a model may make of `original`: its lines deleted, inserted, replaced, moved, copied; LF."""
    lines = [content(x) for x in split_lines(original.lstrip(BOM))]
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(lines)))
        size = draw(st.integers(0, 12))
        cut = lines[at : at + size]
        kind = draw(st.sampled_from(["delete", "insert", "replace", "move", "copy"]))
        if kind in ("delete", "replace", "move"):
            del lines[at : at + size]
        if kind in ("insert", "replace"):
            lines[at:at] = draw(st.lists(extra, max_size=4))
        if kind in ("move", "copy"):
            to = draw(st.integers(0, len(lines)))
            lines[to:to] = cut
    return "".join(x + "\n" for x in lines)


@st.composite
def rewrites(draw: st.DrawFn) -> tuple[str, str]:
    original = draw(originals())
    return original, draw(edited(original))


def pieces(text: str, sizes: list[int]) -> Iterator[str]:
    at = 0
    for size in sizes or [len(text)]:
        yield text[at : at + size]
        at += size
    yield text[at:]


cuts = st.lists(st.integers(0, 30), max_size=30)


def run(
    original: str, text: str, sizes: list[int] | None = None, *, complete: bool = True, exact: bool = False
) -> tuple[list[Hunk], HunkStream]:
    stream = HunkStream(original, exact=exact)
    hunks = [hunk for piece in pieces(text, sizes or []) for hunk in stream.push(piece)]
    hunks += stream.finish(complete=complete)
    return hunks, stream


def one_by_one(original: str, hunks: list[Hunk]) -> str:
    """As an editor applies them: each to the text that the ones before it have left, shifted by what they added."""
    lines, shift = split_lines(original), 0
    for hunk in hunks:
        start, end = hunk.start_line + shift, hunk.end_line + shift
        assert tuple(lines[start:end]) == hunk.old_lines
        lines[start:end] = hunk.new_lines
        shift += len(hunk.new_lines) - len(hunk.old_lines)
    return "".join(lines)


def keys(text: str) -> list[str]:
    return [content(x).rstrip(" \t") for x in split_lines(text.lstrip(BOM))]


def meant(original: str, text: str) -> list[str]:
    """The lines that the new text stands for: in the file's indentation, and the original's blank ends."""
    old = [content(x) for x in split_lines(original.lstrip(BOM))]
    if all(map(is_blank, old)):
        old = []
    reindenter = Reindenter([content(x) for x in split_lines(original.lstrip(BOM))])
    new = [y for x in text.lstrip(BOM).split("\n")[:-1] for y in reindenter.push(x)] + reindenter.finish()
    first, last = core(old)
    new_first, new_last = core(new) if any(not is_blank(x) for x in new) else (0, 0)
    return [x.rstrip(" \t") for x in [*old[:first], *new[new_first:new_last], *old[last:]]]


@settings(max_examples=500, deadline=None)
@given(rewrites(), cuts)
def test_hunks_applied_one_by_one_give_the_text_that_was_meant(rewrite: tuple[str, str], sizes: list[int]) -> None:
    original, text = rewrite
    hunks, stream = run(original, text, sizes)
    assert one_by_one(original, hunks) == apply_hunks(original, hunks) == stream.result
    if all(map(is_blank, [*text.lstrip(BOM).split("\n"), *keys(original)])):
        assert stream.result == original
    else:
        marks = original[: len(original) - len(original.lstrip(BOM))]
        result = [content(x).rstrip(" \t") for x in split_lines(stream.result.removeprefix(marks))]
        assert stream.result.startswith(marks)
        assert result == meant(original, text)


@settings(max_examples=150, deadline=None)
@given(rewrites(), cuts, st.integers(0, 200), st.sampled_from(["\0", "\ufffd"]))
def test_no_zero_byte_or_broken_character_comes_into_a_text_that_has_none(
    rewrite: tuple[str, str], sizes: list[int], at: int, mark: str
) -> None:
    original, text = rewrite
    assume(mark not in original)
    hunks, stream = run(original, text[:at] + mark + text[at:], sizes)
    assert mark not in stream.result
    assert "the model wrote" in (stream.halted or "")
    assert one_by_one(original, hunks) == stream.result


@settings(max_examples=150, deadline=None)
@given(rewrites(), cuts, cuts)
def test_hunks_do_not_depend_on_how_the_text_was_cut(
    rewrite: tuple[str, str], sizes: list[int], others: list[int]
) -> None:
    original, text = rewrite
    assert run(original, text, sizes)[0] == run(original, text, others)[0]


@settings(max_examples=150, deadline=None)
@given(originals(), cuts)
def test_the_same_text_gives_no_hunk(original: str, sizes: list[int]) -> None:
    text = "".join(key + "\n" for key in keys(original))  # LF, and blanks at line ends lost, as models do
    hunks, _ = run(original, text, sizes)
    assert hunks == []


@settings(max_examples=200, deadline=None)
@given(rewrites(), cuts)
@example(("\ufeff}\n}\n\n}", "\n}\n\ufeff\n}\n"), [])
def test_hunks_are_minimal_and_apart(rewrite: tuple[str, str], sizes: list[int]) -> None:
    original, text = rewrite
    lines = split_lines(original)
    hunks, _ = run(original, text, sizes)
    for hunk in hunks:
        assert hunk.old_lines != hunk.new_lines
        if hunk.old_lines and hunk.new_lines and not (original.startswith(BOM) and hunk.start_line == 0):
            open_end = hunk.end_line == len(lines) and not line_end(lines[-1])
            # a blank line's LF would join a CR before it, so it is written as another end
            open_end |= hunk.start_line > 0 and line_end(lines[hunk.start_line - 1]) == "\r"
            # behind another line, where U+FEFF is a character as any
            assert keys("\n" + hunk.old_lines[0]) != keys("\n" + hunk.new_lines[0]) or open_end
            assert keys("\n" + hunk.old_lines[-1]) != keys("\n" + hunk.new_lines[-1]) or open_end
    for above, below in pairwise(hunks):
        assert above.end_line < below.start_line or original.startswith(BOM), "a line between"


@settings(max_examples=200, deadline=None)
@given(rewrites(), cuts, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_file_with_one_kind_of_line_end_keeps_it(rewrite: tuple[str, str], sizes: list[int], end: str) -> None:
    original, text = rewrite
    original = "".join(content(x) + (end if line_end(x) else "") for x in split_lines(original))
    hunks, stream = run(original, text, sizes)
    found = {line_end(x) for x in split_lines(stream.result)[:-1]} | {
        line_end(hunk.new_lines[0]) for hunk in hunks if hunk.new_lines and hunk.end_line < len(split_lines(original))
    }
    assert found <= {end} or end not in original


@settings(max_examples=200, deadline=None)
@given(rewrites(), cuts)
def test_the_last_line_keeps_its_end_or_the_lack_of_one(rewrite: tuple[str, str], sizes: list[int]) -> None:
    original, text = rewrite
    _, stream = run(original, text, sizes)
    if original.lstrip(BOM) and not all(map(is_blank, keys(stream.result))):  # blank: all text was deleted
        assert bool(line_end(split_lines(original)[-1])) == bool(line_end(split_lines(stream.result)[-1]))


@settings(max_examples=200, deadline=None)
@given(originals(), st.data(), cuts)
def test_a_byte_order_mark_stays_first_and_alone(original: str, data: st.DataObject, sizes: list[int]) -> None:
    original = BOM + original.replace(BOM, "")
    text = data.draw(edited(original)).replace(BOM, "")
    _, stream = run(original, text, sizes)
    assert stream.result.startswith(BOM)
    assert BOM not in stream.result[1:]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=30), st.data(), cuts)
def test_lines_that_were_not_changed_keep_their_bytes(
    line_ends: list[str], data: st.DataObject, sizes: list[int]
) -> None:
    blanks = data.draw(
        st.lists(st.sampled_from(["", " ", "\t", "  "]), min_size=len(line_ends), max_size=len(line_ends))
    )
    lines = [f"line_{at} = {at}{blanks[at]}{end}" for at, end in enumerate(line_ends)]
    dropped = data.draw(st.sets(st.integers(0, len(lines) - 1)))
    new: list[str] = []
    for at in range(len(lines)):
        new += [f"line_{at} = {at}"] if at not in dropped else []
        new += data.draw(st.lists(st.just("added()"), max_size=1))
    _, stream = run("".join(lines), "".join(x + "\n" for x in new), sizes)
    kept = [x for at, x in enumerate(lines) if at not in dropped]
    assert [x for x in split_lines(stream.result) if x.startswith("line_")] == kept


@settings(max_examples=300, deadline=None)
@given(rewrites(), cuts, st.integers(0, 400))
def test_a_text_that_breaks_off_keeps_the_original_from_there_on(
    rewrite: tuple[str, str], sizes: list[int], length: int
) -> None:
    original, text = rewrite
    hunks, stream = run(original, text[:length], sizes, complete=False)
    lines = split_lines(original)
    assert one_by_one(original, hunks) == stream.result
    if stream.kept_from is not None:
        assert stream.result.endswith("".join(lines[stream.kept_from :]))
        assert all(hunk.end_line <= stream.kept_from for hunk in hunks)
    assert all(hunk.dropped < HELD_FROM for hunk in hunks)


@settings(max_examples=100, deadline=None)
@given(originals(), cuts, st.integers(0, 400))
def test_a_copy_that_breaks_off_deletes_nothing(original: str, sizes: list[int], length: int) -> None:
    text = "".join(key + "\n" for key in keys(original))
    hunks, stream = run(original, text[:length], sizes, complete=False)
    assert hunks == []
    assert stream.result == original


@settings(max_examples=300, deadline=None)
@given(originals(), st.data(), cuts)
def test_an_omission_line_deletes_nothing(original: str, data: st.DataObject, sizes: list[int]) -> None:
    lines = [content(x) for x in split_lines(original.lstrip(BOM))]
    if any(map(is_omission, lines)):
        return
    at = data.draw(st.integers(0, len(lines)))
    size = data.draw(st.integers(0, len(lines) - at))
    new = [*lines[:at], data.draw(st.sampled_from(OMITS)), *lines[at + size :]]
    _, stream = run(original, "".join(x + "\n" for x in new), sizes)
    assert keys(stream.result) == keys(original)
    assert stream.omissions or not any(x.strip() for x in lines)


@settings(max_examples=300, deadline=None)
@given(st.data(), cuts)
def test_lines_behind_an_omission_line_survive_edits_around_it(data: st.DataObject, sizes: list[int]) -> None:
    marks = data.draw(st.lists(st.sampled_from(["}", "", "value"]), min_size=3, max_size=20))
    lines = [f"value_{at} = {at}" if mark == "value" else mark for at, mark in enumerate(marks)]
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(lines)), st.integers(0, len(lines)))))
    extra = st.sampled_from(["added()", "}", ""])
    above = data.draw(edited("".join(x + "\n" for x in lines[:first]), extra))
    below = data.draw(edited("".join(x + "\n" for x in lines[last:]), extra))
    _, stream = run("".join(x + "\n" for x in lines), above + "# ... rest unchanged\n" + below, sizes)
    result = iter(keys(stream.result))
    assert all(x in result for x in lines[first:last] if x), "the lines left out, in order"


@settings(max_examples=300, deadline=None)
@given(originals(), st.data(), cuts, st.booleans())
def test_hostile_texts_raise_nothing_and_omissions_among_them_lose_nothing_unsaid(
    original: str, data: st.DataObject, sizes: list[int], complete: bool
) -> None:
    extra = st.one_of(line, st.sampled_from(OMITS), st.text(max_size=40))
    hunks, stream = run(
        original, data.draw(edited(original, extra)), sizes, complete=complete, exact=data.draw(st.booleans())
    )
    assert one_by_one(original, hunks) == stream.result
    if stream.halted:
        assert stream.kept_from is None or stream.result.endswith("".join(split_lines(original)[stream.kept_from :]))
