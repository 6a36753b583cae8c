"""Python's blocks: tree-sitter's grammar takes any indentation, Python does not (Language Reference, 2.1.8)."""

from typing import TYPE_CHECKING

from specd.daemon.rewrite.tree import Syntax

if TYPE_CHECKING:
    from tree_sitter import Node

_COMPOUND = ("_statement", "_definition", "_clause")  # ends of the types of nodes that may hold a block

_PARTS = ("elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause")


def misplaced_line(syntax: Syntax) -> int | None:
    """The first line, from 1, at which Python finds an indentation that it does not expect, or None."""
    lines = syntax.source.split(b"\n")
    found: list[int] = []
    stack = [(syntax.root, b"")]
    while stack:
        node, indent = stack.pop()
        if node.type in ("module", "block"):
            found += _misplaced(node, indent, lines)
        own = _indent_of(node, lines)
        for child in node.children:
            if child.type == "block":
                stack.append((child, own))
            elif child.type.endswith(_COMPOUND):
                stack.append((child, b""))
                row, column = child.start_point
                is_part = node.type == "decorated_definition" or child.type in _PARTS
                if is_part and own != lines[row][:column] and not lines[row][:column].strip(b" \t"):
                    found.append(row + 1)
    return min(found, default=None)


def _misplaced(block: "Node", outer: bytes, lines: list[bytes]) -> list[int]:
    """Lines whose indentation is not that of the block, which is deeper than that of the statement it belongs to."""
    wanted: bytes | None = b"" if block.type == "module" else None
    is_empty, after = True, ""
    for child in block.named_children:
        row, column = child.start_point
        before = lines[row][:column]
        is_first, after, previous = not before.strip(b" \t\f"), child.type, after
        if child.type in ("comment", "line_continuation"):
            continue
        is_empty = False
        if not is_first or previous == "line_continuation":
            wanted = before if wanted is None and is_first else wanted
            continue
        indent = before.rpartition(b"\f")[2]
        if wanted is None:
            wanted = indent
            if len(indent) <= len(outer):
                return [row + 1]
        if indent != wanted:
            return [row + 1]
    return [block.start_point.row + 1] if is_empty and block.type == "block" else []


def _indent_of(node: "Node", lines: list[bytes]) -> bytes:
    row = node.start_point.row
    return lines[row][: len(lines[row]) - len(lines[row].lstrip(b" \t\f"))].rpartition(b"\f")[2]
