"""Instructions in comments: `# specd: make this iterative`, alone on a line, in or above what is to be rewritten."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from specd.daemon.rewrite.lines import content, is_blank, leading

_COMMENT: Final = re.compile(
    r"""\s*(?:\#+|//+|--+|;+|%+|/\*+|<!--|\(\*|["'])\s*specd:\s*(?P<text>\S.*?)\s*(?:\*+/|-->|\*\)|["'])?\s*""", re.I
)
_FAR: Final = 400  # lines above the cursor that are looked at
_CLOSES: Final = re.compile(r"\s*(?:[})\]]|end\b|else\b|elif\b|except\b|finally\b|catch\b)")


@dataclass(frozen=True)
class Request:
    """A comment on line `line` that asks for `instruction`."""

    line: int
    instruction: str


def request_in(lines: Sequence[str], first: int, last: int) -> Request | None:
    """The comment for what is selected from line `first` to `last` (the same: where the cursor stands).

    In the selection; or right above it; or, without a selection, above the block that the cursor is in.
    """
    last = min(last, len(lines) - 1)
    for line in range(first, min(last, first + _FAR) + 1):
        if found := _read(lines, line):
            return found
    indent: int | None = None  # of the shallowest line passed
    heads = 0  # lines of that indentation that begin something
    for line in range(first, max(-1, first - _FAR), -1):
        text = content(lines[line])
        if is_blank(text):
            continue
        level = len(leading(text).expandtabs(8))
        found = _read(lines, line) if line < first else None
        if found:
            is_above = indent is None or level < indent or (level == indent and heads <= 1)
            return found if is_above or not _has_gap(lines, line, first) else None
        if indent is None or level < indent:
            indent, heads = level, 0
        if level == indent and not _CLOSES.match(text):
            heads += 1
    return None


def _has_gap(lines: Sequence[str], start: int, end: int) -> bool:
    return any(is_blank(lines[line]) for line in range(start, end))


def _read(lines: Sequence[str], line: int) -> Request | None:
    text = content(lines[line])
    match = _COMMENT.fullmatch(text) if len(text) < 1000 and "specd:" in text.lower() else None
    return Request(line, match["text"]) if match else None


def is_request(lines: Sequence[str], line: int, instruction: str) -> bool:
    """Whether line `line` still is a comment that asks for `instruction`."""
    found = _read(lines, line) if 0 <= line < len(lines) else None
    return found is not None and found.instruction == instruction
