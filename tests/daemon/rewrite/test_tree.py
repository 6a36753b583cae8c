"""Parsing is bounded and done once; what has no tree is said, and a fence is the code's end only where that is sure."""

import random
import string

import pytest

from specd.daemon.rewrite import tree
from specd.daemon.rewrite.guard import check
from specd.daemon.rewrite.region import select_region
from specd.daemon.rewrite.tree import LIMIT_BYTES, Syntax, Unparsed, is_whole_at, parse

FUNCTION = "def f(x):\n    y = x\n    return y\n\n\n"
LARGE = FUNCTION * (LIMIT_BYTES // len(FUNCTION) + 1)
_RANDOM = random.Random(1)
INTRICATE = "".join(_RANDOM.choice(string.printable) for _ in range(256 * 1024))  # half a minute of error recovery


def test_the_same_text_is_parsed_once() -> None:
    assert parse("python", FUNCTION) is parse("python", FUNCTION)


def test_a_node_gives_its_text_whatever_the_line_ends_and_characters() -> None:
    syntax = parse("python", "\ufeffé = 'ü'\r\ndef größe(): pass\r\n")
    assert isinstance(syntax, Syntax)
    name = syntax.root.named_children[1].child_by_field_name("name")
    assert name is not None
    assert syntax.text(name) == "größe"


def test_in_a_file_that_is_too_large_indentation_shows_the_block_and_it_is_said() -> None:
    region = select_region(LARGE, at=6, language="python")
    assert (region.start_line, region.end_line) == (5, 8)
    assert region.label == "block, lines 6-8, by indentation since the file is larger than 512 KiB"
    small = select_region(FUNCTION * 2, at=6, language="python")
    assert small.label == "function f, lines 6-8"


def test_a_file_that_is_too_large_is_said_not_to_be_checked() -> None:
    report = check("python", LARGE, LARGE.replace("def f", "def (", 1))
    assert report.ok
    assert not report.broke_syntax
    assert report.message == "not checked for broken syntax, since the file is larger than 512 KiB"


def test_a_parser_that_gets_lost_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def clock() -> float:
        """A processor so slow that the time is over at the sixth look."""
        asked.append(1)
        return 0.0 if len(asked) < 6 else tree.LIMIT_SECONDS + 1

    monkeypatch.setattr(tree.time, "thread_time", clock)
    found = parse("javascript", INTRICATE)
    assert found == Unparsed("the file is too intricate to parse in time")
    assert len(asked) < 20, "of 256 pieces no more are given when the time is over"
    monkeypatch.undo()
    assert isinstance(parse("javascript", "const a = 1\n"), Syntax), "the next text is parsed from its beginning"


@pytest.mark.parametrize(
    ("language", "before", "after", "is_whole"),
    [
        ("python", "x = 1\n", "", True),
        ("python", "x = 1\n", "y = 2\n", True),
        ("python", '"""A doc string\n', "", False),
        ("python", '"""A doc string\n', '"""\nx = 1\n', False),
        ("python", "x = (1,\n", "", False),
        ("c", "/* a comment\n", "*/\nint x;\n", False),
        ("c", "/* a comment */\n", "int x;\n", True),
        ("julia", '"""\n    f(x)\n', '"""\nf(x) = x\n', False),
        ("javascript", "const a = `\n", "`\n", False),
        ("javascript", "const a = `x`\n", "", True),
        ("markdown", "# Title\n", "", False),
        (None, "x\n", "", False),
    ],
)
def test_a_fence_can_be_no_code_only_outside_of_strings_and_comments(
    language: str | None, before: str, after: str, is_whole: bool
) -> None:
    assert is_whole_at(language, before + after, len(before)) == is_whole
