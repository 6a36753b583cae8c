"""Which proposer drafts the next step, and how much of its draft is verified. The output never depends on the choice.

`Adaptive` takes what promises the most tokens per second: (1 + sum of survival) / (draft + verify cost). Survival is
learnt (acceptance.py), costs are measured (costs.py). The objective is the one that vLLM's adaptive verification and
the reference engine use. Given the same costs and the same steps, it decides the same.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Tokens
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter
from typing import Protocol, runtime_checkable

from specd.engine.acceptance import Acceptance, expected_tokens
from specd.engine.costs import CostTable
from specd.engine.draft import EMPTY, Draft, Proposer, Sequence
from specd.engine.priors import EDITS
from specd.engine.stats import StepRecord


@dataclass(frozen=True)
class Choice:
    """The draft to verify, and who made it; None with an empty draft is a plain decode step."""

    proposer: str | None
    draft: Draft


PLAIN = Choice(None, EMPTY)


@runtime_checkable
class StepPolicy(Protocol):
    """Owns the proposers of a job and chooses among them, step by step."""

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        """All of them; each observes every step."""

    def choose(self, seq: Sequence, limit: int) -> Choice:
        """The next step's draft, of at most `limit` tokens."""

    def record(self, record: StepRecord) -> None:
        """What became of a step: once each and in order, but late. It comes while the next step is under way, after
        that one was chosen; the last one's comes when the answer is complete. Left out are steps that a device which
        works aside had done before anyone asked, since how long they took is not known."""


class Fixed:
    """Always the same proposer and its longest draft; plain decoding where there is none."""

    def __init__(self, proposer: Proposer | None) -> None:
        self._proposer = proposer

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        return () if self._proposer is None else (self._proposer,)

    def choose(self, seq: Sequence, limit: int) -> Choice:
        if self._proposer is None or limit < 1:
            return PLAIN
        draft = self._proposer.propose(seq, min(self._proposer.max_k, limit))
        return Choice(self._proposer.name, draft) if draft.size else PLAIN

    def record(self, record: StepRecord) -> None:
        pass


_CHEAP = 0.15  # a draft is made before it is weighed where it costs less than this share of a one-row step
_FREE = 0.005  # ... and made at every step where it costs less than this
_NEARLY = 0.99  # a longer draft must promise more than this much better: survival is a guess, rows are a cost
_PATIENCE = 4  # useless drafts in a row before a proposer is asked less often
_LONGEST_BREAK = 32  # steps
_LONGEST_INTERVAL = 256  # steps


@dataclass
class _Asked:
    """How often a proposer is asked. A cheap one: after a run of drafts that came to nothing, only every 2nd, 4th, ...
    step. A dear one: when it promises most, or for a trial when it was idle for `interval` steps."""

    useless: int = 0
    rest: int = 0
    idle: int = 0
    interval: int = 8


class Adaptive:
    """Weighs every proposer's draft, and every length of it, against a plain step.

    acceptance may be shared by the jobs of one model, so that a job begins with what the last ones taught.
    """

    def __init__(self, proposers: Iterable[Proposer], costs: CostTable, acceptance: Acceptance | None = None) -> None:
        self._proposers = tuple(proposers)
        self._costs = costs
        self._acceptance = acceptance or Acceptance(EDITS)
        self._asked = {proposer.name: _Asked() for proposer in self._proposers}
        self._made: list[Choice] = []  # all drafts of the last step, chosen or not
        self._start = 0  # where the tokens of that step begin
        self._lessons: list[tuple[list[Choice], list[int]]] = []  # drafts of the step before, and what was committed
        self._fitting: dict[int, list[int]] = {}  # by the longest draft, those that fill a width

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        return self._proposers

    def choose(self, seq: Sequence, limit: int) -> Choice:
        self._settle(seq)
        self._made = []
        plain = self._costs.verify(1)
        best, best_rate = PLAIN, 1.0 / plain
        spent = 0.0
        dear: Proposer | None = None
        trial: Proposer | None = None
        for proposer in self._proposers:
            cost, asked = self._costs.draft(proposer.name), self._asked[proposer.name]
            if limit < 1 or self._is_resting(asked, cost, plain):
                continue
            if cost > _CHEAP * plain:  # weighed by what it did so far, and asked only if it wins
                asked.idle += 1
                longest = min(limit, proposer.max_k)
                _, rate = self._best_cut(self._acceptance.survival(proposer.name, 0, longest), cost)
                if rate > best_rate:
                    best_rate, dear, asked.interval = rate, proposer, 8
                elif asked.idle >= asked.interval:
                    trial = proposer if self._at_best(longest, cost) > 1.5 * best_rate else trial
                continue
            if self._at_best(min(limit, proposer.max_k), spent + cost) <= best_rate:
                continue  # not even a draft that held to its end would win
            draft = self._propose(proposer, seq, min(limit, proposer.max_k))
            spent += cost
            self._made.append(Choice(proposer.name, draft))
            if not draft.size:
                continue
            size, rate = self._best_head(proposer.name, draft, spent)
            if size and rate > best_rate:
                best, best_rate, dear = Choice(proposer.name, draft.cut(size)), rate, None
        if trial is not None:
            dear = trial
            self._asked[dear.name].interval = min(_LONGEST_INTERVAL, 2 * self._asked[dear.name].interval)
        if dear is not None:
            self._asked[dear.name].idle = 0
            survival = self._acceptance.survival(dear.name, 0, min(limit, dear.max_k))
            depth, _ = self._best_cut(survival, self._costs.draft(dear.name))
            draft = self._propose(dear, seq, max(1, depth))
            self._made.append(Choice(dear.name, draft))
            best = self._made[-1] if draft.size else best
        return best

    def record(self, record: StepRecord) -> None:
        self._costs.saw_verify(record.drafted + 1, record.seconds_verify)

    def meanwhile(self, seq: Sequence) -> None:
        """Learns from the step before the one that runs."""
        self._settle(seq)
        self._learn()
        self._acceptance.refresh()

    def _settle(self, seq: Sequence) -> None:
        """What was committed after the last drafts is known; it is learnt from at leisure, before the next lesson."""
        if len(seq) > self._start:
            self._learn()
            self._lessons.append((self._made, seq.tokens[self._start :]))
            self._start = len(seq)

    def _learn(self) -> None:
        """Scores all drafts of a step by what was committed since, those that were not verified too."""
        while self._lessons:
            drafts, tokens = self._lessons.pop()
            matches = {made.proposer: matched(made.draft, tokens) for made in drafts if made.proposer is not None}
            for made in drafts:
                if made.proposer is not None and made.draft.size:
                    hit, depth = matches[made.proposer], made.draft.depth
                    known = depth if hit < len(tokens) else hit  # what lies behind the last token is not known
                    self._acceptance.record(made.proposer, made.draft.evidence, min(known, depth), hit)
            self._rest(matches)

    def _rest(self, matches: Mapping[str, int]) -> None:
        """Asks less often whose drafts came to nothing."""
        for name, asked in self._asked.items():
            if asked.rest > 0:
                asked.rest -= 1
            elif name not in matches:
                continue
            elif matches[name]:
                asked.useless = 0
            else:
                asked.useless += 1
                if asked.useless >= _PATIENCE:
                    asked.rest = min(_LONGEST_BREAK, 2 ** (asked.useless - _PATIENCE))

    def _is_resting(self, asked: _Asked, cost: float, plain: float) -> bool:
        return asked.rest > 0 and cost > _FREE * plain

    def _propose(self, proposer: Proposer, seq: Sequence, k: int) -> Draft:
        began = perf_counter()
        draft = proposer.propose(seq, k)
        self._costs.saw_draft(proposer.name, perf_counter() - began)
        return draft

    def _best_head(self, name: str, draft: Draft, cost: float) -> tuple[int, float]:
        """How many of the draft's first tokens to verify, and their tokens per second. A tree whose chances are not
        known is taken whole: it may hold as deep as a chain would, and costs all its nodes."""
        if draft.chances is not None:
            return self._best_cut(draft.chances, cost)
        survival = self._acceptance.survival(name, draft.evidence, draft.depth)
        if draft.parents is None:
            return self._best_cut(survival, cost)
        return draft.size, expected_tokens(survival) / (cost + self._costs.verify(draft.size + 1))

    def _best_cut(self, chances: Tokens[float], cost: float) -> tuple[int, float]:
        """The smallest head of a draft whose tokens per second are nearly the most, and its rate.

        chances: of each token, in order, that it is accepted."""
        sizes, verify = self._sizes(len(chances)), self._costs.verify
        expected = list(accumulate(chances, initial=1.0))
        rates = [expected[k] / (cost + verify(k + 1)) for k in sizes]
        enough = _NEARLY * max(rates, default=0.0)
        for k, rate in zip(sizes, rates, strict=True):
            if rate >= enough:
                return k, rate
        return 0, 0.0

    def _at_best(self, longest: int, cost: float) -> float:
        """Tokens per second of a draft of the best size up to `longest`, if all of it were accepted."""
        verify = self._costs.verify
        return max([(k + 1) / (cost + verify(k + 1)) for k in self._sizes(longest)], default=0.0)

    def _sizes(self, longest: int) -> list[int]:
        """Drafts that fill a width, ascending, and the one that ends with the tokens at hand."""
        known = self._fitting.get(longest)
        if known is None:
            known = sorted({min(width - 1, longest) for width in self._costs.widths if width > 1})
            self._fitting[longest] = known
        return known


def matched(draft: Draft, tokens: Tokens[int]) -> int:
    """How many of `tokens` the draft foresaw, from the first on."""
    drafted = draft.tokens.tolist()
    if draft.parents is None:
        pairs = zip(drafted, tokens, strict=False)
        return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(drafted), len(tokens)))
    node, count = -1, 0
    for index, (token, parent) in enumerate(zip(drafted, draft.parents.tolist(), strict=True)):
        if count < len(tokens) and parent == node and token == tokens[count]:
            node, count = index, count + 1
    return count
