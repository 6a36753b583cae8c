"""Which lines each kind of request takes, in every language that has a grammar, and by indentation elsewhere."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.daemon.rewrite.lines import content, split_lines
from specd.daemon.rewrite.region import RegionError, language_of, lines_of_selection, select_region
from specd.daemon.rewrite.tree import Syntax, parse

PYTHON = '''\
"""Module."""

import os

# a note about area
# in two lines
@cache
@other(
    1,
)
def area(r):
    def inner():
        return r
    return inner()


class Circle(Shape):
    """Doc."""

    x = 1

    # about name
    async def name(self):
        return "circle"


if __name__ == "__main__":
    run()
    stop(
        1,
    )
'''

SOURCES: dict[str, tuple[str, dict[str, tuple[str, str, str]]]] = {}
"""language: (source, {marker in the source: (first line's beginning, last line's beginning, label)})."""

SOURCES["python"] = (
    PYTHON,
    {
        "# a note": ("# a note", "    return inner()", "function area"),
        "@other(": ("# a note", "    return inner()", "function area"),
        "    1,": ("# a note", "    return inner()", "function area"),
        "    return inner": ("# a note", "    return inner()", "function area"),
        "        return r": ("    def inner", "        return r", "function inner"),
        "    x = 1": ("class Circle", '        return "circle"', "class Circle"),
        "    # about name": ("    # about", '        return "circle"', "function name"),
        "import os": ("import os", "import os", "statement"),
        "if __name__": ("if __name__", "    )", "statement"),
        "    run()": ("    run()", "    run()", "statement"),
        "        1,": ("    stop(", "    )", "statement"),
    },
)
SOURCES["julia"] = (
    'module Shapes\n\nusing Base\n\n"""\nDoc of area.\n"""\n@inline function area(r)\n    if r > 0\n'
    "        3r^2\n    end\nend\n"
    "\n# the short one\nname(x::Int)::String = string(x)\n\nstruct Circle\n    r\nend\n\nmacro m(x)\n"
    "    x\nend\n\nend\n",
    {
        '"""': ('"""', "end", "function area"),
        "        3r^2": ('"""', "end", "function area"),
        "# the short": ("# the short", "name(x", "function name"),
        "    r\n": ("struct Circle", "end", "struct Circle"),
        "    x\n": ("macro m", "end", "macro m"),
        "using Base": ("module Shapes", "end", "module Shapes"),
    },
)
SOURCES["javascript"] = (
    "import a from 'a'\n\n/**\n * Doc.\n */\nexport const area = (r) => {\n  return 3 * r\n}\n\n"
    "function plain() {\n  x()\n}\n"
    "\nexport default class Circle {\n  // about name\n  name() {\n    return 1\n  }\n}\n",
    {
        " * Doc": ("/**", "}", "function area"),
        "  return 3": ("/**", "}", "function area"),
        "  x()": ("function plain", "}", "function plain"),
        "  // about": ("  // about", "  }", "method name"),
        "export default": ("export default", "}", "class Circle"),
    },
)
SOURCES["typescript"] = (
    "/** Doc. */\n@Dec()\nexport class Circle {\n  x = 1;\n\n  /** m */\n  @Foo()\n  name(): string {\n"
    "    return 'c';\n  }\n}\n\n"
    "export interface Shape {\n  area(): number;\n}\n\nexport type Id = {\n  a: string;\n};\n\n"
    "enum Color {\n  Red,\n}\n",
    {
        "  x = 1": ("/** Doc. */", "}", "class Circle"),
        "  @Foo()": ("  /** m */", "  }", "method name"),
        "    return 'c'": ("  /** m */", "  }", "method name"),
        "export interface": ("export interface", "}", "interface Shape"),
        "  a: string": ("export type", "};", "type Id"),
        "  Red": ("enum Color", "}", "enum Color"),
    },
)
SOURCES["tsx"] = (
    "export const A = () => {\n  return <b>x</b>;\n};\n",
    {"  return": ("export const", "};", "function A")},
)
SOURCES["go"] = (
    "package a\n\n// Area is the area.\nfunc Area(r int) int {\n\treturn r\n}\n\n// T is.\n"
    "type T struct {\n\tx int\n}\n\n"
    "func (t *T) M() {\n\tt.x()\n}\n\nvar y = 1\n",
    {
        "// Area": ("// Area", "}", "function Area"),
        "\tx int": ("// T is.", "}", "type T"),
        "\tt.x()": ("func (t *T)", "}", "method M"),
        "var y": ("var y", "var y", "statement"),
    },
)
SOURCES["rust"] = (
    "use a;\n\n/// Doc.\n#[derive(Debug)]\npub struct A {\n    x: i32,\n}\n\nimpl B for A {\n    /// m\n    #[inline]\n"
    "    pub fn f(&self) -> i32 {\n        1\n    }\n}\n",
    {
        "#[derive": ("/// Doc.", "}", "struct A"),
        "    x: i32": ("/// Doc.", "}", "struct A"),
        "    #[inline]": ("    /// m", "    }", "function f"),
        "impl B": ("impl B", "}", "impl B for A"),
        "use a": ("use a", "use a", "statement"),
    },
)
SOURCES["c"] = (
    "#include <a.h>\n\n/* Doc. */\nstatic int *area(int a)\n{\n    return b(a);\n}\n\nstruct A {\n    int x;\n};\n\n"
    "typedef struct {\n    int y;\n} B;\n\n#define M(x) \\\n    x\n\nint g(void);\n",
    {
        "/* Doc": ("/* Doc", "}", "function area"),
        "    return": ("/* Doc", "}", "function area"),
        "    int x": ("struct A", "};", "struct A"),
        "    int y": ("typedef", "} B;", "type B"),
        "#define M": ("#define M", "    x", "macro M"),
        "int g(void)": ("int g", "int g", "statement"),
    },
)
SOURCES["cpp"] = (
    "namespace n {\n\n// Doc.\ntemplate <class T>\nclass A : B {\n public:\n  /// m\n  int f() const {\n"
    "    return 1;\n  }\n};\n\n"
    "int A<int>::g() {\n  return 2;\n}\n\n}  // namespace n\n",
    {
        "template": ("// Doc.", "};", "class A"),
        "    return 1": ("  /// m", "  }", "function f"),
        "  return 2": ("int A<int>::g", "}", "function A<int>::g"),
        "namespace n": ("namespace n", "}", "namespace n"),
    },
)
SOURCES["java"] = (
    "package a;\n\n/** Doc. */\n@A\npublic class X {\n  private int x = 1;\n\n  /** m */\n  @Override\n"
    "  public int f() {\n"
    "    return 1;\n  }\n\n  X() {\n    y();\n  }\n}\n",
    {
        "  private": ("/** Doc", "}", "class X"),
        "  /** m": ("  /** m", "  }", "method f"),
        "    y()": ("  X() {", "  }", "constructor X"),
    },
)
SOURCES["lua"] = (
    "local a = 1\n\n-- Doc.\nlocal function f()\n  return 1\nend\n\nM.g = function()\n  return 2\nend\n\n"
    "function M:k()\n  x()\nend\n",
    {
        "-- Doc": ("-- Doc", "end", "function f"),
        "  return 2": ("M.g", "end", "function M.g"),
        "  x()": ("function M:k", "end", "function M:k"),
        "local a": ("local a", "local a", "statement"),
    },
)
SOURCES["ruby"] = (
    "require 'a'\n\n# Doc.\nclass A < B\n  attr_reader :x\n\n  # m\n  def f\n    1\n  end\n\n"
    "  def self.g\n    2\n  end\nend\n",
    {
        "# Doc": ("# Doc", "end", "class A"),
        "  attr_reader": ("# Doc", "end", "class A"),
        "  # m": ("  # m", "  end", "method f"),
        "    2": ("  def self.g", "  end", "method g"),
    },
)
CASES = [(language, marker) for language, (_, cases) in SOURCES.items() for marker in cases]


@pytest.mark.parametrize(("language", "marker"), CASES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_stands_for_the_smallest_definition_or_statement_around_it(language: str, marker: str, end: str) -> None:
    source, cases = SOURCES[language]
    first, last, label = cases[marker]
    at = source[: source.index(marker)].count("\n")
    text = source.replace("\n", end)
    region = select_region(text, at=at, language=language)
    lines = source.split("\n")[region.start_line : region.end_line]
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)
    assert region.label == f"{label}, lines {region.start_line + 1}-{region.end_line}" or (
        region.label == f"{label}, line {region.end_line}" and len(lines) == 1
    )
    assert region.kind == ("statement" if label == "statement" else "definition")
    assert text[region.start : region.end] == end.join(lines) + end


@pytest.mark.parametrize("language", SOURCES)
def test_every_grammar_is_there_and_parses_its_example(language: str) -> None:
    syntax = parse(language, SOURCES[language][0])
    assert isinstance(syntax, Syntax)
    assert not syntax.root.has_error


def test_without_a_grammar_indentation_shows_the_block() -> None:
    text = "sub area {\n  my $r = 1;\n\n  if ($r) {\n    return 3;\n  }\n}\n\nmy $x = 1;\nmy $y = 2;\n"
    for at, expected in ((1, (0, 7)), (4, (3, 6)), (0, (0, 7)), (8, (8, 10)), (7, (8, 10)), (2, (0, 7)), (6, (0, 7))):
        region = select_region(text, at=at, language=None)
        assert (region.start_line, region.end_line) == expected
        assert region.kind == "statement"
    assert select_region(text, at=9, language="nothing").label == "paragraph, lines 9-10"
    assert select_region(text, at=5, language=None).label == "block, lines 4-6"


def test_a_blank_line_between_definitions_stands_for_what_follows() -> None:
    region = select_region("a = 1\n\nb = 2\nc = 3\n", at=1, language="python")
    assert region.label == "paragraph, lines 3-4"


def test_a_comment_at_another_level_does_not_belong_to_what_is_below() -> None:
    text = "if a:\n    b()\n    # about b\ndef f():\n    pass\n"
    assert select_region(text, at=4, language="python").label == "function f, lines 4-5"
    assert select_region("#!/bin/x\ndef f():\n    pass\n", at=1, language="python").start_line == 1


def test_lines_are_taken_as_given() -> None:
    region = select_region("a\r\nb\rc\nd", lines=(1, 3))
    assert (region.start, region.end, region.kind, region.label) == (3, 7, "selection", "lines 2-3")
    assert select_region("a\nb", lines=(1, 2)).label == "line 2"


def test_nothing_given_is_the_whole_text() -> None:
    region = select_region("a\nb")
    assert (region.start, region.end, region.start_line, region.end_line, region.kind) == (0, 3, 0, 2, "file")
    assert region.label == "the whole file"
    assert select_region("").end_line == 0


def test_a_selection_that_ends_at_column_0_does_not_take_that_line() -> None:
    assert lines_of_selection((2, 5), (4, 0)) == (2, 4)
    assert lines_of_selection((2, 5), (4, 1)) == (2, 5)
    assert lines_of_selection((4, 1), (2, 5)) == (2, 5), "either order"
    assert lines_of_selection((3, 0), (3, 0)) == (3, 4), "an empty selection takes its line"


@pytest.mark.parametrize(
    ("text", "lines", "at", "message"),
    [
        ("a\n", (0, 2), None, "has 1 line, so there is no line 2"),
        ("a\nb\n", None, 2, "has 2 lines, so there is no line 3"),
        ("", None, 0, "is empty"),
        ("a\n", (1, 1), None, "are no range"),
        ("a\n", (-1, 1), None, "are no range"),
        ("a\n", (0, 1), 0, "not both"),
    ],
)
def test_a_region_outside_the_text_is_refused(
    text: str, lines: tuple[int, int] | None, at: int | None, message: str
) -> None:
    with pytest.raises(RegionError, match=message):
        select_region(text, lines=lines, at=at)


def test_every_line_of_every_example_has_a_region() -> None:
    for language, (source, _) in SOURCES.items():
        for at in range(source.count("\n")):
            region = select_region(source, at=at, language=language)
            assert region.start_line <= at < region.end_line or not source.split("\n")[at].strip()


def test_broken_text_still_has_regions() -> None:
    text = "def f(:\n    return (\n\nclass A:\n    def g(self):\n        pass\n"
    for at in range(6):
        select_region(text, at=at, language="python")
    select_region("\ud800 = 1\n", at=0, language="python")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.randoms(use_true_random=False))
def test_any_line_of_a_mangled_text_has_a_region_of_whole_lines(language: str, rng: random.Random) -> None:
    lines = [line for line in SOURCES[language][0].split("\n") for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    if rng.random() < 0.3:
        rng.shuffle(lines)
    text = "".join(line[rng.choice([0, 0, 0, 3]) :] + rng.choice(["\n", "\r\n", "\r"]) for line in lines)
    split = split_lines(text)
    for at in range(len(split)):
        region = select_region(text, at=at, language=language)
        assert 0 <= region.start_line < region.end_line <= len(split)
        assert text[region.start : region.end] == "".join(split[region.start_line : region.end_line])
        assert region.start_line <= at < region.end_line or not content(split[at]).strip()


def test_a_file_name_tells_the_language() -> None:
    assert [language_of(p) for p in ("/a/b.PY", "x.jl", "C:\\a\\y.tsx", "Gemfile", "a.hpp", "h.h", "README.md")] == [
        "python", "julia", "tsx", "ruby", "cpp", "c", "markdown",
    ]  # fmt: skip
    assert language_of("a.unknown") is language_of(".py") is language_of("a") is None
