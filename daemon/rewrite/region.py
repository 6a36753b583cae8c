"""Which lines a rewrite may change: whole lines, always, and nothing outside of them.

Lines given by the user are taken as they are. A single line stands for the smallest definition around it, with the
decorators, attributes and comments right above that belong to it, by the language's tree-sitter grammar; outside of
definitions for the statement there; without a grammar for the block that indentation shows. Nothing given is the whole
text. `Region.label` says which it was, for the user to see, and if a file was too large or too wild to parse.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from specd.daemon.rewrite.lines import is_blank, leading, split_lines
from specd.daemon.rewrite.syntax import WRAPPERS, is_definition, kind_of, language_of, name_of, wrapped
from specd.daemon.rewrite.tree import Syntax, parse

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Region", "RegionError", "language_of", "lines_of_selection", "select_region"]

_STATEMENTS = frozenset(["if_statement", "for_statement", "while_statement", "try_statement", "let_statement"])
_INNER = """
    module source_file program translation_unit chunk block compound_statement statement_block statement_list
    body_statement declaration_list then else else_clause do_block begin namespace_definition module_definition
    preproc_ifdef preproc_if linkage_specification
"""
_CONTAINERS = _STATEMENTS.union(_INNER.split())
"""Nodes whose children are statements; the first ones are statements themselves."""


class RegionError(Exception):
    """The region cannot be taken; the message says why and what to do."""


@dataclass(frozen=True)
class Region:
    """Whole lines of a text: [start_line, end_line), 0-based; text[start:end] is these lines with their line ends."""

    start_line: int
    end_line: int
    start: int
    end: int
    kind: Literal["selection", "definition", "statement", "file"]
    label: str


def lines_of_selection(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
    """The lines of a selection given by (line, column) pairs, 0-based, end exclusive, for `select_region(lines=)`.

    A selection that ends at column 0 does not take that line. The two ends may come in either order; an empty selection
    takes its line.
    """
    (first, _), (last, column) = sorted([start, end])
    return first, last if column == 0 and last > first else last + 1


def select_region(
    text: str, *, lines: tuple[int, int] | None = None, at: int | None = None, language: str | None = None
) -> Region:
    """The region of `text` for half-open 0-based `lines`, or around line `at`; the whole text if neither is given.

    RegionError for lines outside the text, an empty or reversed range, or both arguments at once.
    """
    all_lines = split_lines(text)
    if lines is not None and at is not None:
        raise RegionError("give a range of lines or one line, not both")
    if lines is not None:
        start, end = lines
        _check(start, end, len(all_lines))
        return _region(all_lines, start, end, "selection", "")
    if at is None:
        return _region(all_lines, 0, len(all_lines), "file", "the whole file")
    _check(at, at + 1, len(all_lines))
    syntax = parse(language, text)
    if isinstance(syntax, Syntax):
        start, end, kind, name = _around(syntax, all_lines, at, language or "") or _block(all_lines, at)
        return _region(all_lines, start, end, kind, name)
    start, end, kind, name = _block(all_lines, at)
    region = _region(all_lines, start, end, kind, name)
    return replace(region, label=f"{region.label}, by indentation since {syntax.why}") if syntax.why else region


def _check(start: int, end: int, count: int) -> None:
    if start < 0 or end <= start:
        raise RegionError(
            f"lines {start + 1} to {end} are no range: the first line is 1 and the last not before the first"
        )
    if end > count:
        has = "is empty" if not count else "has 1 line" if count == 1 else f"has {count} lines"
        raise RegionError(f"the text {has}, so there is no line {end}: give lines inside it, or none for all of it")


_Kind = Literal["selection", "definition", "statement", "file"]
_Found = tuple[int, int, _Kind, str]


def _region(lines: Sequence[str], start: int, end: int, kind: _Kind, name: str) -> Region:
    offset = sum(map(len, lines[:start]))
    where = f"line {end}" if end - start == 1 else f"lines {start + 1}-{end}"
    label = name if kind == "file" else f"{name}, {where}" if name else where
    return Region(start, end, offset, offset + sum(map(len, lines[start:end])), kind, label)


def _around(syntax: Syntax, lines: Sequence[str], at: int, language: str) -> _Found | None:
    root = syntax.root
    target = _below_what_belongs(root, lines, at)
    best: _Found | None = None
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if is_definition(node, language):
            outer = wrapped(node)
            start = _above_what_belongs(root, lines, outer.start_point.row, outer.start_point.column)
            end = _end_line(outer)
            if start <= at < end and (best is None or end - start < best[1] - best[0]):
                best = start, end, "definition", f"{kind_of(node)} {name_of(node, syntax.text)}".strip()
        rows = (at, target)
        nodes += [
            child
            for child in node.named_children
            if node.type in WRAPPERS or any(child.start_point.row <= row < _end_line(child) for row in rows)
        ]
    return best or _statement(root, lines, at)


def _statement(root: "Node", lines: Sequence[str], at: int) -> _Found | None:
    """The smallest statement that has its lines for itself."""
    best: _Found | None = None
    node: Node | None = root
    while node is not None:
        inside = [child for child in node.named_children if child.start_point.row <= at < _end_line(child)]
        if node.type in _CONTAINERS:
            for child in inside:
                start, end = child.start_point.row, _end_line(child)
                alone = is_blank(lines[start][: child.start_point.column])
                part = child.type in _CONTAINERS - _STATEMENTS or "comment" in child.type or child.is_error
                if alone and not part:
                    best = start, end, "statement", "statement"
        node = inside[0] if len(inside) == 1 else None
    return best


def _end_line(node: "Node") -> int:
    """The line after the node's last one; a node that ends at column 0 holds the line end before it."""
    end = node.end_point
    return end.row if end.column == 0 and end.row > node.start_point.row else end.row + 1


def _belonging(root: "Node", lines: Sequence[str], row: int) -> "Node | None":
    """The comment, attribute, decorator or doc string that line `row` is a part of and shares with nothing else."""
    if is_blank(lines[row]) or lines[row].startswith("#!"):
        return None
    column = len(leading(lines[row]))
    node = root.descendant_for_point_range((row, column), (row, column + 1))
    while node is not None and not _belongs(node):
        node = node.parent
    if node is None or not is_blank(lines[node.start_point.row][: node.start_point.column]):
        return None
    last = node.end_point
    if last.column == 0:  # it holds its line end
        return node
    return None if lines[last.row].encode("utf-8", "surrogatepass")[last.column :].strip() else node


def _belongs(node: "Node") -> bool:
    if node.type == "string_literal":  # a doc string of Julia
        return node.parent is not None and node.parent.type in _CONTAINERS
    return "comment" in node.type or node.type in ("attribute_item", "decorator", "attribute_declaration")


def _above_what_belongs(root: "Node", lines: Sequence[str], row: int, column: int) -> int:
    """The first of the lines right above line `row` that belong to what begins there, at the same column."""
    while row > 0:
        node = _belonging(root, lines, row - 1)
        if node is None or node.start_point.column != column:
            break
        row = node.start_point.row
    return row


def _below_what_belongs(root: "Node", lines: Sequence[str], row: int) -> int:
    """The first line from `row` on that belongs to nothing below it."""
    at = row
    while at < len(lines) and (node := _belonging(root, lines, at)) is not None:
        at = max(at + 1, _end_line(node))
    return at if at < len(lines) and not is_blank(lines[at]) else row


def _block(lines: Sequence[str], at: int) -> _Found:
    """By indentation: the nearest line above that is indented less, what is indented more than it, and a closing line.

    A line without indentation heads the block below it, or closes the one above. Where no block shows it is the
    paragraph.
    """
    if is_blank(lines[at]):
        at = next((row for row in (*range(at, len(lines)), *range(at, -1, -1)) if not is_blank(lines[row])), at)
    level = _level(lines[at])
    heads: Iterator[int] = iter([at])
    if _closes(lines[at]):
        heads = (row for row in range(at - 1, -1, -1) if not is_blank(lines[row]) and _level(lines[row]) <= level)
    elif level:
        heads = (row for row in range(at - 1, -1, -1) if not is_blank(lines[row]) and _level(lines[row]) < level)
    head = next(heads, at)
    end = _end_of_block(lines, head)
    if head <= at < end > head + 1:
        return head, end, "statement", "block"
    start, end = at, at + 1
    while start > 0 and not is_blank(lines[start - 1]):
        start -= 1
    while end < len(lines) and not is_blank(lines[end]):
        end += 1
    return start, end, "statement", "paragraph"


def _end_of_block(lines: Sequence[str], head: int) -> int:
    end = head + 1
    for row in range(head + 1, len(lines)):
        if is_blank(lines[row]):
            continue
        if _level(lines[row]) <= _level(lines[head]):
            return row + 1 if end > head + 1 and _closes(lines[row]) else end
        end = row + 1
    return end


def _level(line: str) -> int:
    """The column at which `line` begins, a tab being as wide as eight."""
    return len(leading(line).expandtabs(8))


def _closes(line: str) -> bool:
    return re.match(r"\s*(?:[})\]]|end\b)", line) is not None
