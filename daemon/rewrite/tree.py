"""Syntax trees of whole texts, parsed once and kept, within bounds: a text that is too large, or that a parser gets
lost in, has none, and callers go on without one and say so.

A parser's error recovery is not linear: 256 KiB of random signs keep some grammars busy for half a minute. So the text
is fed in pieces, and after LIMIT_SECONDS no more of it comes. Between two pieces other threads have their turn.

Texts are parsed with LF line ends, so that rows of the tree are the lines of `lines.split_lines`.
"""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from specd.daemon.rewrite.lines import BOM, normalise
from specd.daemon.rewrite.syntax import grammar

if TYPE_CHECKING:
    from tree_sitter import Node, Point

LIMIT_BYTES: Final = 512 * 1024
LIMIT_SECONDS: Final = 1.0  # of the processor; well-formed code of LIMIT_BYTES takes a third of that
_PIECE = 1024  # bytes that the parser is given at a time
_KEPT = 8  # trees: a file before and after, for four files


@dataclass(frozen=True)
class Syntax:
    """The tree of a text. root: of the text with LF line ends, without a byte order mark; source: that, in UTF-8."""

    root: "Node"
    source: bytes

    def text(self, node: "Node") -> str:
        """What `node` spans."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


@dataclass(frozen=True)
class Unparsed:
    """Why a text has no tree, in words that fit after "since"; empty where there is no grammar for its language."""

    why: str


@lru_cache(maxsize=_KEPT)
def parse(language: str | None, text: str) -> Syntax | Unparsed:
    """The tree of `text`, or why there is none."""
    parser = grammar(language)
    if parser is None:
        return Unparsed("")
    if len(text) > LIMIT_BYTES:
        return Unparsed(f"the file is larger than {LIMIT_BYTES // 1024} KiB")
    source = normalise(text.lstrip(BOM)).encode("utf-8", "surrogatepass")
    end = time.thread_time() + LIMIT_SECONDS

    def piece(at: int, _: "Point") -> bytes:
        return source[at : at + _PIECE] if time.thread_time() < end else b""

    tree = parser.parse(piece)
    if time.thread_time() >= end:
        return Unparsed("the file is too intricate to parse in time")
    return Syntax(tree.root_node, source)


def is_whole_at(language: str | None, text: str, end: int) -> bool:
    """Whether `text` parses, and text[:end] ends neither in a comment nor in a string: a fence there is no code."""
    syntax = parse(language, text)
    if isinstance(syntax, Unparsed) or syntax.root.has_error:
        return False
    at = len(normalise(text[:end].lstrip(BOM)).encode("utf-8", "surrogatepass"))
    node = syntax.root.descendant_for_byte_range(at, at)
    while node is not None:
        is_text = any(kind in node.type for kind in ("comment", "string", "template", "literal"))
        if is_text and node.start_byte < at < node.end_byte:
            return False
        node = node.parent
    return True
