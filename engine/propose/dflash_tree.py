"""The tree that is best to verify when all that is known is each row's own law: best first over products of marginals.

A block drafter gives one distribution for each of the next positions, and none given the token before. A path's
estimated chance is then the product of its tokens', and the N nodes of greatest product are the tree with the most
expected accepted tokens. They are found one by one from a heap. Method: DDTree (arXiv 2604.12989).
"""

import heapq
from collections.abc import Sequence


def best_first(
    logprobs: Sequence[Sequence[float]], ids: Sequence[Sequence[int]], budget: int
) -> tuple[list[int], list[int]]:
    """tokens and parents (-1: the root) of the `budget` most probable nodes, in falling probability, so that parents
    stand before children.

    logprobs, ids: per depth its candidates, most probable first. Exact where each depth lists at least `budget` of them
    or its whole vocabulary. Of equal products the shallower one and the earlier candidate come first.
    """
    tokens: list[int] = []
    parents: list[int] = []
    # A node enters the heap when its parent or its elder sibling leaves: (-log product, depth, rank, parent, product
    # of the parent). Siblings are sorted, so nothing more probable is ever missing from the heap.
    heap: list[tuple[float, int, int, int, float]] = []

    def offer(depth: int, rank: int, parent: int, before: float) -> None:
        if depth < len(logprobs) and rank < len(logprobs[depth]):
            heapq.heappush(heap, (-(before + logprobs[depth][rank]), depth, rank, parent, before))

    offer(0, 0, -1, 0.0)
    while heap and len(tokens) < budget:
        cost, depth, rank, parent, before = heapq.heappop(heap)
        offer(depth, rank + 1, parent, before)
        offer(depth + 1, 0, len(tokens), -cost)
        tokens.append(ids[depth][rank])
        parents.append(parent)
    return tokens, parents
