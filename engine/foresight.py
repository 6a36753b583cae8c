"""What the next step would draft, made while the device works on this one.

The host is idle for as long as a step takes, and what comes of it can be foreseen: some row that was drafted holds to
the end of what is verified, or up to where the draft that is verified left it, and goes on. So for the likeliest such
outcomes the next drafts are made at once, on branches of what policy and proposers know. If one of them is what came,
they go on from its branch and the drafts are there; else nothing has happened, and the next drafts are made as ever.
Either way they are the same to the last token.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Tokens
from time import perf_counter
from typing import Any, NamedTuple

from specd.engine.adaptive import Adaptive, Weighed, held_by
from specd.engine.draft import Draft, Sequence, is_foresighted
from specd.engine.policy import Choice, StepPolicy

_SHARE = 0.6  # of a step's time, from its launch on: what would not be done by then is not begun
_MOST = 6  # outcomes
_MARGIN = 1.5  # times what an outcome takes on average
_FOLLOW = 0.1  # weight of a new one in that


class _Foreseen(NamedTuple):
    """What is known once an outcome came: the states of policy and proposers, and the next drafts."""

    states: list[Any]
    weighed: Weighed
    limit: int


class Foresight:
    """For one job. Nothing is foreseen for policies that are not an Adaptive, nor where somebody who drafts at every
    step is not foresighted."""

    def __init__(self, policy: StepPolicy) -> None:
        self._policy = policy if isinstance(policy, Adaptive) else None
        proposers = [] if self._policy is None else self._policy.proposers
        self._others = [proposer for proposer in proposers if not is_foresighted(proposer)]
        self._owners: list[Any] = [self._policy, *filter(is_foresighted, proposers)]
        self._aside: list[tuple[Any, Any]] = []  # whose own states are put aside, and those
        self._ready: dict[tuple[int, ...], _Foreseen] = {}  # by the tokens that the step may emit
        self._found: _Foreseen | None = None  # the outcome that came
        self._takes = 0.0  # seconds that an outcome takes on average; less with each step for which that is too much
        self._left: list[Any] = []  # states that were put aside once, kept until there is time to take them apart

    @property
    def is_ready(self) -> bool:
        """Some outcome was foreseen."""
        return bool(self._ready)

    def begin(self, seq: Sequence, limit: int) -> None:
        """Makes the first drafts, of up to `limit` tokens, before the prompt `seq` was read: nothing comes with it."""
        if self._policy is not None and limit > 0 and self._is_possible(self._policy):
            self._ready[()] = self._foresee(self._policy, seq, limit)

    def look(
        self, seq: Sequence, draft: Draft, launched: float, ends: frozenset[int], limit: Callable[[int], int],
        is_busy: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Makes what follows the likeliest outcomes of the step that verifies `draft` after seq.

        launched: when the step was, by perf_counter. ends: tokens behind which nothing follows. limit: how many
        tokens may be drafted behind a row so long. is_busy: whether the step still runs."""
        policy = self._policy
        self._ready.clear()
        self._left.clear()
        if policy is None or not self._is_possible(policy):
            return
        until = launched + _SHARE * policy.seconds(draft.size + 1)
        if perf_counter() + _MARGIN * self._takes > until:
            self._takes *= 1.0 - _FOLLOW
            return
        for tokens in _outcomes(draft, policy.foretell(seq, draft.depth + 1)):
            began = perf_counter()
            if began + _MARGIN * self._takes > until or len(self._ready) == _MOST or not is_busy():
                break
            room = limit(len(seq) + len(tokens))
            if room > 0 and ends.isdisjoint(tokens):
                self._ready[tokens] = self._foresee(policy, Sequence([*seq.tokens, *tokens], seq.prompt_length), room)
                spent = perf_counter() - began
                self._takes += _FOLLOW * (spent - self._takes) if self._takes else spent

    def meet(self, tokens: Tokens[int]) -> bool:
        """These tokens came. -> whether that was foreseen; policy and proposers then know of them already."""
        found = None
        if self._ready:  # once: what follows the next step was not foreseen, whether or not that is looked beyond
            self._left.append(self._ready)
            found = self._ready.get(tuple(tokens))
            self._ready = {}
        self._found = found
        if found is not None:
            for owner, state in zip(self._owners, found.states, strict=True):
                owner.state = state
        return found is not None

    def take(self, seq: Sequence, limit: int) -> Choice | None:
        """What the policy chooses after the outcome that was met, once; None where that was not foreseen."""
        found, self._found = self._found, None
        if found is None or found.limit != limit or self._policy is None:
            return None
        return self._policy.decide(seq, found.weighed)

    def restore(self) -> None:
        """Everybody's own state is back where it was. Idempotent: wherever it is interrupted, it is done again."""
        while self._aside:
            owner, state = self._aside[-1]
            owner.state = state
            self._aside.pop()

    def _is_possible(self, policy: Adaptive) -> bool:
        return all(map(policy.is_dear, self._others))

    def _foresee(self, policy: Adaptive, seq: Sequence, room: int) -> _Foreseen:
        try:
            for owner in self._owners:
                branch, own = owner.branch(), owner.state
                self._left.append(own)
                self._aside.append((owner, own))
                owner.state = branch
            weighed = policy.weigh(seq, room)
            return _Foreseen([owner.state for owner in self._owners], weighed, room)
        finally:
            self.restore()


def _outcomes(draft: Draft, rows: Tokens[Tokens[int]]) -> Iterator[tuple[int, ...]]:
    """What the step emits if one of the rows is what the target goes on with, each outcome once."""
    told: set[tuple[int, ...]] = set()
    tokens = draft.tokens.tolist() if rows else []
    parents = None if draft.parents is None else draft.parents.tolist()
    for row in rows:
        held = held_by(tokens, parents, row)
        outcome = tuple(row[: held + 1])
        if held < len(row) and outcome not in told:
            told.add(outcome)
            yield outcome
