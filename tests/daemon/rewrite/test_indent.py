"""Indentation taken off and put back, and answers at the wrong level brought to the file's."""

from specd.daemon.rewrite.indent import Reindenter, common_indent, without_indent


def back(original: str, answer: str, indent: str = "") -> str:
    reindenter = Reindenter(original.split("\n"), indent)
    lines = [ready for line in answer.split("\n") for ready in reindenter.push(line)]
    return "\n".join(lines + reindenter.finish())


def test_the_common_indentation_is_that_of_all_lines_that_are_not_blank() -> None:
    assert common_indent(["    a", "", "      b", "  ", "    c"]) == "    "
    assert common_indent(["\t\ta", "\t b"]) == "\t"
    assert common_indent(["", "  "]) == ""
    assert common_indent(["  a", "b"]) == ""


def test_indentation_taken_off_and_put_back_gives_the_same_lines() -> None:
    original = ["\t\tif x:", "", "\t\t\ty()", "\t\tz()"]
    indent = common_indent(original)
    stripped = [without_indent(line, indent) for line in original]
    assert stripped == ["if x:", "", "\ty()", "z()"]
    assert back("\n".join(original), "\n".join(stripped), indent).split("\n") == original


def test_blank_lines_stay_blank() -> None:
    assert back("    a\n    b", "a\n\n  \nb", "    ") == "    a\n\n\n    b"


def test_an_answer_that_has_the_indentation_already_does_not_get_it_twice() -> None:
    original = "    def f(self):\n        return 1"
    assert back(original, "    def f(self, x):\n        return 1\n        # new", "    ").split("\n")[1:] == [
        "        return 1",
        "        # new",
    ]


def test_an_answer_without_it_on_the_first_line_only_is_repaired_line_by_line() -> None:
    original = "    def f(self):\n        x = compute(1)\n        return x"
    answer = "def f(self):\n        x = compute(1)\n        return x + 1"
    assert back(original, answer, "    ") == original + " + 1"


def test_code_put_into_a_block_is_deeper_than_it_was() -> None:
    original = "    x = 1\n    y = 2"
    assert back(original, "if a:\n    x = 1\n    y = 2", "    ") == "    if a:\n        x = 1\n        y = 2"
    assert back(original, "x = 1\nif a:\n    y = 2", "    ") == "    x = 1\n    if a:\n        y = 2"
    loop = "    for i in a:\n        x(i)\n        y(i)"
    answer = "for i in a:\n    if i:\n        x(i)\n        y(i)"
    assert back(loop, answer, "    ") == "    for i in a:\n        if i:\n            x(i)\n            y(i)"


def test_a_changed_first_line_at_the_originals_level_shows_that_the_indentation_is_there() -> None:
    original = "    def f(self):\n        return 1"
    answer = "    def f(self, x):\n        return x"
    assert back(original, answer, "    ") == answer


def test_a_first_line_that_lost_its_indentation_gets_it_back() -> None:
    original = "    def f(self):\n        return 1"
    assert back(original, "def f(self, x):\n        return 1") == "    def f(self, x):\n        return 1"
    assert back(original, "def f(self, x):\n        return x") == "    def f(self, x):\n        return x"


def test_a_new_first_line_above_the_old_one_keeps_its_own_indentation() -> None:
    original = "    x = 1\n    y = 2"
    assert back(original, "if a:\n    x = 1\n    y = 2") == "if a:\n    x = 1\n    y = 2"


def test_a_new_first_line_above_two_equal_ones_keeps_its_own_indentation() -> None:
    original = "    step()\n    step()"
    assert back(original, "if a:\n    step()\n    step()") == "if a:\n    step()\n    step()"


def test_a_region_moved_to_another_level_stays_there() -> None:
    original = "    x = 1\n    y = 2"
    assert back(original, "x = 1\ny = 2") == "x = 1\ny = 2"


def test_spaces_become_tabs_where_the_file_has_tabs() -> None:
    original = "func f() {\n\tif x {\n\t\ty()\n\t}\n}"
    answer = "func f() {\n    if x {\n        y()\n        z()\n    }\n}"
    assert back(original, answer) == "func f() {\n\tif x {\n\t\ty()\n\t\tz()\n\t}\n}"
    narrow = "func f() {\n  if x {\n    y()\n    z()\n  }\n}"
    assert back(original, narrow) == "func f() {\n\tif x {\n\t\ty()\n\t\tz()\n\t}\n}"


def test_tabs_become_spaces_where_the_file_has_spaces() -> None:
    original = "def f():\n  if x:\n    y()\n  z()"
    assert back(original, "def f():\n\tif x:\n\t\ty()\n\t\tw()") == "def f():\n  if x:\n    y()\n    w()"


def test_a_file_that_mixes_tabs_and_spaces_is_left_alone() -> None:
    original = "a\n\tb\n    c"
    assert back(original, "a\n    b\n\tc") == "a\n    b\n\tc"
