"""Lookup: the latest earlier occurrence of the longest n-gram, seeds behind it, nothing kept of what is taken back."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupting import Interrupting

from specd.engine import Committed, NgramProposer, Sequence
from specd.engine.propose.ngram import BREAK, NgramIndex

ROWS = st.lists(st.integers(0, 3), max_size=60)


def latest(tokens: list[int], n: int) -> int | None:
    """Where the last n tokens stood before, by looking everywhere."""
    places = [end for end in range(n, len(tokens)) if tokens[end - n : end] == tokens[-n:]]
    return max(places, default=None) if len(tokens) >= n else None


@given(ROWS, st.lists(st.integers(0, 60), max_size=5))
def test_the_index_finds_what_a_search_finds(tokens: list[int], cuts: list[int]) -> None:
    index = NgramIndex(4)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(tokens)], strict=True):
        index.extend(tokens[begin:end])
    index.extend(tokens[len(index) :])
    for n in (1, 2, 3, 4):
        assert index.find(n) == latest(tokens, n)


@given(ROWS, ROWS, st.integers(0, 60))
def test_a_truncated_index_is_a_fresh_one(tokens: list[int], more: list[int], length: int) -> None:
    index, fresh = NgramIndex(3), NgramIndex(3)
    index.extend(tokens)
    index.truncate(length)
    index.extend(more)
    fresh.extend(tokens[:length] + more)
    assert index.tokens == fresh.tokens
    for n in (1, 2, 3):
        found = fresh.find(n)
        assert index.find(n) == found
        if found is not None:
            assert index.earlier(n, found) == fresh.earlier(n, found)


@given(st.lists(ROWS, max_size=3), ROWS, st.integers(1, 20))
def test_a_draft_is_at_most_k_tokens_of_the_row_or_a_seed(seeds: list[list[int]], row: list[int], k: int) -> None:
    drafted = NgramProposer(k=16, seeds=seeds).propose(Sequence(row, len(row)), k).tokens.tolist()
    assert len(drafted) <= min(k, 16)
    assert BREAK not in drafted


def test_the_longest_match_wins_and_says_how_long_it_was() -> None:
    row = [1, 2, 3, 7, 7, 2, 3, 8, 8, 1, 2, 3]
    draft = NgramProposer(k=2).propose(Sequence(row, len(row)), 2)
    assert (draft.tokens.tolist(), draft.evidence) == ([7, 7], 3)


def test_the_row_wins_over_a_seed_and_a_longer_match_in_a_seed_over_the_row() -> None:
    seeds = [[1, 2, 3, 4, 50]]
    assert NgramProposer(k=1, seeds=seeds).propose(Sequence([4, 60, 9, 4], 4), 1).tokens.tolist() == [60]
    assert NgramProposer(k=1, seeds=seeds).propose(Sequence([4, 60, 3, 4], 4), 1).tokens.tolist() == [50]


def test_a_repeated_pattern_is_drafted_on() -> None:
    row = [5, 6, 7, 5, 6, 7, 5]
    assert NgramProposer(k=7).propose(Sequence(row, len(row)), 7).tokens.tolist() == [6, 7, 5, 6, 7, 5, 6]


def test_no_draft_runs_from_one_seed_into_the_next() -> None:
    proposer = NgramProposer(k=8, seeds=[[1, 2], [3, 4]])
    assert proposer.propose(Sequence([1], 1), 8).tokens.tolist() == [2]


def test_nothing_is_drafted_from_nothing() -> None:
    proposer = NgramProposer()
    assert proposer.propose(Sequence([], 0), 8).size == 0
    assert proposer.propose(Sequence([1, 1], 2), 0).size == 0


def test_truncate_forgets_the_row_and_keeps_the_seeds() -> None:
    proposer = NgramProposer(k=1, seeds=[[1, 2]])
    seq = Sequence([3, 4, 3, 1], 4)
    proposer.observe(seq, Committed([3, 4, 3, 1]))
    proposer.truncate(1)
    proposer.truncate(1)
    assert proposer.propose(Sequence([3, 3], 1), 1).tokens.tolist() == [3]
    proposer.truncate(1)
    assert proposer.propose(Sequence([3, 1], 1), 1).tokens.tolist() == [2]


def test_lengths_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        NgramProposer(k=0)


def test_a_step_costs_the_same_with_long_seeds_as_with_short_ones() -> None:
    def work(seeds: list[list[int]]) -> int:
        proposer = NgramProposer(k=15, seeds=seeds)
        seq, done = Sequence(list(range(50)), 50), 0

        def count(frame: FrameType, event: str, _: object) -> Callable[..., object]:
            nonlocal done
            frame.f_trace_opcodes = True
            done += 1
            return count

        before = sys.gettrace()
        proposer.propose(seq, 15)  # reads the prompt
        sys.settrace(count)
        try:
            for token in (900, 901, 7, 8, 9, 3, 900, 901):
                seq.tokens.append(token)
                proposer.observe(seq, Committed([token]))
                proposer.propose(seq, 15)
        finally:
            sys.settrace(before)
        return done

    seed = [900, 901, *range(100, 800), 7, 8, 9]
    short, long = work([seed]), work([seed * 40, seed])
    assert short > 500
    assert long <= 1.05 * short


@pytest.mark.parametrize("work", ["extend", "truncate"])
def test_an_interrupt_at_any_line_leaves_an_index_that_finds_what_it_holds(work: str) -> None:
    row, more = [1, 2, 3, 1, 2, 3, BREAK, 1, 2, 1, 2, 3, 4, 1], [2, 3, 1, 2, BREAK, 2, 3, 1, 1, 2, 3]

    def follows(frame: FrameType) -> bool:
        return frame.f_code.co_filename == NgramIndex.extend.__code__.co_filename

    at, is_done = 0, False
    while not is_done:
        at, index = at + 1, NgramIndex(3)
        index.extend(row)
        with Interrupting(at, follows) as tried:
            if work == "extend":
                index.extend(more)
            else:
                index.truncate(5)
        is_done = tried.is_through
        kept = list(index.tokens)
        assert kept == (row + more)[: len(kept)]
        assert len(kept) >= (len(row) if work == "extend" else 5)
        index.extend([2, 3])
        index.truncate(len(kept) + 1)
        fresh = NgramIndex(3)
        fresh.extend([*kept, 2])
        assert (index.tokens, index._latest, index._previous) == (fresh.tokens, fresh._latest, fresh._previous)
    assert at > 50
