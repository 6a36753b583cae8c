"""Several continuations of one context, by a search over the whole row."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.engine import Committed, Sequence
from specd.engine.propose.ngram_tree import AHEAD, CLASSES, FIRST, LONGEST, LONGEST_FREE, NgramBranches


def naive_continuations(
    row: list[int], seeds: list[list[int]], k: int, longest: int
) -> list[tuple[int, int, list[int]]]:
    """(length of match, place, tokens) of every earlier occurrence of at least the newest token, by search."""
    found = []
    history: list[int] = []
    for seed in seeds:
        history += [*seed, -1]
    history += row
    for position in range(1, len(history)):
        length = 0
        most = min(longest, position, len(history))
        while length < most and history[position - 1 - length] == history[-1 - length] != -1:
            length += 1
        if length:
            copied = history[position : position + k]
            if -1 in copied:
                copied = copied[: copied.index(-1)]
            else:
                while len(copied) < k:
                    copied.append(history[position:][len(copied) % (len(history) - position)])
            found.append((length, position, copied))
    return sorted(found, key=lambda item: (-item[0], -item[1]))


ROWS = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(
    ROWS,
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), max_size=2),
    st.integers(1, 9),
    st.sampled_from([3, LONGEST_FREE, LONGEST]),
)
def test_continuations_are_the_longest_matches_first_and_the_latest_of_equals(
    row: list[int], seeds: list[list[int]], k: int, longest: int
) -> None:
    source = NgramBranches(9, seeds, width=100, longest=longest)
    found = source.continuations(Sequence(row, 1), k)
    expected: list[list[int]] = []
    for length, _, tokens in naive_continuations(row, seeds, k, longest):
        evidence = bisect_right(CLASSES, length) if len(row) > 1 else FIRST
        tokens = tokens[: AHEAD[evidence]] if expected else tokens
        if tokens and tokens not in expected:
            expected.append(tokens)
    assert [guess.tokens for guess in found] == expected
    assert [guess.evidence for guess in found] == sorted((guess.evidence for guess in found), reverse=True)
    few = NgramBranches(9, seeds, width=2, longest=longest)
    assert few.continuations(Sequence(row, 1), k) == found[:2]


@given(ROWS, ROWS, st.integers(0, 40))
def test_truncated_continuations_are_those_of_a_new_start(row: list[int], other: list[int], length: int) -> None:
    source = NgramBranches(9, [[0, 1, 2, 0]])
    source.observe(Sequence(row, 1), Committed([]))
    source.truncate(length)
    again = [*row[:length], *other]
    assert source.continuations(Sequence(again, 1), 5) == NgramBranches(9, [[0, 1, 2, 0]]).continuations(
        Sequence(again, 1), 5
    )


def test_bad_sizes_are_refused() -> None:
    for bad in ({"k": 0}, {"width": 0}, {"max_n": 0}):
        with pytest.raises(ValueError, match="1 or more"):
            NgramBranches(**bad)  # type: ignore[arg-type]
