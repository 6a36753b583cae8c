import re
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specd.mini.edits import EVALUATION_KINDS, KINDS, EditMaker, SourceFile
from specd.mini.lookalike import foreign, plant_names
from specd.mini.names import IDENTIFIER, look_alike, rename_in, split_words, whole_word
from specd.mini.phrasing import rename_template
from specd.mini.region import Region, arguments, dedent
from specd.mini.wording import RENAME, RENAME_UNSEEN, ask

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


@few
@given(seed=st.integers(0, 10**9))
def test_a_made_up_wording_names_both_names_once_and_is_no_unseen_one(seed: int) -> None:
    rng = Random(seed)
    for _ in range(40):
        template = rename_template(rng)
        assert template not in RENAME_UNSEEN
        sentence = ask(rng, template, "oldThing", "new_thing")
        assert whole_word("oldThing").findall(sentence) == ["oldThing"], template
        assert whole_word("new_thing").findall(sentence) == ["new_thing"], template
        assert "\n" not in sentence


@few
@given(kind=st.sampled_from(["rename", "rename_hard", "rename_several", "rename_style"]), seed=st.integers(0, 10**6))
def test_the_names_of_a_rename_say_which_words_change(
    kind: str, seed: int, files: list[SourceFile], pool: list[str]
) -> None:
    edit = EditMaker(files, pool, seed).make(kind, sizes=SIZES, dense=True)
    half = len(edit.names) // 2
    olds, news = edit.names[:half], edit.names[half:]
    assert edit.after == rename_in(edit.before, dict(zip(olds, news, strict=True)))
    assert all(whole_word(n).search(edit.before) for n in olds)
    assert not any(whole_word(n).search(edit.before) for n in news)


@few
@given(seed=st.integers(0, 10**6))
def test_a_literal_changes_where_it_is_whole(seed: int, files: list[SourceFile], pool: list[str]) -> None:
    edit = EditMaker(files, pool, seed).make("literal", sizes=SIZES, dense=True)
    old, new = edit.names
    number = r"(?<![\w.])" + re.escape(old) + r"(?![\w.])"
    quoted = [re.sub(re.escape(q + old + q), lambda _, q=q: q + new + q, edit.before) for q in "\"'"]  # type: ignore[misc]
    assert edit.after in (re.sub(number, lambda _: new, edit.before), *quoted)


@few
@given(seed=st.integers(0, 10**6))
def test_planted_names_read_like_the_one_meant(seed: int, pool: list[str]) -> None:
    code = "total = first + second\nprint(total, first, third)\nfirst = total(second, third, fourth)"
    region = plant_names(Random(seed), Region(code, "python", pool), "total")
    if region is None:
        return
    assert len(IDENTIFIER.findall(region.code)) == len(IDENTIFIER.findall(code)), "names change, nothing comes or goes"
    assert IDENTIFIER.sub("_", region.code) == IDENTIFIER.sub("_", code)
    assert set(region.counts) - {"total", "first", "second", "third", "fourth", "print"}, "a twin is there"


@few
@given(seed=st.integers(0, 10**6))
def test_text_of_other_scripts_stands_in_strings_and_comments_only(seed: int, pool: list[str]) -> None:
    code = 'total = read("a file of numbers", 7)\n# adds what was found\nprint(total, "the sum of all")'
    planted = foreign(Random(seed), Region(code, "python", pool)).code
    shape = re.compile(r'"[^"\n]*"|# .*')
    assert shape.sub("_", planted) == shape.sub("_", code)
    assert planted.isprintable() or "\n" in planted
    planted.encode()


def test_training_meets_other_scripts(files: list[SourceFile], pool: list[str]) -> None:
    maker = EditMaker(files, pool, 2)
    before = [maker.make("rename", sizes=SIZES, dense=True).before for _ in range(200)]
    assert any(ord(c) > 0x17F for text in before for c in text)


def test_look_alikes_often_begin_like_the_name() -> None:
    rng = Random(4)
    twins = [look_alike(rng, "symbol_information") for _ in range(400)]
    assert sum(t.startswith("symbol") and t != "symbol_information" for t in twins) > 200


def test_a_case_change_for_evaluation_changes_one_name(files: list[SourceFile], pool: list[str]) -> None:
    maker = EditMaker(files, pool, 8)
    for _ in range(10):
        edit = maker.make("case_change", sizes=SIZES)
        old, new = edit.names
        assert split_words(old.strip("_").lower().replace("_", "")) == split_words(new.lower().replace("_", ""))
        assert edit.after == rename_in(edit.before, {old: new})
