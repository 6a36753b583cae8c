"""Where each line of the buffer comes from. Values only.

A cell a line: i < n is original line i as it was, n + h a line of hunk h as it was made, -(v + 2) what became of a line
v under the user's hands, USER a line that the user added. Cells other than USER stand in the order of the original
lines that they stand for, so all is found by bisection: a lookup costs no more in a large file than in a small one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from specd.lsp.entry import Entry

USER: Final = -1


class Cells:
    """The cells of a buffer that began with `count` lines. `entries` are the hunks, by number; the list may grow."""

    def __init__(self, count: int, entries: Sequence[Entry]) -> None:
        self._cells = list(range(count))
        self._count = count
        self._entries = entries

    def __len__(self) -> int:
        return len(self._cells)

    def made(self, entry: Entry) -> list[int]:
        """The cells of a hunk's new lines."""
        return [self._count + entry.number] * len(entry.new)

    def of(self, start: int, end: int) -> tuple[int, ...]:
        return tuple(self._cells[start:end])

    def replace(self, start: int, end: int, cells: Sequence[int]) -> None:
        self._cells[start:end] = cells

    def touch(self, start: int, end: int, size: int) -> None:
        """Somebody else made `size` lines of the lines [start, end)."""
        old = self._cells[start:end]
        last = len(old) - 1
        self._cells[start:end] = [_touched(old[min(at, last)]) if old else USER for at in range(size)]

    def find(self, cells: Sequence[int]) -> int | None:
        """The first line of a run of just these cells, the first being no USER; None if they do not stand together."""
        return next(self._runs(cells, self._around(cells[0])), None)

    def find_between(self, cells: Sequence[int], start: int, end: int) -> Iterator[int]:
        """The same, all of them, among what stands for the original lines [start, end) or between them."""
        return self._runs(cells, range(*self._between(start, end)))

    def _runs(self, cells: Sequence[int], places: range) -> Iterator[int]:
        wanted, size = list(cells), len(cells)
        return (at for at in places if self._cells[at] == wanted[0] and self._cells[at : at + size] == wanted)

    def gap(self, start: int, end: int) -> int | None:
        """Where the buffer goes on with original line `end` right behind what stands for the one before `start`."""
        at = self._first(end)
        return at if self._reaches(at, start, below=False) and self._reaches(at, end, below=True) else None

    def remains(self, start: int, end: int) -> tuple[int, int]:
        """The lines [first, behind) that stand for the original lines [start, end), whatever became of them, and for
        nothing else; empty where nothing is left.
        """
        first, behind = self._between(start, end)
        inside = [at for at in range(first, behind) if self._cells[at] != USER]
        return (inside[0], inside[-1] + 1) if inside else (first, behind)

    def _between(self, start: int, end: int) -> tuple[int, int]:
        """The lines [first, behind) below what stands for original line start - 1, and above what does for `end`."""
        first = self._first_past(start)
        while first > 0 and self._cells[first - 1] == USER:
            first -= 1
        behind = max(first, self._first(end))
        while behind < len(self._cells) and self._cells[behind] == USER:
            behind += 1
        return first, behind

    def own(self, entry: Entry) -> tuple[int, int]:
        """The lines [first, behind) that a hunk made, touched since or not; empty if there are none."""
        value = self._count + entry.number
        found = [at for at in self._around(value) if self._cells[at] in (value, _touched(value))]
        return (found[0], found[-1] + 1) if found else (0, 0)

    def line_at(self, at: int) -> int:
        """The original line that stands at line `at` of the buffer, or below."""
        while at < len(self._cells) and self._cells[at] == USER:
            at += 1
        return self._span(self._cells[at])[0] if at < len(self._cells) else self._count

    def _around(self, cell: int) -> range:
        """The places where `cell` can be: where what stands for the same original line is."""
        line = self._span(cell)[0]
        return range(self._first(line), self._first(line + 1))

    def _first(self, line: int) -> int:
        """The first line of the buffer that stands for original line `line` or a later one."""
        return self._bisect(line, 0)

    def _first_past(self, line: int) -> int:
        """The first one that stands for something behind the gap above original line `line`."""
        return self._bisect(line + 1, 1)

    def _bisect(self, least: int, side: int) -> int:
        """The first place of which the span's start (side 0) or end (side 1) is `least` or more."""
        low, high = 0, len(self._cells)
        while low < high:
            middle = at = (low + high) // 2
            while at < high and self._cells[at] == USER:
                at += 1
            if at < high and self._span(self._cells[at])[side] < least:
                low = at + 1
            else:
                high = middle
        while low < len(self._cells) and self._cells[low] == USER:
            low += 1
        return low

    def _reaches(self, at: int, line: int, *, below: bool) -> bool:
        """Whether the buffer's line below (or above) the gap `at` is the original's there, deletions of ours aside."""
        if below:
            reach = self._span(self._cells[at])[0] if at < len(self._cells) else self._count
        else:
            reach = self._span(self._cells[at - 1])[1] if at > 0 else 0
        while reach != line:
            gone = self._deleted(reach, below=below)
            if gone is None:
                return False
            reach = gone.start if below else gone.end
        return True

    def _deleted(self, line: int, *, below: bool) -> Entry | None:
        """The hunk that took out the original lines that end (or begin) at `line`; hunks stand in order."""
        low, high = 0, len(self._entries)
        while low < high:
            middle = (low + high) // 2
            entry = self._entries[middle]
            if (entry.end if below else entry.start) < line:
                low = middle + 1
            else:
                high = middle
        while low < len(self._entries):
            entry = self._entries[low]
            if (entry.end if below else entry.start) != line:
                return None
            if entry.is_in and not entry.new and entry.start != entry.end:
                return entry
            low += 1
        return None

    def _span(self, cell: int) -> tuple[int, int]:
        """The original lines that a line of the buffer stands for; (-1, -1) for none."""
        value = -(cell + 2) if cell < USER else cell
        if value == USER:
            return -1, -1
        if value < self._count:
            return value, value + 1
        entry = self._entries[value - self._count]
        return entry.start, entry.end


def _touched(cell: int) -> int:
    return cell if cell <= USER else -(cell + 2)
