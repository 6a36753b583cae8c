"""A hunk in the ledger's account, and what becomes of it. Values only."""

from dataclasses import dataclass

from specd.lsp.splice import Splice, trimmed

Shape = tuple[tuple[str, ...], tuple[str, ...]]


def shape_of(old: tuple[str, ...], new: tuple[str, ...]) -> Shape:
    """What a change in canonical form has in common with all changes that may be the same."""
    if old and new:
        return old, new
    return tuple(sorted(old)), tuple(sorted(new))  # sliding an insertion or deletion only turns its lines


@dataclass
class Entry:
    """One hunk: original lines [start, end), which were `old`, become `new`.

    is_in: the buffer has the new lines. is_wanted: it should. is_asked: the editor was asked for that, and has not
    shown it yet. is_conflict: it could not be placed. outside: the ledger's cells of the lines it replaces, where those
    are not the original's (see `Ledger.adopt`).
    """

    number: int
    start: int
    end: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    is_in: bool = False
    is_wanted: bool = True
    is_asked: bool = False
    is_conflict: bool = False
    outside: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.cut()

    def cut(self) -> None:
        """Keep the part of the lines that differs, to be compared with what the editor tells."""
        part = trimmed(Splice(0, self.old, self.new))
        self.shapes = shape_of(part.old, part.new), shape_of(part.new, part.old)

    def may_be(self, shape: Shape) -> bool:
        """Whether a change of this shape may be this hunk's going in, or out: cheap, and right wherever it says no."""
        return self.shapes[self.is_in] == shape

    @property
    def is_pending(self) -> bool:
        return self.is_in != self.is_wanted and not self.is_conflict


@dataclass(frozen=True)
class Flip:
    """A hunk went in or out (see the entry's is_in). by_user: nobody had asked the editor for it."""

    entry: Entry
    by_user: bool
