"""Where the host's time goes: calls are wrapped, and each part's own seconds counted, without those of parts inside."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import Any

CLOCKS: dict[str, Callable[[], float]] = {"cpu": thread_time, "wall": perf_counter}

OTHER = "loop"  # what is inside no wrapped call


class Clock:
    """`spent`: seconds by part since the last `start`, by one of CLOCKS: the thread's own time, to which other programs
    add nothing, or the wall's. A wrapped call costs a microsecond more, or two. whole: parts to which all belongs that
    happens inside."""

    def __init__(self, clock: str = "cpu", whole: frozenset[str] = frozenset()) -> None:
        self._whole = whole
        self._now = CLOCKS[clock]
        self.spent: dict[str, float] = defaultdict(float)
        self._part = OTHER
        self._since = 0.0

    def start(self) -> None:
        self.spent.clear()
        self._part, self._since = OTHER, self._now()

    def stop(self) -> dict[str, float]:
        """-> seconds by part since `start`."""
        now = self._now()
        self.spent[self._part] += now - self._since
        self._since = now
        return dict(self.spent)

    @contextmanager
    def timed(self, wrapped: list[tuple[object, str, str]]) -> Iterator[None]:
        """Inside: each (owner, attribute, part) counts as that part. Owners: objects, classes or modules."""
        with self._replaced([(owner, name, self._wrap(getattr(owner, name), part)) for owner, name, part in wrapped]):
            yield

    def _wrap(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(call)
        def inside(*args: Any, **more: Any) -> Any:
            if self._part in self._whole:
                return call(*args, **more)
            outer, now = self._part, self._now()
            self.spent[outer] += now - self._since
            self._part, self._since = part, now
            try:
                return call(*args, **more)
            finally:
                now = self._now()
                self.spent[part] += now - self._since
                self._part, self._since = outer, now

        return inside

    @staticmethod
    @contextmanager
    def _replaced(new: list[tuple[object, str, Any]]) -> Iterator[None]:
        old = [(owner, name, vars(owner).get(name)) for owner, name, _ in new]
        for owner, name, value in new:
            setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, before in old:
                if before is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
