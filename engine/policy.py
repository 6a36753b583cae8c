"""Which proposer drafts the next step, and how much of its draft is verified. The output never depends on the choice.

See adaptive.py for the policy that weighs several proposers.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from specd.engine.draft import EMPTY, Draft, Proposer, Sequence
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
