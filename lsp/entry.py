"""A hunk in the ledger's account, and what becomes of it. Values only."""

from dataclasses import dataclass

from specd.lsp.splice import Splice, trimmed


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
        self._core = part.old, part.new

    def may_be(self, change: Splice) -> bool:
        """Whether a canonical change may be this hunk's going in, or out: cheap, and right wherever it says no."""
        present, other = self._core[::-1] if self.is_in else self._core
        if present and other:
            return (present, other) == (change.old, change.new)
        if (len(present), len(other)) != (len(change.old), len(change.new)):
            return False
        return sorted(present) == sorted(change.old) and sorted(other) == sorted(change.new)  # sliding only turns them

    @property
    def is_pending(self) -> bool:
        return self.is_in != self.is_wanted and not self.is_conflict


@dataclass(frozen=True)
class Flip:
    """A hunk went in or out (see the entry's is_in). by_user: nobody had asked the editor for it."""

    entry: Entry
    by_user: bool
