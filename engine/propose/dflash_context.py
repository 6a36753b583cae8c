"""A DFlash drafter's context: keys and values, in its own layers, of the positions that the target has committed.

It follows the target's cache: truncated with it, and forked with it, so that a prompt whose beginning is kept keeps the
drafter's state too. Committed positions only, so there is never a rejected row to take back. A position may be missing
(where the target's cache was reused without it): that breaks nothing, the drafter merely sees less. Keys carry their
position in their rotation, so the rows of a cache need not stand at their positions.
"""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from specd.engine.kv_cache import KVCache


class DFlashContext:
    """The rows of one sequence, in ascending positions, on the drafter's page pool. `length` is one beyond the last."""

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache
        self._runs: list[tuple[int, int]] = []  # (position, place) where each unbroken run of positions begins

    @property
    def length(self) -> int:
        """One beyond the last position held; 0 when empty."""
        if not self._runs:
            return 0
        position, place = self._runs[-1]
        return position + self.cache.length - place

    @property
    def rows(self) -> int:
        """How many positions are held."""
        return self.cache.length

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages of the drafter's pool that hold it."""
        return self.cache.pages

    def place(self, position: int) -> int:
        """How many of the positions held are below `position`: the cache row of the first that is not."""
        index = bisect_left(self._runs, position, key=lambda run: run[0]) - 1
        if index < 0:
            return 0
        first, place = self._runs[index]
        end = self._runs[index + 1][1] if index + 1 < len(self._runs) else self.cache.length
        return min(place + position - first, end)

    def truncate(self, length: int) -> None:
        """Forgets all positions >= length. Absolute and idempotent."""
        rows = self.place(max(length, 0))
        self.cache.truncate(rows)
        while self._runs and self._runs[-1][1] >= rows:
            self._runs.pop()

    def fork(self, length: int) -> "DFlashContext":
        """A second context with this one's positions below `length`, which may lie beyond its end; pages are shared."""
        rows = self.place(length)
        other = DFlashContext(self.cache.fork(rows))
        other._runs = [run for run in self._runs if run[1] < rows]
        return other

    def free(self) -> None:
        """Gives all pages back. Idempotent; the context is empty and may be used again."""
        self.truncate(0)

    @contextmanager
    def append(self, position: int, n: int) -> Iterator[Tensor]:
        """Inside: [n] int64 cache rows to fill with positions position..position+n-1; whatever was held from there on
        is forgotten first. The positions count once the block ends without an exception."""
        self.truncate(position)
        with self._reserved(n) as slots:
            yield slots
            if position != self.length or not self._runs:
                self._runs.append((position, self.cache.length))
            self.cache.advance(n)

    @contextmanager
    def held(self, position: int, n: int, extra: int) -> Iterator[None]:
        """As `append`, with room for `extra` scratch rows behind, for a pass that finds its cache rows itself: the
        device is not told of the pages."""
        self.truncate(position)
        try:
            self.cache.hold(n + extra)
            yield
            if n and (position != self.length or not self._runs):
                self._runs.append((position, self.cache.length))
            self.cache.advance(n)
        finally:
            self.cache.truncate(self.cache.length)

    @contextmanager
    def scratch(self, n: int) -> Iterator[Tensor]:
        """Inside: [n] int64 cache rows after the last one, for a block that leaves nothing behind."""
        with self._reserved(n) as slots:
            yield slots

    @contextmanager
    def _reserved(self, n: int) -> Iterator[Tensor]:
        try:
            yield self.cache.reserve(n)
        finally:
            self.cache.truncate(self.cache.length)  # gives back what was reserved and not kept

    def __del__(self) -> None:
        self.free()
