"""The tree from a block's marginals: the most probable nodes, found best first."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specd.engine.propose.dflash_tree import best_first


def nodes(tokens: list[int], parents: list[int]) -> list[tuple[int, ...]]:
    """The path of each node, its own token last."""
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(tokens, parents, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return paths


LAWS = st.lists(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3), min_size=1, max_size=4)


@given(LAWS, st.integers(0, 60))
def test_the_nodes_are_the_most_probable_paths(weights: list[list[float]], budget: int) -> None:
    logprobs, ids = [], []
    for depth, row in enumerate(weights):
        row = sorted((math.log(weight / sum(row)) for weight in row), reverse=True)
        logprobs.append(row)
        ids.append([10 * depth + rank for rank in range(3)])
    tokens, parents = best_first(logprobs, ids, budget)
    every = {
        tuple(ids[depth][rank] for depth, rank in enumerate(path)): sum(logprobs[d][r] for d, r in enumerate(path))
        for length in range(1, len(weights) + 1)
        for path in itertools.product(range(3), repeat=length)
    }
    paths = nodes(tokens, parents)
    assert len(paths) == len(set(paths)) == min(budget, len(every))
    found = [every[path] for path in paths]
    assert found == pytest.approx(sorted(found, reverse=True))
    assert found == pytest.approx(sorted(every.values(), reverse=True)[: len(found)])
    assert all(parent < place for place, parent in enumerate(parents))


def test_certain_rows_give_the_chain() -> None:
    logprobs = [[-0.01, -5.0], [-0.01, -5.0], [-0.01, -5.0]]
    assert best_first(logprobs, [[1, 2], [3, 4], [5, 6]], 3) == ([1, 3, 5], [-1, 0, 1])


def test_a_doubtful_row_gets_both_its_candidates() -> None:
    logprobs = [[-0.1, -4.0], [-0.7, -0.8], [-3.0, -3.1]]
    tokens, parents = best_first(logprobs, [[1, 2], [3, 4], [5, 6]], 4)
    assert nodes(tokens, parents) == [(1,), (1, 3), (1, 4), (1, 3, 5)]
