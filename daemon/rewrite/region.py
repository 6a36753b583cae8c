"""Skeleton: the signatures others import; the bodies follow."""

from dataclasses import dataclass
from typing import Literal


class RegionError(Exception):
    """The region cannot be taken; the message says why and what to do."""


@dataclass(frozen=True)
class Region:
    """Whole lines of a text: [start_line, end_line), 0-based; text[start:end] are those lines with their line ends."""

    start_line: int
    end_line: int
    start: int
    end: int
    kind: Literal["selection", "definition", "statement", "file"]
    label: str


def language_of(path: str) -> str | None:
    raise NotImplementedError


def lines_of_selection(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
    """(line, column) pairs, 0-based, end exclusive -> half-open lines for `select_region(lines=)`."""
    raise NotImplementedError


def select_region(
    text: str, *, lines: tuple[int, int] | None = None, at: int | None = None, language: str | None = None
) -> Region:
    raise NotImplementedError
