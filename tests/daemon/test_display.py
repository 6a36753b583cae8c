"""What the user sees: diffs that tools can apply, and one line of statistics."""

import io
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specd.daemon import display
from specd.daemon.events import HunkReady, Loading, Progress, Queued, RegionChosen, Summary
from specd.daemon.rewrite.lines import split_lines

SUMMARY = Summary(
    hunks=6, lines=9, tokens=412, steps=24, accepted=387, total_seconds=2.61, load_seconds=1.5, queue_seconds=0.5
)


def test_the_statistics_line() -> None:
    assert (
        display.statistics("shapes.jl", SUMMARY)
        == "shapes.jl: 9 lines in 6 hunks · 412 tokens in 0.61 s · 17.2 tokens/step · 94 % drafted"
        " · 1.5 s to load the model"
    )
    assert display.speed(SUMMARY.replace(load_seconds=0.9)).endswith("% drafted")
    assert display.statistics("a", Summary(hunks=1, lines=1)).startswith("a: 1 line in 1 hunk · 0 tokens in 0.00 s")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Queued(3), "waiting, 3 in the queue"),
        (Loading(0.4, "loading layer 4 of 8"), "loading the model, 40 % (loading layer 4 of 8)"),
        (Progress(100, 10, 512.3, 0.25), " 25 % · 100 tokens · 512 tokens/s · 10.0 tokens/step"),
        (RegionChosen("1", 0, 2, "file", "the whole file"), ""),
    ],
)
def test_progress_in_words(event: object, text: str) -> None:
    assert display.progress_text(event) == text  # type: ignore[arg-type]


def test_no_progress_is_written_where_nobody_looks() -> None:
    stream = io.StringIO()
    line = display.ProgressLine("a", stream)
    line.show(Queued(1))
    line.clear()
    assert stream.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_line_is_written_again_only_when_it_changes_and_fits_a_terminal_that_knows_no_size() -> None:
    stream = Terminal()
    line = display.ProgressLine("a.py", stream)
    for _ in range(3):
        line.show(Loading(0.0, "starting torch"))
    line.show(Progress(100, 10, 512.3, 0.25))
    line.clear()
    line.clear()
    assert stream.getvalue() == (
        "\r\x1b[Ka.py: loading the model, 0 % (starting torch)"
        "\r\x1b[Ka.py:  25 % · 100 tokens · 512 tokens/s · 10.0 tokens/step"
        "\r\x1b[K"
    )


words = st.sampled_from(["a", "b", "c", "é", "x y", ""])
line = st.builds(lambda word, end: word + end, words, st.sampled_from(["\n", "\n", "\r\n"]))


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, list[HunkReady]]:
    """A text of lines and hunks in order that do not overlap; the last line may lack its end on either side."""
    lines = draw(st.lists(line, min_size=1, max_size=30))
    if draw(st.booleans()):
        lines[-1] = "last"
    marks = sorted(draw(st.sets(st.integers(0, len(lines)), max_size=8)))
    hunks = []
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        new = draw(st.lists(line, max_size=3))
        if end == len(lines) and new and draw(st.booleans()):
            new[-1] = "new last"
        hunks.append(HunkReady(start, end, tuple(new)))
    return "".join(lines), hunks


def applied(text: str, hunks: list[HunkReady]) -> str:
    lines = split_lines(text)
    for hunk in reversed(hunks):
        lines[hunk.start_line : hunk.end_line] = hunk.new_lines
    return "".join(lines)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes())
def test_git_applies_the_diff_to_the_very_bytes(tmp_path: Path, change: tuple[str, list[HunkReady]]) -> None:
    text, hunks = change
    after = applied(text, hunks)
    if text in ("", after) or after == "":
        return  # git has other words for these
    path = tmp_path / "file.txt"
    path.write_bytes(text.encode())
    patch = display.unified_diff(text, hunks, "file.txt")
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, input=patch.encode(), cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, (done.stderr.decode(), patch)
    assert path.read_bytes() == after.encode()


def test_the_diff_has_three_lines_around_a_change_and_one_block_for_near_ones() -> None:
    text = "".join(f"{number}\n" for number in range(20))
    diff = display.unified_diff(text, [HunkReady(5, 6, ("five\n",)), HunkReady(10, 10, ("ten\n",))], "f")
    assert diff.splitlines()[:3] == ["--- a/f", "+++ b/f", "@@ -3,11 +3,12 @@"]
    assert diff.count("@@ -") == 1
    apart = display.unified_diff(text, [HunkReady(2, 3, ()), HunkReady(15, 16, ())], "/abs/f")
    assert apart.splitlines()[:3] == ["--- /abs/f", "+++ /abs/f", "@@ -1,6 +1,5 @@"]
    assert "@@ -13,7 +12,6 @@" in apart


def test_colours_do_not_change_the_text() -> None:
    text = "a\nb\r\nc"
    hunks = [HunkReady(1, 3, ("B\r\n", "C"))]
    plain = display.unified_diff(text, hunks, "f")
    coloured = display.unified_diff(text, hunks, "f", colour=True)
    assert "\x1b[31m-b\x1b[0m\r\n" in coloured
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain
