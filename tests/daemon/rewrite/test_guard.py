"""What the guard finds after a rewrite, and what it leaves alone."""

import pytest

from specd.daemon.rewrite.guard import GuardReport, check

FINE = GuardReport(True, False, [], [], "")
PYTHON = """\
import os


def area(r):
    return r


class A:
    def f(self):
        pass

    def g(self):
        pass
"""


def test_a_text_that_parses_as_before_is_fine() -> None:
    assert check("python", PYTHON, PYTHON.replace("return r", "return 3 * r")) == FINE
    assert check("python", PYTHON, PYTHON) == FINE


BROKEN = {
    "c": ("int f(void) { return 1; }\n", "int f(void) { return 1; \n"),
    "cpp": ("class A { int f(); };\n", "class A { int f(; };\n"),
    "go": ("package a\n\nfunc f() int { return 1 }\n", "package a\n\nfunc f( int { return 1 }\n"),
    "java": ("class A { int f() { return 1; } }\n", "class A { int f() { return 1 } }\n"),
    "javascript": ("const f = () => { x() }\n", "const f = () => { x( }\n"),
    "julia": ("function f(x)\n    x\nend\n", "function f(x)\n    x\n"),
    "lua": ("function f()\n  return 1\nend\n", "function f()\n  return 1\n"),
    "python": ("def f(x):\n    return x\n", "def f(x:\n    return x\n"),
    "ruby": ("def f\n  1\nend\n", "def f\n  1\n"),
    "rust": ("fn f() -> i32 { 1 }\n", "fn f() -> i32 { 1\n"),
    "tsx": ("const A = () => <b>x</b>;\n", "const A = () => <b>x</i;\n"),
    "typescript": ("interface A { x: number }\n", "interface A { x: number\n"),
}


@pytest.mark.parametrize("language", BROKEN)
def test_a_text_that_parsed_and_does_not_now_is_reported_with_a_line(language: str) -> None:
    before, after = BROKEN[language]
    report = check(language, before, after)
    assert report.broke_syntax
    assert not report.ok
    assert "does not parse" in report.message


def test_the_line_of_the_first_error_is_named() -> None:
    assert check("python", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = (2\nc = 3\n").message == "line 2 does not parse"
    assert check("python", "a = 1\n", "a = 1\nb = = 2\n").message == "line 2 does not parse"


def test_a_text_that_did_not_parse_before_may_stay_so() -> None:
    assert check("python", "def f(:\n", "def g(:\n") == FINE


def test_without_a_grammar_there_is_nothing_to_report() -> None:
    assert check(None, "a", "b") == check("brainfuck", "a", "b") == FINE


def test_lost_definitions_are_reported_and_renamed_ones_are_not() -> None:
    assert check("python", PYTHON, PYTHON[: PYTHON.index("class A")]).lost == ["A", "A.f", "A.g"]
    report = check("python", PYTHON, PYTHON.replace("def g(self):\n        pass\n", ""))
    assert (report.lost, report.broke_syntax, report.message) == (["A.g"], False, "gone: A.g")
    assert check("python", PYTHON, PYTHON.replace("area", "surface").replace("def g", "def h")) == FINE


def test_what_the_instruction_names_may_go() -> None:
    after = PYTHON.replace("def area(r):\n    return r\n", "")
    assert check("python", PYTHON, after, instruction="remove area") == FINE
    assert check("python", PYTHON, after, instruction="remove the areas").lost == ["area"]


def test_definitions_that_are_there_twice_are_reported() -> None:
    report = check("python", PYTHON, PYTHON + "\n\ndef area(r, scale):\n    return r\n")
    assert (report.duplicated, report.message) == (["area"], "there twice: area")
    assert check("javascript", "function f() {}\n", "function f() {}\nfunction f(a) {}\n").duplicated == ["f"]
    assert check("go", "package a\n\nfunc f() {}\n", "package a\n\nfunc f() {}\n\nfunc f() {}\n").duplicated == ["f"]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("julia", "f(x::Int) = 1\n", "f(x::Float64) = 2\n"),
        ("java", "class A { void f() {} ", "void f(int x) {} }\n"),
        ("cpp", "int f(int x) { return 1; }\n", "int f(double x) { return 1; }\n"),
        ("typescript", "function f(a: string): void;\n", "function f(a: number): void;\n"),
        ("python", "@overload\ndef f(x): ...\n", "@f.setter\ndef f(x): ...\n"),
        ("rust", "impl A { fn f() {} }\n", "impl B for A { fn f() {} }\n"),
    ],
)
def test_methods_and_overloads_of_one_name_are_fine(language: str, one: str, other: str) -> None:
    closed = one + "}\n" if language == "java" else one
    assert check(language, closed, one + other) == FINE


def test_the_same_method_twice_is_reported_where_overloads_are_allowed() -> None:
    assert check("julia", "f(x::Int) = 1\n", "f(x::Int) = 1\nf(x::Int) = 2\n").duplicated == []
    twice = "function f(x)\n    1\nend\nfunction f(x)\n    2\nend\n"
    assert check("julia", twice[: len(twice) // 2], twice).duplicated == ["f"]


def test_twins_that_were_there_before_are_nobodys_fault() -> None:
    before = "def f():\n    pass\n\n\ndef f():\n    pass\n"
    assert check("python", before, before.replace("def f", "def g")) == FINE


def test_members_of_anonymous_types_do_not_count() -> None:
    one = "class A {\n  Object o = new B() { public String toString() { return null; } };\n"
    two = one + "  Object p = new B() { public String toString() { return null; } };\n}\n"
    assert check("java", one + "}\n", two) == FINE


def test_a_long_list_is_cut_short() -> None:
    before = "".join(f"def f{at}():\n    pass\n" for at in range(9))
    assert check("python", before, "x = 1\n").message == "gone: f0, f1, f2, f3 and 5 more"
