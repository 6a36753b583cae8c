"""Lines as editors count them: a line ends with LF, CRLF or CR and nothing else.

`str.splitlines` also splits on form feed, NEL, U+2028 and others, which are text to every editor and to LSP ("Text
Documents" of the specification, version 3.17), so nothing here uses it.
"""

import re
from collections.abc import Sequence

BOM = "\ufeff"

_END = re.compile(r"\r\n|\n|\r")


def shortened(text: str, most: int) -> str:
    """The first `most` characters of a text; what was left out is told by dots."""
    return text if len(text) <= most else text[:most] + " ..."


def split_lines(text: str) -> list[str]:
    """The lines of `text`, each with its line end; only the last may lack one. Joined they are `text` again."""
    if "\r" not in text:
        whole = [line + "\n" for line in text.split("\n")]
        last = whole.pop()[:-1]
        return [*whole, last] if last else whole
    lines: list[str] = []
    start = 0
    for end in _END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


def line_end(line: str) -> str:
    """The line end of one line of `split_lines`: CRLF, LF, CR, or empty."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line.endswith(("\n", "\r")) else ""


def content(line: str) -> str:
    """One line of `split_lines` without its line end."""
    return line[: len(line) - len(line_end(line))]


def normalise(text: str) -> str:
    """`text` with LF line ends only: what a model reads."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def common_line_end(text: str) -> str:
    """The line end that `text` uses most, the earlier one among equals; LF when it has none."""
    counts: dict[str, int] = {}
    for end in _END.findall(text):
        counts[end] = counts.get(end, 0) + 1
    return max(counts, key=counts.__getitem__) if counts else "\n"


def leading(line: str) -> str:
    """The spaces and tabs that `line` begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def is_blank(line: str) -> bool:
    """Whether `line` holds nothing but spaces and tabs, its line end aside."""
    return not line.strip(" \t\r\n")


def core(lines: Sequence[str], *, exact: bool = False) -> tuple[int, int]:
    """The lines [first, last) that a rewrite works on: without the blank ones at both ends, unless `exact`."""
    written = [at for at, line in enumerate(lines) if not is_blank(line)]
    return (0, len(lines)) if exact or not written else (written[0], written[-1] + 1)


class LineBuffer:
    """Text in pieces in, whole lines out (without their ends), as `split_lines` would cut the joined text."""

    def __init__(self) -> None:
        self._partial: list[str] = []
        self._ends_with_cr = False

    def push(self, text: str) -> list[str]:
        """The lines that `text` completes. A CR at its end waits for what follows, which may be its LF."""
        if not text:
            return []
        if self._ends_with_cr:
            text = "\r" + text
        self._ends_with_cr = text.endswith("\r")
        pieces = normalise(text.removesuffix("\r")).split("\n")
        if len(pieces) == 1:
            self._partial += pieces
            return []
        lines = ["".join([*self._partial, pieces[0]]), *pieces[1:-1]]
        self._partial = pieces[-1:]
        return lines

    def finish(self) -> list[str]:
        """The last line, if it has no end or one CR; nothing for a text that ends in a whole line."""
        last = "".join(self._partial)
        lines = [last] if last or self._ends_with_cr else []
        self._partial, self._ends_with_cr = [], False
        return lines
