"""The longest suffix seen before, found token by token."""

from hypothesis import given
from hypothesis import strategies as st

from specd.engine import Sequence
from specd.engine.propose.suffix import SuffixAutomaton, SuffixProposer

ROWS = st.lists(st.integers(0, 3), max_size=60)


def longest(tokens: list[int]) -> int:
    """Length of the longest suffix that also ends before the end, by looking everywhere."""
    ends = range(1, len(tokens))
    return max((n for end in ends for n in range(1, end + 1) if tokens[end - n : end] == tokens[-n:]), default=0)


@given(ROWS)
def test_the_automaton_finds_the_longest_match(tokens: list[int]) -> None:
    automaton = SuffixAutomaton()
    for end, token in enumerate(tokens, start=1):
        automaton.append(token)
        length, position = automaton.longest_match()
        assert length == longest(tokens[:end])
        assert tokens[position - length : position] == tokens[end - length : end]
        assert not length or position < end


@given(ROWS, ROWS, st.integers(0, 60))
def test_a_truncated_proposer_drafts_what_a_fresh_one_does(tokens: list[int], more: list[int], length: int) -> None:
    proposer, fresh = SuffixProposer(16), SuffixProposer(16)
    proposer.propose(Sequence(tokens, len(tokens)), 8)
    proposer.truncate(length)
    row = Sequence(tokens[:length] + more, 0)
    assert proposer.propose(row, 8).tokens.tolist() == fresh.propose(row, 8).tokens.tolist()


def test_a_draft_is_no_longer_than_the_match_warrants() -> None:
    row = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]
    assert SuffixProposer(16, factor=1.5).propose(Sequence(row, 0), 16).tokens.tolist() == [3, 4, 5]
