"""A KeyboardInterrupt at a chosen line of what runs, as Ctrl-C raises one between any two."""

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupting:
    """Raises KeyboardInterrupt at the at-th line (from 1) of what runs inside, in the functions whose frames it
    `follows`, and ends it. lines: how many were run. is_through: nothing was interrupted, since there are fewer."""

    def __init__(self, at: int, follows: Callable[[FrameType], bool], *, spares: int = 0) -> None:
        """spares: a line number that does not count, and where nothing is raised."""
        self._at, self._follows, self._spares = at, follows, spares
        self.lines = 0
        self.is_through = False

    def __enter__(self) -> "Interrupting":
        self._previous = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> bool:
        sys.settrace(self._previous)
        self.is_through = kind is None
        return kind is KeyboardInterrupt and self.lines == self._at

    def _trace(self, frame: FrameType, kind: str, _: object) -> Any:
        if not self._follows(frame):
            return None
        if kind == "line" and frame.f_lineno != self._spares:
            self.lines += 1
            if self.lines == self._at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._trace
