"""What of a rewrite is in the buffer, whatever the user did meanwhile. Pure: changes in, places of hunks out.

Hunks count in lines of the text as it was when the job began. The ledger knows for every line of the buffer where it
comes from (an original line, a hunk, the user), so it can tell at any time where a hunk belongs, and whether somebody
has touched what it replaces. The only witness of a hunk being in the buffer, or out of it again, is the editor's own
change: a change that turns a hunk's old lines into its new ones puts it in, the reverse takes it out (an undo).
"""

from collections.abc import Iterator, Sequence

from specd.daemon.rewrite.lines import line_end
from specd.lsp.entry import Entry, Flip
from specd.lsp.splice import Splice, blocks_of, canonical, trimmed

_USER = -1  # a line the user added


class Ledger:
    """The account of one job. `lines` is the buffer, last line included (see documents.py)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.entries: list[Entry] = []
        self.is_touched = False  # somebody else changed the buffer
        self._original = tuple(lines)
        self._cells = list(range(len(lines)))
        """Of each line of the buffer: i < n is original line i as it was, n + h a line of hunk h as it was made;
        -(v + 2) is what became of a line v under the user's hands."""

    def add(self, start: int, end: int, new: Sequence[str]) -> None:
        """Take a hunk over. They come top to bottom; one that follows right behind one not sent yet is joined to it."""
        last = self.entries[-1] if self.entries else None
        if last is not None and last.end == start and last.is_pending and not last.is_asked:
            last.end, last.new = end, (*last.new, *new)
            last.old = self._original[last.start : end]
            last.cut()
            return
        self.entries.append(Entry(len(self.entries), start, end, self._original[start:end], tuple(new)))

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
        if entry.is_in:
            return self._lines_at([len(self._original) + entry.number] * len(entry.new), entry.start, entry.end)
        if entry.outside is not None:
            return self._place_adopted(entry)
        return self._lines_at(list(range(entry.start, entry.end)), entry.start, entry.end)

    def remains(self, entry: Entry) -> tuple[int, int]:
        """The lines [start, end) of the buffer that stand for what the hunk was to replace, whatever the user made of
        it; empty where nothing is left.
        """
        above = (at for at in range(len(self._cells) - 1, -1, -1) if 0 <= self._span(self._cells[at])[1] <= entry.start)
        start = next(above, -1) + 1
        below = (at for at in range(start, len(self._cells)) if self._span(self._cells[at])[0] >= entry.end)
        end = next(below, len(self._cells))
        inside = [at for at in range(start, end) if self._cells[at] != _USER]
        return (inside[0], inside[-1] + 1) if inside else (start, end)

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
        entry.old, entry.new, entry.outside = old, new, tuple(self._cells[start:end])
        entry.is_conflict, entry.is_wanted = False, True
        entry.cut()

    def _place_adopted(self, entry: Entry) -> int | None:
        cells, lines = self._outside(entry), list(entry.old)
        if not cells:
            return self.remains(entry)[0]
        places = range(len(self._cells) - len(cells) + 1)
        ends = ((at, at + len(cells)) for at in places if self._cells[at] == cells[0])
        return next((at for at, end in ends if self._cells[at:end] == cells and self.lines[at:end] == lines), None)

    def _outside(self, entry: Entry) -> list[int]:
        return list(range(entry.start, entry.end) if entry.outside is None else entry.outside)

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
        able = [entry for entry in self.entries if entry.may_be(cut)]
        for entry in sorted(able, key=lambda entry: not entry.is_asked):
            change = self.change_for(entry)
            if change is not None and canonical(change, self.lines) == cut:
                return [self._flip(entry, change)]
        return []

    def _match_several(self, splice: Splice) -> list[Flip]:
        """All hunks asked for at once, told as one change."""
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
        made = [len(self._original) + entry.number] * len(entry.new)
        self._cells[change.start : change.end] = made if entry.is_in else self._outside(entry)
        if flip.by_user:
            entry.is_wanted = entry.is_in
        return flip

    def _take_foreign(self, splice: Splice) -> None:
        self.is_touched = True
        old = self._cells[splice.start : splice.end]
        last = len(old) - 1
        self._cells[splice.start : splice.end] = [
            _touched(old[min(at, last)]) if old else _USER for at in range(len(splice.new))
        ]

    def _lines_at(self, cells: list[int], start: int, end: int) -> int | None:
        if not cells:
            return self._gap(start, end)
        try:
            at = self._cells.index(cells[0])
        except ValueError:
            return None
        return at if self._cells[at : at + len(cells)] == cells else None

    def _gap(self, start: int, end: int) -> int | None:
        """Where the buffer goes on with original line `end` right behind what stands for the one before `start`."""
        for at in self._candidates(start, end):
            if self._reaches(at, start, below=False) and self._reaches(at, end, below=True):
                return at
        return None

    def _candidates(self, start: int, end: int) -> Iterator[int]:
        count = len(self._original)
        for value in (end, *(count + entry.number for entry in self.entries if entry.start == end and entry.is_in)):
            for cell in (value, _touched(value)):
                if cell in self._cells:
                    yield self._cells.index(cell)
        for value in (
            start - 1,
            *(count + entry.number for entry in self.entries if entry.end == start and entry.is_in),
        ):
            for cell in (value, _touched(value)):
                if value >= 0 and cell in self._cells:
                    yield len(self._cells) - self._cells[::-1].index(cell)
        yield from (0, len(self._cells))

    def _reaches(self, at: int, line: int, *, below: bool) -> bool:
        """Whether the buffer's line below (or above) the gap `at` is the original's there, deletions of ours aside."""
        if below:
            reach = self._span(self._cells[at])[0] if at < len(self._cells) else len(self._original)
        else:
            reach = self._span(self._cells[at - 1])[1] if at > 0 else 0
        gone = {
            (entry.end if below else entry.start): (entry.start if below else entry.end)
            for entry in self.entries
            if entry.is_in and not entry.new
        }
        while reach != line and reach in gone:
            reach = gone[reach]
        return reach == line

    def _span(self, cell: int) -> tuple[int, int]:
        """The original lines that a line of the buffer stands for; (-1, -1) for none."""
        value = -(cell + 2) if cell < _USER else cell
        if value == _USER:
            return -1, -1
        if value < len(self._original):
            return value, value + 1
        entry = self.entries[value - len(self._original)]
        return entry.start, entry.end


def _touched(cell: int) -> int:
    return cell if cell <= _USER else -(cell + 2)
