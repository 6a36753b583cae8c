"""The policy that weighs several proposers, step by step.

`Adaptive` takes what promises the most tokens per second: (1 + sum of survival) / (draft + verify cost). Survival is
learnt (acceptance.py), costs are measured (costs.py). The objective is the one that vLLM's adaptive verification and
the reference engine use. Given the same costs and the same steps, it decides the same.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field
from itertools import accumulate
from time import perf_counter
from typing import Any, NamedTuple

from specd.engine.acceptance import Acceptance
from specd.engine.costs import CostTable
from specd.engine.draft import Draft, Proposer, Sequence, is_foresighted
from specd.engine.policy import PLAIN, Choice
from specd.engine.priors import EDITS
from specd.engine.rates import Rates
from specd.engine.stats import StepRecord

_CHEAP = 0.15  # a draft is made before it is weighed where it costs less than this share of a one-row step
_FREE = 0.005  # ... and made at every step where it costs less than this
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


class Weighed(NamedTuple):
    """The best of the drafts that were made, and who promises more and is asked last, for a draft `depth` deep."""

    best: Choice
    dear: Proposer | None
    depth: int = 0


@dataclass(slots=True)
class _Memory:
    """What a policy knows of the row and of those that it asks."""

    asked: dict[str, _Asked]
    made: list[Choice] = field(default_factory=list)  # all drafts of the last step, chosen or not
    start: int = 0  # where the tokens of that step begin
    lessons: list[tuple[list[Choice], list[int]]] = field(default_factory=list)  # drafts, and what was committed then


class Adaptive:
    """Weighs every proposer's draft, and every length of it, against a plain step.

    acceptance may be shared by the jobs of one model, so that a job begins with what the last ones taught.
    """

    def __init__(self, proposers: Iterable[Proposer], costs: CostTable, acceptance: Acceptance | None = None) -> None:
        self._proposers = tuple(proposers)
        self._costs = costs
        self._acceptance = acceptance or Acceptance(EDITS)
        self._rates = Rates(costs)
        self._foresighted: list[Any] = [proposer for proposer in self._proposers if is_foresighted(proposer)]
        self.state = _Memory({proposer.name: _Asked() for proposer in self._proposers})

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        return self._proposers

    def choose(self, seq: Sequence, limit: int) -> Choice:
        return self.decide(seq, self.weigh(seq, limit))

    def branch(self) -> object:
        """See Foresighted."""
        state = self.state
        asked = {name: _Asked(a.useless, a.rest, a.idle, a.interval) for name, a in state.asked.items()}
        return _Memory(asked, state.made, state.start, state.lessons[:])

    def foretell(self, seq: Sequence, k: int) -> list[list[int]]:
        """See Foresighted: what the proposers do, whoever was asked for a draft."""
        return [row for proposer in self._foresighted for row in proposer.foretell(seq, k)]

    def weigh(self, seq: Sequence, limit: int) -> Weighed:
        """The first half of `choose`: all but who is dear is asked."""
        self._settle(seq)
        state = self.state
        made = state.made = []
        costs, rates = self._costs, self._rates
        plain = costs.verify(1)
        best, best_rate = PLAIN, 1.0 / plain
        spent = 0.0
        dear: Proposer | None = None
        trial: Proposer | None = None
        for proposer in self._proposers:
            name, longest = proposer.name, min(limit, proposer.max_k)
            cost, asked = costs.draft(name), state.asked[name]
            if limit < 1 or (asked.rest > 0 and cost > _FREE * plain):
                continue
            if cost > _CHEAP * plain:  # weighed by what it did so far, and asked only if it wins
                asked.idle += 1
                _, rate = rates.best_cut(self._acceptance.expected(name, 0, longest), longest, cost)
                if rate > best_rate:
                    best_rate, dear, asked.interval = rate, proposer, 8
                elif asked.idle >= asked.interval:
                    trial = proposer if rates.may_beat(1.5 * best_rate, longest, cost) else trial
                continue
            if not rates.may_beat(best_rate, longest, spent + cost):
                continue  # not even a draft that held to its end would win
            draft = self._propose(proposer, seq, longest)
            spent += cost
            made.append(Choice(name, draft))
            if not draft.size:
                continue
            size, rate = self._best_head(name, draft, spent)
            if size and rate > best_rate:
                best, best_rate, dear = Choice(name, draft.cut(size)), rate, None
        if trial is not None:
            dear = trial
            state.asked[dear.name].interval = min(_LONGEST_INTERVAL, 2 * state.asked[dear.name].interval)
        if dear is None:
            return Weighed(best, None)
        state.asked[dear.name].idle = 0
        longest = min(limit, dear.max_k)
        expected = self._acceptance.expected(dear.name, 0, longest)
        return Weighed(best, dear, max(1, rates.best_cut(expected, longest, costs.draft(dear.name))[0]))

    def decide(self, seq: Sequence, weighed: Weighed) -> Choice:
        """The second half: who is dear is asked."""
        best, dear, depth = weighed
        if dear is not None:
            draft = self._propose(dear, seq, depth)
            self.state.made.append(Choice(dear.name, draft))
            best = self.state.made[-1] if draft.size else best
        return best

    def is_dear(self, proposer: Proposer) -> bool:
        """Whether it is asked only where what it did so far promises most."""
        return self._costs.draft(proposer.name) > _CHEAP * self._costs.verify(1)

    def seconds(self, rows: int) -> float:
        """What a step of so many rows takes."""
        return self._costs.verify(rows)

    def record(self, record: StepRecord) -> None:
        self._costs.saw_verify(record.drafted + 1, record.seconds_verify)

    def meanwhile(self, seq: Sequence) -> None:
        """Learns from the step before the one that runs."""
        self._settle(seq)
        self._learn()
        self._acceptance.refresh()
        self._rates.refresh()

    def conclude(self, seq: Sequence) -> None:
        """What the last step teaches."""
        self._settle(seq)
        self._learn()

    def _settle(self, seq: Sequence) -> None:
        """What was committed after the last drafts is known; it is learnt from at leisure, before the next lesson."""
        state = self.state
        if len(seq) > state.start:
            self._learn()
            state.lessons.append((state.made, seq.tokens[state.start :]))
            state.start = len(seq)

    def _learn(self) -> None:
        """Scores all drafts of a step by what was committed since, those that were not verified too."""
        lessons = self.state.lessons
        while lessons:
            drafts, tokens = lessons.pop()
            matches = {made.proposer: matched(made.draft, tokens) for made in drafts if made.proposer is not None}
            for made in drafts:
                if made.proposer is not None and made.draft.size:
                    hit, depth = matches[made.proposer], made.draft.depth
                    known = depth if hit < len(tokens) else hit  # what lies behind the last token is not known
                    self._acceptance.record(made.proposer, made.draft.evidence, min(known, depth), hit)
            self._rest(matches)

    def _rest(self, matches: Mapping[str, int]) -> None:
        """Asks less often whose drafts came to nothing."""
        for name, asked in self.state.asked.items():
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

    def _propose(self, proposer: Proposer, seq: Sequence, k: int) -> Draft:
        began = perf_counter()
        draft = proposer.propose(seq, k)
        self._costs.saw_draft(proposer.name, perf_counter() - began)
        return draft

    def _best_head(self, name: str, draft: Draft, cost: float) -> tuple[int, float]:
        """How many of the draft's first tokens to verify, and their tokens per second. A tree whose chances are not
        known is taken whole: it may hold as deep as a chain would, and costs all its nodes."""
        size = draft.size
        if draft.chances is not None:
            return self._rates.best_cut(list(accumulate(draft.chances, initial=1.0)), size, cost)
        depth = draft.depth
        expected = self._acceptance.expected(name, draft.evidence, depth)
        if draft.parents is None:
            return self._rates.best_cut(expected, size, cost)
        return size, expected[depth] / (cost + self._costs.verify(size + 1))


def matched(draft: Draft, tokens: Tokens[int]) -> int:
    """How many of `tokens` the draft foresaw, from the first on."""
    return held_by(draft.tokens.tolist(), None if draft.parents is None else draft.parents.tolist(), tokens)


def held_by(drafted: list[int], parents: list[int] | None, row: Tokens[int]) -> int:
    """How many of the row's first tokens a chain or a tree holds; parents as in Draft."""
    if parents is None:
        pairs = zip(drafted, row, strict=False)
        return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(drafted), len(row)))
    node, held = -1, 0
    for index, (token, parent) in enumerate(zip(drafted, parents, strict=True)):
        if held < len(row) and parent == node and token == row[held]:
            node, held = index, held + 1
    return held
