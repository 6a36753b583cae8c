"""What is told of a rename: names that still stand, and longer ones that changed with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.daemon.rewrite.pairs import read_pairs
from specd.daemon.rewrite.renames import gone, remarks

BEFORE = "def page(pages):\n    page_size = 1\n    return page\n"


def told(instruction: str, before: str, after: str, first: int = 0) -> list[str]:
    return remarks(instruction, read_pairs(instruction), before, after, first=first)


def test_a_rename_that_is_right_needs_no_word() -> None:
    assert (
        told("rename page to block", BEFORE, BEFORE.replace("page(", "block(").replace("return page", "return block"))
        == []
    )


def test_a_name_that_still_stands_is_told_with_its_lines_in_the_file() -> None:
    after = BEFORE.replace("page(", "block(")
    assert told("rename page to block", BEFORE, after) == ["page is still there: line 3"]
    assert told("rename page to block", BEFORE, after, first=40) == ["page is still there: line 43"]
    many = "page\r\nx\rpage\n" + "page\n" * 4
    assert told("rename page to block", many, many) == ["page is still there: lines 1, 3, 4 and 3 more"]


def test_longer_names_that_changed_with_it_are_told_unless_they_were_asked_for() -> None:
    after = BEFORE.replace("page", "block")
    assert told("rename page to block", BEFORE, after) == [
        "renamed with page: pages is now blocks, page_size is now block_size"
    ]
    assert told("rename page to block, page_size and pages too", BEFORE, after) == []


@pytest.mark.parametrize(
    "instruction",
    ["return page instead of page_size", "rename the function", "rename page to pages and pages to page",
     "rename self.page to self.block", "rename nothing to something", "replace page by block"],
)  # fmt: skip
def test_what_is_no_plain_rename_of_what_is_there_is_not_judged(instruction: str) -> None:
    assert told(instruction, BEFORE, BEFORE.replace("page", "block") + "page page page\n") == []


@pytest.mark.parametrize(
    "instruction", ["set GAP to -0.02", "Set the value of `GAP` to 3, please", "raise GAP to .5", "set GAP = true"]
)
def test_a_name_that_is_given_a_value_and_is_gone_is_told(instruction: str) -> None:
    assert gone(instruction, "GAP = -0.01\n", "--0.02 = -0.01\n") == ["GAP is gone"]
    assert gone(instruction, "GAP = 1\nreturn GAP\n", "2 = 1\nreturn GAP\n") == [
        "a place where GAP had its value is gone"
    ]
    assert gone(instruction, "GAP = GAP + 1\n", "GAP = 3\n") == []
    assert gone(instruction, "if GAP == 1: GAP := 2\n", "if other: GAP := 3\n") == []
    assert gone(instruction, "GAP = -0.01\n", "GAP = -0.02\n") == []
    assert gone(instruction, "GAPS = -0.01\n", "x = 1\n") == []


@pytest.mark.parametrize(
    "instruction", ["rename GAP to SPACE", "set GAP to SPACE", "delete GAP", "GAP to -0.02", "set it to 3, not GAP"]
)
def test_a_name_that_may_well_go_is_not_missed(instruction: str) -> None:
    assert gone(instruction, "GAP = -0.01\n", "") == []


@given(st.text(), st.text(), st.text())
def test_any_texts_are_searched_for_names_that_are_gone(instruction: str, before: str, after: str) -> None:
    assert all("\n" not in line and len(line) < 80 for line in gone("set a to 1 " + instruction, before, after))


@given(st.text(), st.text(), st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_any_texts_are_compared(instruction: str, before: str, after: str, pairs: list[tuple[str, str]]) -> None:
    for line in remarks("rename " + instruction, pairs, before, after):
        assert "\n" not in line
        assert len(line) < 600
