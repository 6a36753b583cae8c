"""Columns of a line: UTF-8, UTF-16 or UTF-32 code units (what LSP counts) to and from indices of a Python string.

Out-of-range values are clamped as the specification says ("Position", version 3.17): a column behind the line's content
is its end, never inside or behind the line end. A column inside of a character is the column before it.
"""

import re
from typing import Final, Literal

from specd.daemon.rewrite.lines import content

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


def index_of(line: str, units: int, encoding: Encoding) -> int:
    """The index in `line` (with or without its line end) of column `units`."""
    text = content(line)
    units = max(0, units)
    if text.isascii() or encoding == "utf-32":
        return min(units, len(text))
    if encoding == "utf-8":
        return _index_in_utf8(text, units)
    before = 0  # characters of two units that begin before the column
    for match in _ASTRAL.finditer(text, 0, units):
        if match.start() + before >= units:
            break
        before += 1
    return min(units - before, len(text))


def _index_in_utf8(text: str, units: int) -> int:
    data = text.encode("utf-8", "surrogatepass")
    if units >= len(data):
        return len(text)
    begun = len(data[:units].translate(None, _CONTINUATION))
    return begun - 1 if 0x80 <= data[units] < 0xC0 else begun


def units_of(line: str, index: int, encoding: Encoding) -> int:
    """The column, in code units, of `index` in `line`; clamped to the line's content."""
    text = content(line)
    index = min(max(0, index), len(text))
    if text.isascii() or encoding == "utf-32":
        return index
    if encoding == "utf-8":
        return len(text[:index].encode("utf-8", "surrogatepass"))
    return index + sum(1 for _ in _ASTRAL.finditer(text, 0, index))
