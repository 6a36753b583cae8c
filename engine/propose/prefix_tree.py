"""One prefix tree of several continuations, and the nodes of it that are worth verifying: see tree.py."""

from bisect import bisect_right
from dataclasses import dataclass
from operator import neg

import numpy as np
import torch

from specd.engine.acceptance import Acceptance
from specd.engine.draft import Draft

_MAIN = 0.75  # of a budget: the likeliest guess's own. Where a text repeats itself it is often right to its end
_RANKS = 3  # branches at a node that are told apart: the first, the second, all others


@dataclass(slots=True)
class _Branch:
    """A run of nodes that one continuation added, as the rank-th branch below the node where it left the others.
    A node is (branch, place): `above` and `at` are the one below which it begins, None where that is the root. Nodes
    are numbered in the order in which they came, `first` on."""

    name: str
    rank: int
    evidence: int
    tokens: list[int]
    above: "_Branch | None"
    at: int
    first: int
    depth: int  # tokens before the first of its own


class PrefixTree:
    """Continuations from one root, common beginnings stored once. Nodes are numbered parents first."""

    def __init__(self, acceptance: Acceptance, depth: int) -> None:
        """depth: most tokens of a path."""
        self._acceptance = acceptance
        self._depth = depth
        self._branches: list[_Branch] = []
        self._firsts: list[int] = []  # of each branch
        self._forks: dict[int, list[_Branch]] = {-1: []}  # by a branch's `first`, -1 the root: what begins below it
        # By node: its token, its parent (-1: the root), and the chance of its whole path, below 0 so that they ascend.
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._minus: list[float] = []

    def add(self, tokens: list[int], name: str, evidence: int) -> None:
        """Add a continuation. What of it is there already keeps the greater chance of the two."""
        length = min(len(tokens), self._depth)
        survival = self._acceptance.survival(f"{name}/0", evidence, self._depth)
        above: _Branch | None = None
        at, forks, done, minus = -1, self._forks[-1], 0, self._minus
        while done < length and (into := _branch_to(forks, above, at, tokens[done])) is not None:
            branch, place = into, at + 1 if into is above else 0
            same = _common(branch.tokens, place, tokens, done, length)
            begin = branch.first + place
            minus[begin : begin + same] = map(min, minus[begin : begin + same], map(neg, survival[done : done + same]))
            done += same
            above, at, forks = branch, place + same - 1, self._forks[branch.first]
        if done == length:
            return
        rank, reached, parent = len(forks), -1.0, -1
        if above is not None:
            rank = [fork.at for fork in forks].count(at) + (at + 1 < len(above.tokens))  # the branch itself goes on
            parent = above.first + at
            reached = minus[parent]
        least = reached
        if rank:  # seldom right, but if its first token is, the others are like those of a first branch
            rank = min(rank, _RANKS - 1)
            reached *= self._acceptance.survival(f"{name}/{rank}", evidence, 1)[0] / max(survival[0], 1e-9)
        fresh, first = tokens[done:length], len(minus)
        chances = [reached * alive for alive in survival[: length - done]]
        if chances[0] < least:  # whatever is rounded
            chances = [max(least, each) for each in chances]
        branch = _Branch(name, rank, evidence, fresh, above, at, first, done)
        minus += chances
        self._tokens += fresh
        self._parents += [parent, *range(first, first + length - done - 1)]
        self._branches.append(branch)
        self._firsts.append(first)
        self._forks[first] = []
        forks.append(branch)

    def best(self, budget: int, evidence: int = 0) -> Draft:
        """The `budget` nodes of greatest chance, a share of them the likeliest guess's; a chain where they are one."""
        # No node is likelier than its parent, and of equals the one that came first is the parent: the head is a tree.
        minus, chance = self._minus, self._minus.__getitem__
        nodes = sorted(range(len(minus)), key=chance)
        cut = len(nodes) > budget
        del nodes[budget:]
        if cut:
            main = self._branches[bisect_right(self._firsts, nodes[0]) - 1]
            kept = min(len(main.tokens), int(_MAIN * budget))
            last = main.first + len(main.tokens)
            others = [node for node in nodes if not main.first <= node < last]
            if len(nodes) - len(others) < kept:
                nodes = sorted([*range(main.first, main.first + kept), *others[: budget - kept]])
                nodes.sort(key=chance)
        places = dict(zip(nodes, range(len(nodes)), strict=True))
        places[-1] = -1
        parents = [places[parent] for parent in map(self._parents.__getitem__, nodes)]
        is_chain = parents == list(range(-1, len(nodes) - 1))
        words = np.array([self._tokens[node] for node in nodes], dtype=np.int32)
        return Draft(
            torch.from_numpy(words),
            None if is_chain else torch.from_numpy(np.array(parents, dtype=np.int32)),
            evidence=evidence,
            chances=tuple(map(neg, map(chance, nodes))),
            words=words,
        )

    def nodes(self) -> list[tuple[int, int, float]]:
        """Token, parent (-1: the root) and chance of every node, by their numbers."""
        return list(zip(self._tokens, self._parents, map(neg, self._minus), strict=True))

    def teach(self, emitted: list[int]) -> None:
        """Records how far each branch held that starts at a node of the path that was emitted."""
        held: dict[int, int] = {}  # first node of a branch on that path -> its tokens that were emitted
        for branch in self._branches:
            above = branch.above
            if above is not None and held.get(above.first, 0) <= branch.at:
                continue
            # What lies behind the last emitted token is not known.
            seen = min(len(branch.tokens), len(emitted) - branch.depth)
            right = held[branch.first] = _common(branch.tokens, 0, emitted, branch.depth, len(emitted))
            if branch.rank:  # of a later branch only the first token has a class of its own
                seen, right = min(seen, 1), min(right, 1)
            if seen > 0:
                self._acceptance.record(f"{branch.name}/{branch.rank}", branch.evidence, seen, right)


def _branch_to(forks: list[_Branch], above: _Branch | None, at: int, token: int) -> _Branch | None:
    """The branch that holds the child with this token of the node `at` of `above`, or of the root."""
    if above is not None and at + 1 < len(above.tokens) and above.tokens[at + 1] == token:
        return above
    return next((fork for fork in forks if fork.at == at and fork.tokens[0] == token), None)


def _common(a: list[int], i: int, b: list[int], j: int, end: int) -> int:
    """How many tokens of a[i:] and b[j:end] are the same before the first that is not."""
    length = min(len(a) - i, end - j)
    if a[i : i + length] == b[j : j + length]:
        return length
    count = 0
    while a[i + count] == b[j + count]:
        count += 1
    return count
