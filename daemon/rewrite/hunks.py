"""Skeleton: the signatures others import; the bodies follow."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Hunk:
    """Lines [start_line, end_line) of the original region become `new_lines`; both with their line ends."""

    start_line: int
    end_line: int
    new_lines: tuple[str, ...]
    old_lines: tuple[str, ...]


class HunkStream:
    result: str

    def __init__(
        self, original: str, *, indent: str = "", eol: str = "\n", exact: bool = False, language: str | None = None
    ) -> None:
        raise NotImplementedError

    def push(self, text: str) -> list[Hunk]:
        raise NotImplementedError

    def finish(self, *, complete: bool) -> list[Hunk]:
        raise NotImplementedError


def apply_hunks(original: str, hunks: Iterable[Hunk]) -> str:
    raise NotImplementedError
