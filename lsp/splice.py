"""A change of a buffer in whole lines, and the forms of it that can be compared. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass

from specd.daemon.rewrite.diff import changed_blocks

_SLIDE = 20_000  # lines that a block of equal lines is followed up


@dataclass(frozen=True)
class Splice:
    """Lines [start, start + len(old)) were `old` and became `new`; all lines with their line ends."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def end(self) -> int:
        """The line behind the old ones."""
        return self.start + len(self.old)


def trimmed(splice: Splice) -> Splice:
    """Without the lines at both ends that stay as they are."""
    old, new = splice.old, splice.new
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if not head and not tail:
        return splice
    return Splice(splice.start + head, old[head : len(old) - tail], new[head : len(new) - tail])


def canonical(splice: Splice, above: Sequence[str]) -> Splice:
    """Trimmed, and a pure insertion or deletion as far up as the same text results: one form for what looks the same.

    above: the buffer's lines, of which those before `splice.start` are read.
    """
    cut = trimmed(splice)
    if bool(cut.old) == bool(cut.new):
        return cut
    block, start = cut.new or cut.old, cut.start
    size = len(block)
    moved = 0
    while start > moved and moved < _SLIDE and above[start - moved - 1] == _behind(block, above, start, moved):
        moved += 1
    if not moved:
        return cut
    around = (*above[start - moved : start], *block)[:size]
    return Splice(start - moved, around if cut.old else (), around if cut.new else ())


def _behind(block: tuple[str, ...], above: Sequence[str], start: int, moved: int) -> str:
    """The last line of the block when it has been moved up by `moved` lines."""
    size = len(block)
    return block[size - 1 - moved] if moved < size else above[start - moved - 1 + size]


def blocks_of(splice: Splice) -> list[Splice]:
    """The parts of `splice` that differ, bottom first, each in lines of the buffer as it is before the splice."""
    found = [
        Splice(splice.start + a0, splice.old[a0:a1], splice.new[b0:b1])
        for a0, a1, b0, b1 in changed_blocks(splice.old, splice.new)
    ]
    return found[::-1]
