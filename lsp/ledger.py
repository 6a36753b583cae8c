"""What of a rewrite is in the buffer, whatever the user did meanwhile. Pure: changes in, places of hunks out.

Hunks count in lines of the text as it was when the job began. The ledger knows for every line of the buffer where it
comes from (an original line, a hunk, the user), so it can tell at any time where a hunk belongs, and whether somebody
has touched what it replaces. The only witness of a hunk being in the buffer, or out of it again, is the editor's own
change: a change that turns a hunk's old lines into its new ones puts it in, the reverse takes it out (an undo).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence

from specd.daemon.rewrite.lines import line_end
from specd.lsp.cells import Cells
from specd.lsp.entry import Entry, Flip, Shape, shape_of
from specd.lsp.splice import Splice, blocks_of, canonical, trimmed


class Ledger:
    """The account of one job. `lines` is the buffer, last line included (see documents.py)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.entries: list[Entry] = []
        self.is_touched = False  # somebody else changed the buffer
        self._original = tuple(lines)
        self._cells = Cells(len(lines), self.entries)
        self._alike: defaultdict[Shape, list[int]] = defaultdict(list)  # hunks by what their going in or out looks like

    def add(self, start: int, end: int, new: Sequence[str]) -> None:
        """Take a hunk over. They come top to bottom; one that follows right behind one not sent yet is joined to it."""
        last = self.entries[-1] if self.entries else None
        if last is not None and last.end == start and last.is_pending and not last.is_asked:
            last.end, last.new = end, (*last.new, *new)
            last.old = self._original[last.start : end]
            self._register(last)
            return
        self.entries.append(Entry(len(self.entries), start, end, self._original[start:end], tuple(new)))
        self._register(self.entries[-1])

    def _register(self, entry: Entry) -> None:
        entry.cut()
        for shape in entry.shapes:
            numbers = self._alike[shape]
            if (at := bisect_left(numbers, entry.number)) == len(numbers) or numbers[at] != entry.number:
                insort(numbers, entry.number)

    def take(self, *, again: bool = False) -> list[tuple[Entry, Splice]]:
        """Hunks that wait, with what to change in the buffer as it is now; those without a place become conflicts, or
        are wanted no more if the user has made the same change.

        again: give conflicts another chance.
        """
        found = []
        for entry in self.entries:
            if entry.is_pending or (again and entry.is_in != entry.is_wanted):
                splice = self.change_for(entry)
                entry.is_conflict = splice is None
                if splice is not None:
                    found.append((entry, splice))
                elif not entry.is_in and self._is_there(entry):
                    entry.is_wanted = entry.is_conflict = False
        return found

    def _is_there(self, entry: Entry) -> bool:
        """Whether the user has made of the hunk's lines what the hunk would."""
        start, end = self.remains(entry)
        return tuple(self.lines[start:end]) == entry.new

    def place(self, entry: Entry) -> int | None:
        """The line where the hunk's lines, old or new, stand untouched; None if they do not."""
        if not entry.is_in and entry.outside is not None:
            return self._place_adopted(entry)
        cells = self._cells.made(entry) if entry.is_in else range(entry.start, entry.end)
        return self._cells.find(cells) if cells else self._cells.gap(entry.start, entry.end)

    def remains(self, entry: Entry) -> tuple[int, int]:
        """The lines [start, end) of the buffer that stand for what the hunk was to replace, whatever the user made of
        it; empty where nothing is left.
        """
        return self._cells.remains(entry.start, entry.end)

    def lines_of(self, entry: Entry) -> tuple[int, int]:
        """The lines [start, end) where a user finds the hunk: those that it made, or else was to replace."""
        start, end = self._cells.own(entry) if entry.is_in else (0, 0)
        return (start, end) if start < end else self.remains(entry)

    def adopt(self, entry: Entry) -> None:
        """Let a hunk in conflict replace what the user made of its lines; one that only adds is put behind them."""
        start, end = self.remains(entry)
        old = tuple(self.lines[start:end])
        new = entry.new
        if entry.start == entry.end:
            new = (*old, *new) if not old or line_end(old[-1]) else (*new, *old)
        if (
            old and new and bool(line_end(old[-1])) != bool(line_end(new[-1]))
        ):  # the document's last line has no end, and no other
            new = (*new, "") if line_end(new[-1]) else (*new[:-1], new[-1] + line_end(old[-1]))
        entry.old, entry.new, entry.outside = old, new, self._cells.of(start, end)
        entry.is_conflict, entry.is_wanted = False, True
        self._register(entry)

    def _place_adopted(self, entry: Entry) -> int | None:
        if not entry.outside:
            return self.remains(entry)[0]
        places = self._cells.find_between(entry.outside, entry.start, entry.end)
        return next((at for at in places if tuple(self.lines[at : at + len(entry.old)]) == entry.old), None)

    def change_for(self, entry: Entry) -> Splice | None:
        """What would put the hunk in, or take it out if it is in; None if its lines are not as they were."""
        at = self.place(entry)
        if at is None:
            return None
        present, other = (entry.new, entry.old) if entry.is_in else (entry.old, entry.new)
        if tuple(self.lines[at : at + len(present)]) != present:
            return None
        return Splice(at, present, other)

    def observe(self, splice: Splice) -> list[Flip]:
        """Take over a change of the buffer; the hunks that it put in or took out."""
        cut = canonical(splice, self.lines)
        if not cut.old and not cut.new:
            return []
        found = self._match(cut)
        if not found:
            found = self._match_several(splice)
        if not found:
            blocks = blocks_of(splice)
            if len(blocks) > 1:
                return [flip for block in blocks for flip in self.observe(block)]
            self._take_foreign(trimmed(splice))
        self.lines[splice.start : splice.end] = splice.new
        return found

    def _match(self, cut: Splice) -> list[Flip]:
        shape = shape_of(cut.old, cut.new)
        numbers = self._alike.get(shape, [])
        for is_asked in (True, False):
            for entry in self._nearest(numbers, cut.start):
                if entry.is_asked == is_asked and entry.may_be(shape):
                    change = self.change_for(entry)
                    if change is not None and canonical(change, self.lines) == cut:
                        return [self._flip(entry, change)]
        return []

    def _nearest(self, numbers: Sequence[int], at: int) -> Iterator[Entry]:
        """Hunks by number, those first that are near line `at` of the buffer."""
        line = self._cells.line_at(at)
        below = bisect_left(numbers, line, key=lambda number: self.entries[number].start)
        above = below - 1
        while above >= 0 or below < len(numbers):
            up = line - self.entries[numbers[above]].start if above >= 0 else None
            down = self.entries[numbers[below]].start - line if below < len(numbers) else None
            if down is None or (up is not None and up < down):
                yield self.entries[numbers[above]]
                above -= 1
            else:
                yield self.entries[numbers[below]]
                below += 1

    def _match_several(self, splice: Splice) -> list[Flip]:
        """All hunks asked for at once, told as one change."""
        if max(len(splice.old), len(splice.new)) < 2:
            return []
        inside = []
        for entry in self.entries:
            if entry.is_asked and (change := self.change_for(entry)) is not None:
                part = trimmed(change)
                if splice.start <= part.start and part.end <= splice.end:
                    inside.append((part, change, entry))
        if len(inside) < 2:
            return []
        after: list[str] = []
        at = splice.start
        for part, _, _ in inside:
            after += [*self.lines[at : part.start], *part.new]
            at = part.end
        if (*after, *self.lines[at : splice.end]) != splice.new:
            return []
        return [self._flip(entry, change) for _, change, entry in reversed(inside)]

    def _flip(self, entry: Entry, change: Splice) -> Flip:
        flip = Flip(entry, by_user=not entry.is_asked)
        entry.is_in, entry.is_asked = not entry.is_in, False
        outside = range(entry.start, entry.end) if entry.outside is None else entry.outside
        self._cells.replace(change.start, change.end, self._cells.made(entry) if entry.is_in else outside)
        if flip.by_user:
            entry.is_wanted = entry.is_in
        return flip

    def _take_foreign(self, splice: Splice) -> None:
        self.is_touched = True
        self._cells.touch(splice.start, splice.end, len(splice.new))
