"""The line diff: right always, with the fewest changed lines where few changed."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from specd.daemon.rewrite.diff import MAX_EDITS, changed_blocks

few = st.lists(st.sampled_from("abcd"), max_size=30)


def applied(a: list[str], b: list[str]) -> list[str]:
    out, at = [], 0
    for a0, a1, b0, b1 in changed_blocks(a, b):
        out += a[at:a0] + b[b0:b1]
        at = a1
    return out + a[at:]


def most_kept(a: list[str], b: list[str]) -> int:
    """Length of a longest common subsequence, by the textbook table."""
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
    return row[-1]


@settings(max_examples=300, deadline=None)
@given(few, few)
def test_blocks_turn_one_side_into_the_other_with_the_fewest_lines(a: list[str], b: list[str]) -> None:
    blocks = changed_blocks(a, b)
    assert applied(a, b) == b
    assert len(a) - sum(a1 - a0 for a0, a1, _, _ in blocks) == most_kept(a, b)
    for above, below in pairwise(blocks):
        assert above[1] < below[0]
        assert above[3] < below[2]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 30, 5000]))
def test_large_differences_are_right_too(seed: int, kinds: int) -> None:
    import random

    rng = random.Random(seed)
    a = [str(rng.randrange(kinds)) for _ in range(600)]
    b = [str(rng.randrange(kinds)) for _ in range(600)]
    b[100:300] = a[100:300]
    assert applied(a, b) == b


def test_lines_that_occur_once_anchor_what_is_beyond_the_limit() -> None:
    assert MAX_EDITS < 20 * (30 + 5)
    a = [line for at in range(20) for line in [f"unique {at}", *[f"old {at}"] * 30]]
    b = [line for at in range(20) for line in [f"unique {at}", *[f"new {at}"] * 5]]
    assert changed_blocks(a, b) == [(31 * at + 1, 31 * at + 31, 6 * at + 1, 6 * at + 6) for at in range(20)]


def test_without_anchors_the_nearest_equal_lines_are_kept() -> None:
    a = ["}" if at % 2 else f"old {at % 7}" for at in range(6 * MAX_EDITS)]
    b = [line.replace("old", "new") for line in a]
    assert all(a1 - a0 == b1 - b0 == 1 for a0, a1, b0, b1 in changed_blocks(a, b))
