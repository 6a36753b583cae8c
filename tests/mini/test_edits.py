import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specd.mini.edits import EVALUATION_KINDS, KINDS, EditMaker, SourceFile
from specd.mini.names import rename_in, split_words, whole_word
from specd.mini.region import Region, arguments, dedent
from specd.mini.wording import RENAME, RENAME_UNSEEN

SIZES = ((1.0, 900),)
few = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.parametrize("kind", [*KINDS, *EVALUATION_KINDS])
def test_every_kind_changes_the_region_or_leaves_it_on_purpose(
    kind: str, files: list[SourceFile], pool: list[str]
) -> None:
    maker = EditMaker(files, pool, 3)
    for _ in range(4):
        edit = maker.make(kind, sizes=SIZES)
        assert (edit.after == edit.before) == (kind in ("absent", "unable"))
        assert edit.instruction
        assert "\n" not in edit.instruction
        assert "```" not in edit.before + edit.after


def test_the_same_seed_gives_the_same_edits(files: list[SourceFile], pool: list[str]) -> None:
    a, b = EditMaker(files, pool, 11), EditMaker(files, pool, 11)
    assert [a.make() for _ in range(20)] == [b.make() for _ in range(20)]


@few
@given(seed=st.integers(0, 10**6))
def test_a_rename_changes_whole_words_only(seed: int, files: list[SourceFile], pool: list[str]) -> None:
    edit = EditMaker(files, pool, seed).make("rename_plain", sizes=SIZES)
    m = re.fullmatch(r"rename (\w+) to (\w+)", edit.instruction)
    assert m is not None
    old, new = m.groups()
    assert not whole_word(old).search(edit.after)
    assert edit.after == whole_word(old).sub(new, edit.before)


@few
@given(seed=st.integers(0, 10**6))
def test_a_deleted_line_is_the_only_difference(seed: int, files: list[SourceFile], pool: list[str]) -> None:
    edit = EditMaker(files, pool, seed).make("delete", sizes=SIZES)
    before, kept = edit.before.split("\n"), iter(edit.before.split("\n"))
    after = edit.after.split("\n")
    assert len(after) < len(before)
    assert all(any(line == b for b in kept) for line in after), "what is left is a subsequence of what was there"


@few
@given(seed=st.integers(0, 10**6))
def test_inserting_keeps_every_line(seed: int, files: list[SourceFile], pool: list[str]) -> None:
    edit = EditMaker(files, pool, seed).make("insert", sizes=SIZES)
    after = iter(edit.after.split("\n"))
    assert len(edit.after.split("\n")) == len(edit.before.split("\n")) + 1
    assert all(any(line == a for a in after) for line in edit.before.split("\n"))


def test_swapping_two_names_is_done_at_once() -> None:
    assert rename_in("a = b; ab = a", {"a": "b", "b": "a"}) == "b = a; ab = b"


def test_words_of_a_name_are_told_apart() -> None:
    assert split_words("parseHTTPHeader_line2") == ["parse", "HTTP", "Header", "line2"]


def test_arguments_respect_brackets() -> None:
    assert arguments("a, f(b, c), [d, e]") == ["a", " f(b, c)", " [d, e]"]


def test_a_block_that_the_region_cuts_is_not_a_block() -> None:
    cut = Region("fn f() {\n    g();", "rust", ["x"])
    whole = Region("fn f() {\n    g();\n}", "rust", ["x"])
    assert cut.block(0) is None
    assert whole.block(0) == (0, 3)


def test_dedent_takes_off_the_shared_indentation_only() -> None:
    assert dedent("    a\n\n      b\n    c") == "a\n\n  b\nc"
    assert dedent("\ta\n    b") == "\ta\n    b"


def test_no_unseen_wording_is_trained_on() -> None:
    assert not set(RENAME) & set(RENAME_UNSEEN)
