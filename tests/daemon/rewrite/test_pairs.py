"""How people write renames, and what must not be read as one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon.rewrite.pairs import MOST_PAIRS, MOST_TEXT, read_pairs

NAMED = [
    ("rename A to B", [("A", "B")]),
    ("Rename foo to bar.", [("foo", "bar")]),
    ("please rename the variable i to index", [("i", "index")]),
    ("Rename type to kind", [("type", "kind")]),
    ("A -> B", [("A", "B")]),
    ("a->b, c=>d", [("a", "b"), ("c", "d")]),
    ("old_name → new_name", [("old_name", "new_name")]),
    ("s/A/B/", [("A", "B")]),
    ("run s|a/b|c/d|g and s/x/y/ over it", [("a/b", "c/d"), ("x", "y")]),
    ("call it B instead of A", [("A", "B")]),
    ("Use c instead of cmd as the receiver name of the methods.", [("cmd", "c")]),
    ("Use fd as the loop variable in place of i.", [("i", "fd")]),
    ("let's use `newName` rather than `oldName`", [("oldName", "newName")]),
    ("name this variable total instead of sum", [("sum", "total")]),
    ("change `A`, `B` into `C`, `D`", [("A", "C"), ("B", "D")]),
    (
        "Rename the helpers ones, falses and trues to dataones, datafalses and datatrues.",
        [("ones", "dataones"), ("falses", "datafalses"), ("trues", "datatrues")],
    ),
    (
        "Rename the Context class to Environment and the pass_context decorator to pass_environment.",
        [("Context", "Environment"), ("pass_context", "pass_environment")],
    ),
    ("Rename foo to bar, baz to qux.", [("foo", "bar"), ("baz", "qux")]),
    ("rename foo to bar in the tests and baz to qux in the code", [("foo", "bar"), ("baz", "qux")]),
    ("foo and bar should be named x and y", [("foo", "x"), ("bar", "y")]),
    ("The package Stats is now called StatsBase; update the imports.", [("Stats", "StatsBase")]),
    ("the parameter buffer becomes buf and the local data becomes buf_data", [("buffer", "buf"), ("data", "buf_data")]),
    ("state should be named raw_state; update every use.", [("state", "raw_state")]),
    ("I want getUser renamed to fetchUser", [("getUser", "fetchUser")]),
    ("EntryManager is a poor name; rename it to Registry", [("EntryManager", "Registry")]),
    ("change the name of foo to bar", [("foo", "bar")]),
    ("Replace CachedThreadLocal by ThreadLocal.", [("CachedThreadLocal", "ThreadLocal")]),
    ("replace x with y everywhere", [("x", "y")]),
    ("swap foo for bar", [("foo", "bar")]),
    ("fix typo: recieve -> receive", [("recieve", "receive")]),
    ("Correct the misspelling seperator to separator.", [("seperator", "separator")]),
    ("Please rename self.x to self.y", [("self.x", "self.y")]),
    ("could you rename `foo()` to `bar()`?", [("foo()", "bar()")]),
    (
        "Rename replace_names! and replace_names to rename! and rename.",
        [("replace_names!", "rename!"), ("replace_names", "rename")],
    ),
    ("Rename “the old title” to “a new title”", [("the old title", "a new title")]),
    ("Make RootCmd private as rootCmd and document Execute.", [("RootCmd", "rootCmd")]),
    ("Use Relaxed ordering instead of SeqCst for the atomic flags.", [("SeqCst", "Relaxed")]),
    ("Rename the local size to filesize to avoid a warning, and do not initialise si.", [("size", "filesize")]),
    ("prefix foo and bar with my_", [("foo", "my_foo"), ("bar", "my_bar")]),
    (
        "Append Annotation to the names of the constants oneGroup and oneRequired.",
        [("oneGroup", "oneGroupAnnotation"), ("oneRequired", "oneRequiredAnnotation")],
    ),
    (
        "Give wrap a new first parameter ctx and pass it at every call.",
        [("wrap()", "wrap(ctx)"), ("wrap(", "wrap(ctx, ")],
    ),
    ("swap a and b", [("a", "b"), ("b", "a")]),
    ("Swap the arguments `width` and `height`.", [("width", "height"), ("height", "width")]),
    ("swap the order of lo and hi in the call", [("lo", "hi"), ("hi", "lo")]),
    ("swap a and b, then rename c to d", [("a", "b"), ("b", "a"), ("c", "d")]),
    ("turn foo into bar", [("foo", "bar")]),
    ("Turn the class Foo into Bar", [("Foo", "Bar")]),
    ("instead of foo, use bar", [("foo", "bar")]),
    ("Instead of `print()`, use `log.info()`.", [("print()", "log.info()")]),
    ("Instead of Foo please call it Bar everywhere", [("Foo", "Bar")]),
    ("prefer bar over foo", [("foo", "bar")]),
    ("Use `pathlib.Path` over `os.path`.", [("os.path", "pathlib.Path")]),
    ("substitute bar for foo", [("foo", "bar")]),
    ("substitute foo with bar", [("foo", "bar")]),
    ("Bar should replace Foo", [("Foo", "Bar")]),
    ("`Bar` now replaces `Foo`", [("Foo", "Bar")]),
    ("let Bar replace Foo", [("Foo", "Bar")]),
    ("Foo should be replaced by Bar", [("Foo", "Bar")]),
    ("every foo is replaced with bar", [("foo", "bar")]),
    ("rename «foo» to «bar»", [("foo", "bar")]),
    ("Renommer : « foo » -> « bar »", [("foo", "bar")]),
    (r"s/a\/b/c/", [("a/b", "c")]),
    (r"s/\bfoo\b/bar/g", [("foo", "bar")]),
    (r"s/a\.b/c\/d/", [("a.b", "c/d")]),
    ("add a first argument `env` to load", [("load()", "load(env)"), ("load(", "load(env, ")]),
    ("use `B` not `A`", [("A", "B")]),
    ("use bar, not foo", [("foo", "bar")]),
    ("call it bar and not foo", [("foo", "bar")]),
    ("Don't use `print()`, use `log.info()`.", [("print()", "log.info()")]),
    ("foo should be bar", [("foo", "bar")]),
    ("foo should be bar and baz should be qux.", [("foo", "bar"), ("baz", "qux")]),
    ("In the tests `foo` should be `bar`, and keep the docs.", [("foo", "bar")]),
    ("the fix of old_name: it must stay, but old_name should be newName", [("old_name", "newName")]),
    ("call A B", [("A", "B")]),
    ("Call foo bar.", [("foo", "bar")]),
    ("in the tests call fooBar foo_bar", [("fooBar", "foo_bar")]),
    ("Change the name A into B", [("A", "B")]),
    ("10 should be 20", [("10", "20")]),
]

TWO = [("foo", "bar"), ("baz", "qux")]
LISTS = [
    "1. foo -> bar\n2. baz -> qux",
    "* foo -> bar\n* baz -> qux",
    "(1) foo -> bar\n(2) baz -> qux",
    "a) foo -> bar\nb) baz -> qux",
    "- [ ] foo -> bar\n- [x] baz -> qux",
    "foo -> bar\nbaz -> qux",
    "rename:\n- foo to bar\n- baz to qux",
    "rename:\r\n- foo to bar\r\n- baz to qux",
    "The following should be renamed:\n- foo to bar\n- baz to qux",
    "Rename as follows:\n\n    foo -> bar\n    baz -> qux",
    "rename the following: foo to bar, baz to qux",
    "Rename:\n  1) foo to bar\n  2) baz to qux",
    "rename: 1) foo to bar, 2) baz to qux",
    "Rename these functions:\n\n* foo to bar\n* `baz` to `qux`\n\nKeep the rest.",
    "Please make these renames:\nfoo to bar\nbaz to qux",
    "Changes:\n1. `foo` → `bar`\n   because it is nicer\n2. `baz` → `qux`",
    "1. Rename foo to bar.\n2. Document run.\n3. rename baz to qux",
    "Rename:\n- foo to bar\n- add a parameter to run\n- baz to qux",
]

REFUSED = [
    ("Don't rename foo to bar", []),
    ("Don’t rename foo to bar, baz to qux", []),
    ("do not rename foo to bar or baz to qux", []),
    ("never rename foo to bar", []),
    ("I don't want foo renamed to bar", []),
    ("foo must not be renamed to bar", []),
    ("Don't rename:\n- foo to bar\n- baz -> qux", []),
    ("These should not be renamed:\n- foo to bar\n- baz to qux", []),
    ("Make sure not to rename foo to bar", []),
    ("Do not add a first argument p to f", []),
    ("rename foo to bar, but not baz to qux", [("foo", "bar")]),
    ("rename foo to bar (not baz to qux)", [("foo", "bar")]),
    ("rename foo to bar and don't rename baz to qux", [("foo", "bar")]),
    ("rename foo to bar; baz should not be renamed to qux", [("foo", "bar")]),
    ("rename foo to bar without renaming baz to qux", [("foo", "bar")]),
    ("please do not change foo to bar but change baz to qux", [("baz", "qux")]),
    ("never rename foo to bar, rename baz to qux", [("baz", "qux")]),
    ("Rename x to y. Do not rename foo to bar. Rename baz to qux.", [("x", "y"), ("baz", "qux")]),
    ("Don't forget to rename foo to bar", [("foo", "bar")]),
    ("Rename foo to bar, but don't touch baz", [("foo", "bar")]),
    ("rename foo to bar so that it does not change size, and baz to qux", TWO),
    ("replace 'do not rename a to b' with 'c'", [("do not rename a to b", "c")]),
]

UNNAMED = [
    "",
    "Find a better name for output and use it throughout.",
    "rename it to something clearer",
    "Rename schema so that it no longer clashes with the other name.",
    "Add a flag that names the target package and is used instead of the working directory.",
    "Export the new Path parameter type from the package and add it to __all__.",
    "Turn the method check of Finder into a top-level function placed before the class, and update its callers.",
    "Do not print paths when listing files.",
    "Pass the logger to run.",
    "Compare the keys with isequal.",
    "instead of a list, use a dict",
    "turn the loop into a comprehension",
    "turn this into a loop",
    "turn on logging and turn off colours",
    "swap the two arguments",
    "swap the order of the arguments and update the docs",
    "The new parser should replace the old one.",
    "The code should replace tabs with nothing",
    "we should replace this",
    "iterate over the items and print each over the other",
    r"s/(\d+)px/\1em/",
    "Output should be sorted.",
    "This should be faster",
    "the result of `f` should be `None`",
    "MAX should be 10",
    "call close twice",
    "Call the helper here.",
    "A helper should be there",
]


@pytest.mark.parametrize(("instruction", "pairs"), NAMED)
def test_a_rename_is_read(instruction: str, pairs: list[tuple[str, str]]) -> None:
    assert read_pairs(instruction) == pairs


@pytest.mark.parametrize("instruction", LISTS)
def test_each_item_of_a_list_is_read(instruction: str) -> None:
    assert read_pairs(instruction) == TWO


@pytest.mark.parametrize(("old", "new"), [("*", "+"), ("-", "+"), ("1", "2")])
def test_an_operator_or_a_number_is_no_bullet(old: str, new: str) -> None:
    assert read_pairs(f"{old} -> {new}") == [(old, new)]


@pytest.mark.parametrize(("instruction", "pairs"), REFUSED)
def test_what_an_instruction_says_not_to_rename_is_not_read(instruction: str, pairs: list[tuple[str, str]]) -> None:
    assert read_pairs(instruction) == pairs


@pytest.mark.parametrize("instruction", UNNAMED)
def test_no_rename_is_read_where_no_new_name_is_given(instruction: str) -> None:
    assert read_pairs(instruction) == []


@given(
    st.from_regex(r"[a-z][a-z0-9]{2,8}_[a-z0-9]{2,8}", fullmatch=True),
    st.from_regex(r"[a-z]{2,6}_[A-Za-z0-9]{2,8}", fullmatch=True),
)
def test_any_two_identifiers_are_read_in_every_usual_order(old: str, new: str) -> None:
    expected = [(old, new)] if old != new else []
    for form in (
        "rename {} to {}",
        "{} -> {}",
        "`{}` becomes `{}`",
        "Replace {} with {}.",
        "{} should be called {}",
        "change '{}' to '{}'",
    ):
        assert read_pairs(form.format(old, new)) == expected
    assert read_pairs(f"use {new} instead of {old}") == expected


WORDS = ["rename", "to", "`", "a", ",", "and", "->", "s/", "instead of", "it", ";", "as", "\n", "- ", "1.", "2.", ":"]
WORDS += ["not", "don't", "without", "renamed", "should be", "call", "use", "but", "B", "'", "(", ")", "becomes"]


@given(st.text(max_size=200) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_read_without_raising(instruction: str) -> None:
    for old, new in read_pairs(instruction):
        assert old
        assert old != new


def test_the_reading_of_an_endless_instruction_ends() -> None:
    pairs = read_pairs(", ".join(f"name_{n} -> other_{n}" for n in range(100_000)))
    assert len(pairs) == MOST_PAIRS
    assert read_pairs("x" * MOST_TEXT + " rename foo to bar") == []


@pytest.mark.parametrize(
    "text", ["- instead of", "do not - ", "x not a a to ", "call a ", "1. a: ", "\n", "don't use a, "]
)
def test_a_text_of_one_phrase_without_end_is_read_at_once(text: str) -> None:
    began = time.process_time()
    read_pairs(text * MOST_TEXT)
    assert time.process_time() - began < 2.0


def test_the_first_of_two_new_names_counts() -> None:
    assert read_pairs("rename foo to bar; rename foo to baz") == [("foo", "bar")]


def test_backslashes_without_end_are_no_command_and_read_at_once() -> None:
    assert read_pairs("s/" + "\\" * MOST_TEXT) == []
    assert read_pairs("s/" + "\\a" * MOST_TEXT + "/b/") == []
