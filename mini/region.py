"""A region of code as the edit makers see it: lines, identifiers, definitions, blocks, calls.

Reads code by regular expressions and indentation only; where that is not certain, the readers below give None and the
edit is not made. What an edit does to the region is in `kinds/`.
"""

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from specd.mini.names import IDENTIFIER, KEYWORDS

COMMENT_SIGN = {"python": "#", "julia": "#", "lua": "--"}  # the rest: //
SEMICOLON_LANGUAGES = frozenset({"c", "cpp", "java", "typescript", "javascript", "rust"})
INDENT_ENDS_BLOCK = frozenset({"python"})

_DEFINITION = re.compile(
    r"^([ \t]*)(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|static|final|async|unsafe|const|virtual"
    r"|inline|abstract|override|synchronized|constexpr|explicit|local|suspend|internal)\s+)*"
    r"(?:(?:def|function|func|fn|fun|sub)\s+(?:\([^()\n]*\)\s*)?([A-Za-z_]\w*!?)\s*(?:<[^<>\n]*>)?\(([^()\n]*)\)"
    r"|([A-Za-z_][\w<>\[\],.:]*[ \t*&]+(?:[A-Za-z_]\w*::)*)([A-Za-z_]\w*)\(([^()\n]*)\)(?=[^;\n]*\{[ \t]*$))",
    re.M,
)
# A line less indented than {more}, or a closing line at {depth} or less.
_SHALLOW = r"\n(?![ \t]{{{more}}})(?=[^\s}}\])])[^\n]*|\n[ \t]{{0,{depth}}}(?:\}}|end\b|\])[^\n]*"
_NOT_A_TYPE = frozenset({"return", "else", "new", "if", "case", "await", "yield", "throw"})


@dataclass(frozen=True)
class Function:
    """A definition found in a region. `start`, `end` are the offsets of the text between its parentheses."""

    name: str
    parameters: str
    start: int
    end: int
    line: int
    indent: str


@dataclass
class Region:
    """Whole lines of code, and a pool of identifiers to invent names from."""

    code: str
    language: str
    pool: Sequence[str] = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        return self.code.split("\n")

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each identifier occurs as a whole word (comments and strings included)."""
        counts: dict[str, int] = {}
        for name in IDENTIFIER.findall(self.code):
            counts[name] = counts.get(name, 0) + 1
        return counts

    @cached_property
    def functions(self) -> list[Function]:
        """Definitions whose parameter list is on one line, in order."""
        starts = [0]
        for text in self.lines:
            starts.append(starts[-1] + len(text) + 1)
        found = []
        for m in _DEFINITION.finditer(self.code):
            group = 2 if m.group(2) else 5
            name = m.group(group)
            if name in KEYWORDS or (group == 5 and m.group(4).split()[0] in _NOT_A_TYPE):
                continue
            line = bisect.bisect_right(starts, m.start(group)) - 1
            start, end = m.span(group + 1)
            found.append(Function(name, m.group(group + 1), start, end, line, m.group(1)))
        return found

    def unique_functions(self) -> list[Function]:
        """The definitions whose name no other definition of the region has."""
        names = [f.name for f in self.functions]
        return [f for f in self.functions if names.count(f.name) == 1]

    @property
    def comment_sign(self) -> str:
        return COMMENT_SIGN.get(self.language, "//")

    @property
    def statement_end(self) -> str:
        return ";" if self.language in SEMICOLON_LANGUAGES else ""

    def with_code(self, code: str) -> "Region":
        return Region(code, self.language, self.pool)

    def unique_line(self, rng: Random, shortest: int = 5) -> int | None:
        """A random line whose text (indentation aside) occurs once in the region and can be quoted in back-ticks."""
        for _ in range(8):
            i = rng.randrange(len(self.lines))
            if self.is_unique_line(i, shortest):
                return i
        return None

    def is_unique_line(self, i: int, shortest: int = 5) -> bool:
        text = self.lines[i].strip()
        return shortest <= len(text) < 110 and "`" not in text and self.code.count(text) == 1

    def without_lines(self, drop: Sequence[int] | range) -> str:
        gone = set(drop)
        return "\n".join(line for i, line in enumerate(self.lines) if i not in gone)

    def with_line(self, i: int, text: str) -> str:
        """The code with `text` as a new line before line i (i = number of lines: at the end)."""
        return "\n".join([*self.lines[:i], text, *self.lines[i:]])

    def replace_line(self, i: int, text: str) -> str:
        return "\n".join([*self.lines[:i], text, *self.lines[i + 1 :]])

    def block(self, i: int) -> tuple[int, int] | None:
        """Half-open line range of the statement that starts at line i, by indentation; None when the region cuts it."""
        lines, n = self.lines, len(self.lines)
        depth = len(indent_of(lines[i]))
        j = i + 1
        while j < n and (not lines[j].strip() or len(indent_of(lines[j])) > depth):
            j += 1
        if self.language not in INDENT_ENDS_BLOCK:
            if j >= n:
                return None
            if len(indent_of(lines[j])) == depth:
                closes = re.match(r"\s*(\}|end\b|\)|\])", lines[j])
                goes_on = re.match(r"\s*\}\s*(else|catch|finally)|\s*\).*\{\s*$", lines[j])
                return (i, j + 1) if closes and not goes_on else None
        while j > i + 1 and not lines[j - 1].strip():
            j -= 1
        return (i, j) if j > i + 1 else None

    def head(self, i: int) -> int:
        """First of the decorator, attribute and comment lines that stand right above line i at its indentation."""
        mark = re.compile(
            re.escape(indent_of(self.lines[i])) + r"(@\w|#\[|//|/\*|\*| \*|--|#(?!include|define|if|endif|else|pragma))"
        )
        while i and mark.match(self.lines[i - 1]):
            i -= 1
        return i

    def calls(self, function: Function) -> list[tuple[int, int]] | None:
        """Spans of the arguments of every call of the function; None when the region cuts one off."""
        spans = []
        for m in re.finditer(r"(?<![A-Za-z0-9_])" + re.escape(function.name) + r"\(", self.code):
            if m.end() == function.start:
                continue
            end = closing(self.code, m.end())
            if end is None:
                return None
            spans.append((m.end(), end))
        return spans


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def closing(code: str, start: int) -> int | None:
    """Offset of the bracket that closes the one just before `start`; None when there is none."""
    depth = 1
    for i in range(start, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if not depth:
                return i
    return None


def arguments(text: str) -> list[str]:
    """The comma-separated pieces of an argument list, brackets respected, blanks kept."""
    pieces, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[begin:i])
            begin = i + 1
    return [*pieces, text[begin:]] if text.strip() else []


def splice(code: str, replacements: Sequence[tuple[int, int, str]]) -> str:
    """Replace the half-open spans (start, end, text), given in any order."""
    for start, end, text in sorted(replacements, reverse=True):
        code = code[:start] + text + code[end:]
    return code


def is_balanced(text: str) -> bool:
    """Brackets close in `text` itself, and it holds no half string and no back-tick."""
    depth = 0
    for c in text:
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0 and text.count('"') % 2 == 0 and text.count("'") % 2 == 0 and "`" not in text


def dedent(code: str) -> str:
    """Take off the indentation that all non-blank lines share, as specd does before it shows a region to a model."""
    lines = code.split("\n")
    common: str | None = None
    for line in lines:
        if line.strip():
            lead = indent_of(line)
            if common is None:
                common = lead
            while not lead.startswith(common):
                common = common[:-1]
    if not common:
        return code
    return "\n".join(line[len(common) :] if line.strip() else line.strip() for line in lines)


def cut_region(rng: Random, text: str, size: int) -> str:
    """About `size` characters of whole lines: a file's start, a definition, what follows a blank line, or any lines."""
    r = rng.random()
    start = 0 if r < 0.08 else rng.randrange(max(1, len(text) - size // 2))
    end = -1
    if 0.08 <= r < 0.40:  # a line that something more indented follows, through the end of that
        m = re.compile(r"\n([ \t]*)(?=[A-Za-z@#])[^\n]*[:{)(][^\n]*\n(?=\1[ \t])").search(
            text, start, min(len(text), start + 3000)
        )
        if m:
            start, depth = m.start() + 1, len(m.group(1))
            shallow = re.compile(_SHALLOW.format(more=depth + 1, depth=depth))
            m = shallow.search(text, text.find("\n", start))
            while m and m.start() - start < size * 0.6:
                m = shallow.search(text, m.end())
            if m and m.start() - start < size * 1.5:
                end = m.end() if re.match(r"\s*(\}|end\b|\])", m.group()) else m.start()
    elif r >= 0.40 and r < 0.75:
        blank = text.find("\n\n", start, start + 600)
        start = blank + 2 if blank >= 0 else text.rfind("\n", 0, start) + 1
    elif r >= 0.75:
        start = text.rfind("\n", 0, start) + 1
    if start and text[start - 1] != "\n":
        start = text.rfind("\n", 0, start) + 1
    if end < 0:
        end = text.find("\n", min(len(text), start + size))
        end = len(text) if end < 0 else end
        code = text[start:end].strip("\n")
        blank = code.rfind("\n\n")
        if rng.random() < 0.5 and blank > len(code) * 0.7:
            code = code[:blank]
    else:
        code = text[start:end].strip("\n")
    code = code.rstrip()
    return dedent(code) if rng.random() < 0.8 else code
