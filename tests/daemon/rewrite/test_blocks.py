"""Indentations that Python refuses are found, and none that it takes."""

import ast
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.daemon.rewrite.blocks import misplaced_line
from specd.daemon.rewrite.guard import check
from specd.daemon.rewrite.tree import Syntax, parse

PROGRAM = '''\
"""Doc."""
import os; import sys


@decorated
# a comment
class Grid:
    size = (1,
  2)

    def f(self, x):
        if x:
            return """
text
"""
# a comment at the margin
        elif x is None: pass
        else:
            x = \\
    1
        try:
            g(x)
        except ValueError:
            raise
        finally:
            for y in x:
                while y: y -= 1
            else:
                pass
        with open(x) as file:
            match file:
                case 1:
                    pass
                case _:
                    pass
        return x


async def main():
\tawait Grid()
\treturn lambda: 1
'''
MOVES = st.sampled_from(["    ", "  ", "\t", "-4", "-2", "\f"])  # what comes before a line, or what it loses


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("    x = 1\n    y = 2\n", 1),
        ("x = 1\n    y = 2\n", 2),
        ("def f():\nreturn 1\n", 1),
        ("def f():\n    # nothing\n", 1),
        ("def f():\n    a()\n        b()\n", 3),
        ("def f():\n    a()\n  b()\n", 3),
        ("if x:\n    a()\n  else:\n    b()\n", 3),
        ("try:\n    a()\n except E:\n    b()\n", 3),
        ("@d\n  def f():\n    pass\n", 2),
        ("class A:\n    def f():\n        pass\n   def g():\n        pass\n", 4),
        ("if x:\n    a()\n\tb()\n", 3),
    ],
)
def test_a_line_that_stands_where_python_does_not_expect_it_is_found(text: str, line: int) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(text)
    syntax = parse("python", text)
    assert isinstance(syntax, Syntax)
    assert misplaced_line(syntax) == line
    report = check("python", "x = 1\n", text)
    assert report.broke_syntax
    assert f"line {line} does not parse" in report.message


def test_a_whole_answer_that_is_indented_is_reported() -> None:
    moved = "".join(f"    {line}\n" if line else "\n" for line in "import os\n\n\ndef f():\n    pass".split("\n"))
    assert check("python", "import os\n\n\ndef f():\n    pass\n", moved).message == "line 1 does not parse"


def test_a_file_that_was_misplaced_before_may_stay_so() -> None:
    assert check("python", "  x = 1\n", "  x = 2\n").ok


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, PROGRAM.count("\n") - 1), st.sampled_from(["    ", "  ", "\t", "-4", "-2", "\f"]))
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_python_takes_is_never_called_misplaced(moves: list[tuple[int, str]], end: str) -> None:
    lines = PROGRAM.split("\n")
    for at, move in moves:
        lines[at] = lines[at][int(move[1:]) :] if move[0] == "-" else move + lines[at]
    text = end.join(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError:
            return
    syntax = parse("python", text)
    assert isinstance(syntax, Syntax)
    assert syntax.root.has_error or misplaced_line(syntax) is None
