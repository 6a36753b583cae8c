"""A line hunk, how hunks are applied, and which bytes the new lines of one get."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from specd.daemon.rewrite.lines import BOM, line_end, split_lines

_CRLF = "\r\n"


@dataclass(frozen=True)
class Hunk:
    """Lines [start_line, end_line) of the original region become `new_lines`; all lines with their line ends.

    Line numbers are 0-based and always the original's, whatever other hunks did. The hunks of a stream come top to
    bottom and do not overlap.
    """

    start_line: int
    end_line: int
    new_lines: tuple[str, ...]
    old_lines: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """By how many lines the text gets shorter; negative where it gets longer."""
        return len(self.old_lines) - len(self.new_lines)


def apply_hunks(original: str, hunks: Iterable[Hunk]) -> str:
    """`original` with all hunks applied. ValueError if they overlap, are out of order, or are for another text."""
    lines = split_lines(original)
    parts: list[str] = []
    at = 0
    for hunk in hunks:
        if not at <= hunk.start_line <= hunk.end_line <= len(lines):
            raise ValueError(f"hunk for lines {hunk.start_line}-{hunk.end_line} is out of place (after line {at})")
        if tuple(lines[hunk.start_line : hunk.end_line]) != hunk.old_lines:
            raise ValueError(f"lines {hunk.start_line}-{hunk.end_line} are not those that the hunk was made for")
        parts += lines[at : hunk.start_line]
        parts += hunk.new_lines
        at = hunk.end_line
    return "".join([*parts, *lines[at:]])


class HunkMaker:
    """Makes hunks of one region: gives new lines their line ends, keeps a byte order mark first.

    lines: the region's, with their ends. eol: for new lines where no line has an end to go by.
    """

    def __init__(self, lines: Sequence[str], eol: str) -> None:
        self._lines = lines
        self._eol = eol
        self._marks = lines[0][: len(lines[0]) - len(lines[0].lstrip(BOM))] if lines else ""

    def make(self, start: int, end: int, contents: Sequence[str], *, open_end: bool = False) -> Hunk:
        """Lines [start, end) become `contents` (without ends); open_end: the last of them gets no line end."""
        new = [text + self._end_for(start + at, start, end) for at, text in enumerate(contents)]
        if open_end:
            new[-1] = contents[-1]
        if start == 0 and self._marks:
            if (end == 0 or not new) and end < len(self._lines):  # the line after it is, or becomes, the first one
                new.append(self._lines[end].removeprefix(self._marks if end == 0 else ""))
                end += 1
            new = [self._marks + "".join(new[:1]), *new[1:]]
        if not new and self._joins(start, end):  # deleting [start, end) would make one line of the two around it
            new = [_CRLF]
            end += 1
        self._part(new, start, end)
        return Hunk(start, end, tuple(new), tuple(self._lines[start:end]))

    def _joins(self, start: int, end: int) -> bool:
        return start > 0 and end < len(self._lines) and _is_one_end(self._lines[start - 1], self._lines[end])

    def _part(self, new: list[str], start: int, end: int) -> None:
        """Where a line ends in CR and the next one is an LF alone, both would be one line: one of them gets CRLF."""
        above = self._lines[start - 1] if start > 0 else ""
        for at, line in enumerate(new):
            if _is_one_end(above, line):
                new[at] = _CRLF
            above = new[at]
        if new and end < len(self._lines) and _is_one_end(new[-1], self._lines[end]):
            new[-1] = new[-1][:-1] + _CRLF

    def _end_for(self, line: int, start: int, end: int) -> str:
        """The end of the line it stands for; else of the nearest line above it, else of the one below."""
        for near in chain(range(min(line, end - 1), start - 2, -1), [end]):
            if 0 <= near < len(self._lines) and (found := line_end(self._lines[near])):
                return found
        return self._eol


def _is_one_end(above: str, below: str) -> bool:
    return above.endswith("\r") and below.startswith("\n")
