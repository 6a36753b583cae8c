"""Indentation: taken off before the model reads a region, and put back so that it is the file's own.

A model told to rewrite an indented region often answers at another level, or with spaces where the file has tabs.
`common_indent` and `without_indent` give it the region at level zero; `Reindenter` brings its lines back. The
original lines are the only guide: no rule here knows a language.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from specd.daemon.rewrite.lines import is_blank, leading

UNITS = (4, 2, 8, 3)
"""Spaces that stand for one tab in an answer, in the order they are tried."""


def common_indent(lines: Iterable[str]) -> str:
    """The spaces and tabs that all lines begin with, blank ones aside."""
    common: str | None = None
    for line in lines:
        if is_blank(line):
            continue
        indent = leading(line)
        if common is None:
            common = indent
        while not indent.startswith(common):
            common = common[:-1]
        if not common:
            return ""
    return common or ""


def without_indent(line: str, indent: str) -> str:
    """`line` without `indent`; a blank line that has less of it loses its blanks."""
    if line.startswith(indent):
        return line[len(indent) :]
    return line.lstrip(" \t") if is_blank(line) else line


class Reindenter:
    """Brings an answer's lines (no line ends) to the indentation of the original's.

    original: its lines without line ends; indent: what `without_indent` took off them; keep_tabs: a tab of the answer
    is no mistake, whatever the original has. Three repairs, each only where the original says so:
    - `indent` is put back, unless the answer has it already: if its first line is an original line as it is, or is at
      the level of the original's first line; or if its second line is the original's second one as it is. What comes
      later says nothing, since code that was put into a block is at the original's level too.
    - Tabs and spaces at the beginning of a line become what the file has, if the file has only one of both.
    - A first line that lost its indentation gets it back when the second line shows that the answer is at the
      original's level.
    """

    def __init__(self, original: Sequence[str], indent: str = "", *, keep_tabs: bool = False) -> None:
        self._indent = indent
        self._known = {line.rstrip(" \t") for line in original if not is_blank(line)}
        self._head = [line for line in original if not is_blank(line)][:2]
        indents = [leading(line) for line in original if not is_blank(line)]
        self._tabs = any("\t" in i for i in indents) and not any(" " in i for i in indents)
        self._spaces = not keep_tabs and any(" " in i for i in indents) and not any("\t" in i for i in indents)
        self._unit = 0  # spaces a tab, once known
        self._width = min((len(i) for i in indents if i), default=4)
        if len(set(map(len, indents))) > 1:
            steps = [abs(len(a) - len(b)) for a, b in pairwise(indents) if len(a) != len(b)]
            self._width = min(steps, default=self._width)
        self._has_indent = False  # the answer's lines hold `indent` already
        self._seen = 0  # lines that are not blank
        self._waiting: list[str] = []  # the first line and blank ones after it, until the second one

    def push(self, line: str) -> list[str]:
        """The next line of the answer; returns the lines that are ready, in order."""
        if is_blank(line):
            if self._waiting:
                self._waiting.append("" if self._indent else line)
                return []
            return ["" if self._indent and line else line]
        self._seen += 1
        line = self._placed(self._styled(line))
        if self._waiting:
            first, *blanks = self._waiting
            self._waiting = []
            return [self._first(first, line), *blanks, line]
        if self._seen == 1 and len(self._head) == 2 and len(leading(line)) < len(leading(self._head[0])):
            self._waiting = [line]
            return []
        return [line]

    def finish(self) -> list[str]:
        """The lines that still waited."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _first(self, first: str, second: str) -> str:
        old_first, old_second = self._head
        if second.rstrip(" \t") == old_first.rstrip(" \t"):
            return first  # a line before the original's first one
        same_second = second.rstrip(" \t") == old_second.rstrip(" \t")
        same_step = len(leading(second)) == len(leading(old_second)) > len(leading(old_first))
        words = first.split()[:1] == old_first.split()[:1]
        return leading(old_first) + first.lstrip(" \t") if same_second or (same_step and words) else first

    def _placed(self, line: str) -> str:
        put_back = self._indent + line
        if not self._indent or not self._head:
            return put_back
        if self._seen == 1:
            known, known_put_back = self._is_known(line), self._is_known(put_back)
            same_level = leading(line) == leading(self._head[0])
            self._has_indent = known if known != known_put_back else same_level
        elif self._seen == 2 and not self._has_indent:
            is_second = line.rstrip(" \t") == self._head[-1].rstrip(" \t")
            self._has_indent = is_second and not self._is_known(put_back)
        return line if self._has_indent and line.startswith(self._indent) else put_back

    def _is_known(self, line: str) -> bool:
        return line.rstrip(" \t") in self._known

    def _styled(self, line: str) -> str:
        indent, text = leading(line), line.lstrip(" \t")
        if self._tabs and indent.startswith(" ") and "\t" not in indent:
            return self._tabbed(len(indent), text)
        if self._spaces and "\t" in indent:
            return indent.replace("\t", " " * self._width) + text
        return line

    def _tabbed(self, spaces: int, text: str) -> str:
        units = (self._unit,) if self._unit else UNITS
        for unit in units:
            indent = "\t" * (spaces // unit) + " " * (spaces % unit)
            if (
                not self._unit
                and {indent + text.rstrip(" \t"), self._indent + indent + text.rstrip(" \t")} & self._known
            ):
                self._unit = unit
                return indent + text
        unit = self._unit or next((u for u in UNITS if spaces % u == 0), 4)
        return "\t" * (spaces // unit) + " " * (spaces % unit) + text
