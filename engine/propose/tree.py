"""Several guesses at once: the continuations that proposers offer, merged into one prefix tree under a node budget.

    TreeProposer([NgramBranches(seeds)], budget=31)                    # several earlier occurrences
    TreeProposer([NgramBranches(seeds), DFlashProposer(drafter)])      # two kinds of drafts

Which nodes are worth a place is learnt as acceptance.py learns it: a continuation leaves the ones before it at some
node, as the first, second, ... branch there, and how often such a branch of its proposer and evidence held so far gives
each of its nodes a chance. The nodes with the greatest chance of being reached and right make the tree with the most
expected tokens, whatever the budget (the argument of SpecInfer, arXiv 2305.09781, and of EAGLE-2, arXiv 2406.16858).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from specd.engine.acceptance import Acceptance, Prior
from specd.engine.draft import EMPTY, Committed, Draft, Proposer, Sequence
from specd.engine.policy import PRIORS as CHAIN_PRIORS

_RANKS = 3  # branches at a node that are told apart: the first, the second, all others


@dataclass(frozen=True)
class Continuation:
    """Tokens that may follow. evidence: the proposer's own class of this guess, as in Draft."""

    tokens: list[int]
    evidence: int = 0


@runtime_checkable
class Branching(Protocol):
    """A source of several continuations, the likeliest first."""

    name: str
    max_k: int

    def continuations(self, seq: Sequence, k: int) -> list[Continuation]: ...
    def observe(self, seq: Sequence, committed: Committed) -> None: ...
    def truncate(self, length: int) -> None: ...


@dataclass
class _Branch:
    """A run of nodes that one continuation added below `start` (-1: the root), as the rank-th branch there."""

    start: int
    name: str
    rank: int
    evidence: int
    tokens: list[int]


class PrefixTree:
    """Continuations from one root, common beginnings stored once. Nodes are numbered parents first."""

    def __init__(self, acceptance: Acceptance, depth: int) -> None:
        """depth: most tokens of a path."""
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.chances: list[float] = []  # of each node's whole path
        self._acceptance = acceptance
        self._depth = depth
        self._branches: list[_Branch] = []
        self._child: dict[tuple[int, int], int] = {}  # (node, token) -> node
        self._degree: dict[int, int] = {}  # children of a node that has any
        self._survival: dict[tuple[str, int], list[float]] = {}

    def add(self, tokens: list[int], name: str, evidence: int) -> None:
        """Add a continuation. What of it is there already keeps the greater chance of the two."""
        node, at, length = -1, 0, min(len(tokens), self._depth)
        survival = self._survival_of(f"{name}/0", evidence, self._depth)
        while at < length and (child := self._child.get((node, tokens[at]))) is not None:
            self.chances[child] = max(self.chances[child], survival[at])
            node, at = child, at + 1
        if at == length:
            return
        fresh = tokens[at:length]
        rank = min(self._degree.get(node, 0), _RANKS - 1)
        self._branches.append(_Branch(node, name, rank, evidence, fresh))
        above = reached = self.chances[node] if node >= 0 else 1.0
        if rank:  # seldom right, but if its first token is, the others are like those of a first branch
            reached *= self._survival_of(f"{name}/{rank}", evidence, 1)[0] / max(survival[0], 1e-9)
        first = len(self.tokens)
        self._degree[node] = self._degree.get(node, 0) + 1
        for number, token in enumerate(fresh, start=first):
            self._child[node, token] = number
            self.parents.append(node)
            node = number
        self._degree.update(dict.fromkeys(range(first, node), 1))
        self.tokens.extend(fresh)
        self.chances.extend([min(above, reached * alive) for alive in survival[: len(fresh)]])  # whatever is rounded

    def _survival_of(self, name: str, evidence: int, depth: int) -> list[float]:
        key = (name, evidence)
        if key not in self._survival:
            self._survival[key] = self._acceptance.survival(name, evidence, depth)
        return self._survival[key]

    def best(self, budget: int, evidence: int = 0) -> Draft:
        """The `budget` nodes of greatest chance; a chain where they are one."""
        # No node is likelier than its parent, and of equals the parent comes first: the sorted head is a tree.
        order = sorted(range(len(self.tokens)), key=self.chances.__getitem__, reverse=True)[:budget]  # a stable sort
        place = {node: index for index, node in enumerate(order)} | {-1: -1}
        parents = [place[self.parents[node]] for node in order]
        tokens = torch.tensor([self.tokens[node] for node in order], dtype=torch.int32)
        is_chain = parents == list(range(-1, len(order) - 1))
        return Draft(
            tokens,
            None if is_chain else torch.tensor(parents, dtype=torch.int32),
            evidence=evidence,
            chances=tuple(self.chances[node] for node in order),
        )

    def teach(self, emitted: list[int]) -> None:
        """Records how far each branch held that starts at a node of the path that was emitted."""
        depth, node = {-1: 0}, -1
        for token in emitted:
            child = self._child.get((node, token))
            if child is None:
                break
            node = child
            depth[node] = len(depth)
        for branch in self._branches:
            if branch.start in depth:
                truth = emitted[depth[branch.start] :]
                seen = min(len(branch.tokens), len(truth))  # what lies behind the last emitted token is not known
                held = 0
                while held < seen and branch.tokens[held] == truth[held]:
                    held += 1
                if branch.rank:  # of a later branch only the first token has a class of its own
                    seen, held = min(seen, 1), min(held, 1)
                if seen:
                    self._acceptance.record(f"{branch.name}/{branch.rank}", branch.evidence, seen, held)


class TreeProposer:
    """Drafts one tree from all sources' guesses; a source is a Branching, or a Proposer whose draft, or tree of
    drafts where it has a `propose_tree`, is taken apart into its paths."""

    def __init__(
        self, sources: Iterable[Branching | Proposer], budget: int = 31, *, acceptance: Acceptance | None = None
    ) -> None:
        """budget: most nodes of a tree. Sources are asked in order: of equal guesses the first source's counts.
        acceptance may be shared by the jobs of one model, so that a job begins with what the last ones taught."""
        self.sources = tuple(sources)
        self._ask = [_asker(source) for source in self.sources]
        if budget < 1 or not self.sources:
            raise ValueError(f"a tree needs a source and a budget of 1 node or more, not {budget}")
        self.name = "+".join(source.name for source in self.sources) + "-tree"
        self.max_k = budget
        self._acceptance = acceptance or Acceptance(PRIORS)
        self._tree: PrefixTree | None = None  # what was offered after the first `_start` tokens
        self._start = 0

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """The target's layers that the sources tap; generate refuses sources that differ."""
        taps = {tuple(getattr(source, "tap_layers", ())) for source in self.sources} - {()}
        if len(taps) > 1:
            raise ValueError("the proposers tap different layers of the target; use one of them")
        return taps.pop() if taps else ()

    def propose(self, seq: Sequence, k: int) -> Draft:
        """At most min(k, budget) nodes. Its evidence is that of the first guess."""
        k = min(k, self.max_k)
        if k < 1:
            return EMPTY
        self._tree, self._start = PrefixTree(self._acceptance, k), len(seq)
        first: Continuation | None = None
        for source, ask in zip(self.sources, self._ask, strict=True):
            for guess in ask(seq, min(k, source.max_k)):
                first = first or guess
                self._tree.add(guess.tokens, source.name, guess.evidence)
        return EMPTY if first is None else self._tree.best(k, first.evidence)

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Every source observes; what was emitted after a tree teaches how likely its branches are."""
        if self._tree is not None and self._start + len(committed.tokens) == len(seq):
            self._tree.teach(committed.tokens)
        self._tree = None
        for source in self.sources:
            source.observe(seq, committed)

    def truncate(self, length: int) -> None:
        """Forget positions >= length."""
        self._tree = None
        for source in self.sources:
            source.truncate(length)


def _asker(source: Branching | Proposer) -> Callable[[Sequence, int], list[Continuation]]:
    if isinstance(source, Branching):
        return source.continuations
    propose: Callable[[Sequence, int], Draft] = getattr(source, "propose_tree", source.propose)
    return lambda seq, k: _paths(propose(seq, k))


def _paths(draft: Draft) -> list[Continuation]:
    """A draft's paths from the root to each leaf, those of first children first."""
    tokens = draft.tokens.tolist()
    if draft.parents is None:
        return [Continuation(tokens, draft.evidence)] if tokens else []
    paths: list[list[int]] = []  # of node numbers
    parents = draft.parents.tolist()
    for node, parent in enumerate(parents):
        paths.append([*(paths[parent] if parent >= 0 else []), node])
    inner = set(parents)
    leaves = sorted(path for path in paths if path[-1] not in inner)
    return [Continuation([tokens[node] for node in path], draft.evidence) for path in leaves]


# Chance that a branch's token is refused, before a job has taught better: name/0 is the first branch at a node, name/1
# and name/2 the others (their first token alone). What a proposer's chain does, its first branch does. For n-gram
# lookup the evidence is a match's length in the classes of ngram_tree.py; measured as policy.py's are.
PRIORS: dict[tuple[str, int], Prior] = {
    **{(f"{name}/0", evidence): prior for (name, evidence), prior in CHAIN_PRIORS.items()},
    ("ngram/0", 0): (0.7, 0.5, 0.3, 0.12, 0.06, 0.04, 0.04, 0.04),
    ("ngram/0", 1): (0.55, 0.3, 0.16, 0.09, 0.07, 0.03, 0.03, 0.03),
    ("ngram/0", 2): (0.5, 0.26, 0.17, 0.08, 0.07, 0.02, 0.02, 0.02),
    ("ngram/0", 3): (0.27, 0.17, 0.14, 0.1, 0.08, 0.02, 0.02, 0.02),
    ("ngram/0", 4): (0.14, 0.12, 0.11, 0.05, 0.05, 0.03, 0.03, 0.03),
    ("ngram/0", 5): (0.09, 0.08, 0.05, 0.05, 0.04, 0.02, 0.02, 0.02),
    ("ngram/0", 6): (0.03, 0.02, 0.02, 0.02, 0.01, 0.007, 0.007, 0.007),
    ("ngram/0", 7): (0.8, 0.5, 0.3, 0.12, 0.06, 0.04, 0.04, 0.04),
    **{(name, evidence): 0.9 for name in ("ngram/1", "edit/1", "dflash/1", "draft_model/1") for evidence in range(9)},
    **{(name, evidence): 0.96 for name in ("ngram/2", "edit/2", "dflash/2", "draft_model/2") for evidence in range(9)},
}
