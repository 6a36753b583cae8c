"""Several guesses at once: the continuations that proposers offer, merged into one prefix tree under a node budget.

    TreeProposer([NgramBranches(seeds)], budget=31)                    # several earlier occurrences
    TreeProposer([NgramBranches(seeds), DFlashProposer(drafter)])      # two kinds of drafts

Which nodes are worth a place is learnt as acceptance.py learns it: a continuation leaves the ones before it at some
node, as the first, second, ... branch there, and how often such a branch of its proposer and evidence held so far gives
each of its nodes a chance. The nodes with the greatest chance of being reached and right make the tree with the most
expected tokens, whatever the budget (the argument of SpecInfer, arXiv 2305.09781, and of EAGLE-2, arXiv 2406.16858).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from specd.engine.acceptance import Acceptance
from specd.engine.draft import EMPTY, Committed, Draft, Proposer, Sequence, common_taps, concluding, unhurried
from specd.engine.priors import BRANCHES
from specd.engine.propose.prefix_tree import PrefixTree


class Continuation(NamedTuple):
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


@dataclass(slots=True)
class _Offered:
    """tree: what was offered after the first `start` tokens. lessons: what was emitted after earlier ones. sources:
    the states of those, in a branch."""

    tree: PrefixTree | None = None
    start: int = 0
    lessons: list[tuple[PrefixTree, int, list[int]]] = field(default_factory=list)  # with where they begin
    sources: tuple[Any, ...] = ()


class TreeProposer:
    """Drafts one tree from all sources' guesses; a source is a Branching, or a Proposer whose draft, or tree of
    drafts where it has a `propose_tree`, is taken apart into its paths."""

    def __init__(
        self, sources: Iterable[Branching | Proposer], budget: int = 31, *, acceptance: Acceptance | None = None
    ) -> None:
        """budget: most nodes of a tree. Sources are asked in order: of equal guesses the first source's counts.
        acceptance may be shared by the jobs of one model, so that a job begins with what the last ones taught."""
        self.sources = tuple(sources)
        self._foresighted: tuple[Any, ...] = self.sources  # where `branch` is called, they are
        self._ask = [_asker(source) for source in self.sources]
        if budget < 1 or not self.sources:
            raise ValueError(f"a tree needs a source and a budget of 1 node or more, not {budget}")
        self.name = "+".join(source.name for source in self.sources) + "-tree"
        self.max_k = budget
        self._acceptance = acceptance or Acceptance(BRANCHES)
        self._unhurried, self._concluding = unhurried(self.sources), concluding(self.sources)
        self._offered = _Offered()

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """The target's layers that the sources tap; generate refuses sources that differ."""
        return common_taps(self.sources)

    def propose(self, seq: Sequence, k: int) -> Draft:
        """At most min(k, budget) nodes. Its evidence is that of the first guess."""
        self._settle(seq)
        k = min(k, self.max_k)
        if k < 1:
            return EMPTY
        tree, self._offered.start = PrefixTree(self._acceptance, k), len(seq)
        self._offered.tree = tree
        first: Continuation | None = None
        for source, ask in zip(self.sources, self._ask, strict=True):
            for guess in ask(seq, min(k, source.max_k)):
                first = first or guess
                tree.add(guess.tokens, source.name, guess.evidence)
        return EMPTY if first is None else tree.best(k, first.evidence)

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Every source observes."""
        for source in self.sources:
            source.observe(seq, committed)

    def meanwhile(self, seq: Sequence) -> None:
        """What was emitted after a tree teaches how likely its branches are. The sources do what they can."""
        self._settle(seq)
        self._learn()
        self._acceptance.refresh()
        for work in self._unhurried:
            work(seq)

    def conclude(self, seq: Sequence) -> None:
        """What the last tree teaches."""
        self._settle(seq)
        self._learn()
        for work in self._concluding:
            work(seq)

    def _settle(self, seq: Sequence) -> None:
        """What was emitted after the last tree is known; it is learnt from at leisure, but before the next lesson."""
        offered = self._offered
        if offered.tree is not None and len(seq) > offered.start:
            self._learn()
            offered.lessons.append((offered.tree, offered.start, seq.tokens[offered.start :]))
            offered.tree = None

    def _learn(self) -> None:
        lessons = self._offered.lessons
        while lessons:
            tree, _, emitted = lessons.pop()
            tree.teach(emitted)

    @property
    def state(self) -> object:
        """See Foresighted."""
        offered = self._offered
        states = tuple([source.state for source in self._foresighted])
        return _Offered(offered.tree, offered.start, offered.lessons, states)

    @state.setter
    def state(self, state: _Offered) -> None:
        for source, known in zip(self._foresighted, state.sources, strict=True):
            source.state = known
        self._offered = state

    def branch(self) -> object:
        """See Foresighted; only where the sources are."""
        offered = self._offered
        states = tuple([source.branch() for source in self._foresighted])
        return _Offered(offered.tree, offered.start, offered.lessons[:], states)

    def foretell(self, seq: Sequence, k: int) -> list[list[int]]:
        """See Foresighted: what the sources do."""
        return [row for source in self._foresighted for row in source.foretell(seq, k)]

    def truncate(self, length: int) -> None:
        """Forget positions >= length."""
        offered = self._offered
        lessons = [lesson for lesson in offered.lessons if lesson[1] + len(lesson[2]) <= length]
        self._offered = _Offered(lessons=lessons)
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
