"""A last look at a rewrite: does the text still parse, is every definition still there, and none there twice?

`check` compares two whole texts. It proves nothing right; it finds what broken or cut answers leave behind. Where the
language has no grammar at hand there is nothing to report.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from specd.daemon.rewrite.blocks import misplaced_line
from specd.daemon.rewrite.diff import changed_blocks
from specd.daemon.rewrite.syntax import WRAPPERS, is_definition, kind_of, name_of, wrapped
from specd.daemon.rewrite.tree import Syntax, Unparsed, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_BY_NAME = frozenset(["python", "go", "javascript", "lua", "ruby"])
"""Languages in which a second definition of a name takes the first one's place, or is an error."""
_WORD = re.compile(r"\w+")
_NAMED = 4  # names that a message spells out


@dataclass(frozen=True)
class GuardReport:
    """What to tell about a rewrite.

    ok: nothing. broke_syntax: the text parsed before and does not now (what `guard = "refuse"` refuses). lost: names of
    definitions that are gone, not renamed; duplicated: those that are there more often than before. message: one line
    for the user; empty if ok, but where the texts are too large to compare it says so.
    """

    ok: bool
    broke_syntax: bool
    lost: list[str]
    duplicated: list[str]
    message: str


FINE: Final = GuardReport(True, False, [], [], "")


def check(language: str | None, before: str, after: str, *, instruction: str = "") -> GuardReport:
    """Compares the texts of a file before and after a rewrite. What `instruction` names may go unreported."""
    if language is None or before == after:
        return FINE
    old, new = parse(language, before), parse(language, after)
    if isinstance(old, Unparsed) or isinstance(new, Unparsed):
        why = old.why if isinstance(old, Unparsed) else new.why if isinstance(new, Unparsed) else ""
        return replace(FINE, message=f"not checked for broken syntax, since {why}") if why else FINE
    error = None if _error_line(language, before) else _error_line(language, after)
    old_names, new_names = _definitions(language, before), _definitions(language, after)
    named = set(_WORD.findall(instruction))
    lost = [name for name in _lost(old_names, new_names) if not named.intersection(_WORD.findall(name))]
    duplicated = _duplicated(old_names, new_names)
    parts = [f"line {error} does not parse"] if error else []
    parts += [f"gone: {_some(lost)}"] if lost else []
    parts += [f"there twice: {_some(duplicated)}"] if duplicated else []
    return GuardReport(not parts, error is not None, lost, duplicated, "; ".join(parts))


@dataclass(frozen=True)
class _Definition:
    name: str
    signature: str  # what must not be there twice


@lru_cache(maxsize=8)  # as the trees
def _definitions(language: str, text: str) -> list[_Definition]:
    """Top-level definitions, and the members of their types, in order of the text, which parses."""
    found: list[_Definition] = []
    syntax = parse(language, text)
    assert isinstance(syntax, Syntax)
    stack = [(syntax.root, "", 0)]
    while stack:
        node, prefix, depth = stack.pop()
        if is_definition(node, language):
            kind, name = kind_of(node), name_of(node, syntax.text)
            if name:
                found.append(_Definition(prefix + name, _signature(node, prefix + name, language, syntax.source)))
            if kind not in _WITH_MEMBERS or depth > 1:
                continue
            prefix, depth = f"{prefix}{name}.", depth + (kind not in ("module", "namespace"))
        elif node.type not in _BODIES and node.type not in WRAPPERS and node.parent is not None:
            continue
        stack += [(child, prefix, depth) for child in reversed(node.children)]
    return found


_WITH_MEMBERS = frozenset(["class", "struct", "interface", "trait", "impl", "enum", "record", "module", "namespace"])
_BODY_TYPES = """
    class_body declaration_list field_declaration_list block body_statement interface_body enum_body
    enum_body_declarations annotation_type_body statement_block linkage_specification preproc_ifdef preproc_if
    preproc_else preproc_elif object_type
"""
_BODIES = frozenset(_BODY_TYPES.split())


def _signature(node: "Node", name: str, language: str, source: bytes) -> str:
    outer = wrapped(node)
    if language in _BY_NAME and outer.start_byte == node.start_byte:
        return name
    body = node.child_by_field_name("body")
    head = source[outer.start_byte : outer.end_byte if body is None else body.start_byte].decode("utf-8", "replace")
    return name + " " + " ".join((head if body is not None else head.split("\n", 1)[0]).split())


def _lost(old: list[_Definition], new: list[_Definition]) -> list[str]:
    """Names of `old` that are not in `new`, without as many as have another name in the same place."""
    old_names, new_names = [d.name for d in old], [d.name for d in new]
    still, already = set(new_names), set(old_names)
    lost: list[str] = []
    for a0, a1, b0, b1 in changed_blocks(old_names, new_names):
        gone = [name for name in old_names[a0:a1] if name not in still]
        came = [name for name in new_names[b0:b1] if name not in already]
        lost += gone[len(came) :]
    return lost


def _duplicated(old: list[_Definition], new: list[_Definition]) -> list[str]:
    before, after = Counter(d.signature for d in old), Counter(d.signature for d in new)
    if len(new) - len(after) <= len(old) - len(before):
        return []  # twins that were there before, perhaps under another name
    names = [d.name for d in new if after[d.signature] > max(1, before[d.signature])]
    return list(dict.fromkeys(names))


@lru_cache(maxsize=8)  # as the trees
def _error_line(language: str, text: str) -> int | None:
    """The line, from 1, of the first error or missing piece of a text, or of an indentation that Python refuses."""
    syntax = parse(language, text)
    assert isinstance(syntax, Syntax)
    node = syntax.root
    if not node.has_error:
        return misplaced_line(syntax) if language == "python" else None
    while not (node.is_error or node.is_missing):
        node = next((child for child in node.children if child.has_error), node)
        if not any(child.has_error for child in node.children):
            break
    return node.start_point.row + 1


def _some(names: list[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
