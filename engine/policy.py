"""Which proposer drafts the next step, and how long: the interface, and the choice that never changes."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from specd.engine.draft import Proposer, Sequence
from specd.engine.stats import StepRecord


@dataclass(frozen=True)
class Choice:
    """proposer None, or k 0: a plain decode step."""

    proposer: Proposer | None
    k: int


@runtime_checkable
class StepPolicy(Protocol):
    """Owns the proposers of a job and chooses among them, step by step. The output never depends on the choice."""

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        """All of them; each observes every step."""

    def choose(self, seq: Sequence, limit: int) -> Choice:
        """The next step's proposer and k <= limit."""

    def record(self, record: StepRecord) -> None:
        """What became of the step."""


class Fixed:
    """Always the same proposer and its longest draft; plain decoding where there is none."""

    def __init__(self, proposer: Proposer | None) -> None:
        self._proposer = proposer

    @property
    def proposers(self) -> tuple[Proposer, ...]:
        return () if self._proposer is None else (self._proposer,)

    def choose(self, seq: Sequence, limit: int) -> Choice:
        return Choice(self._proposer, 0 if self._proposer is None else min(self._proposer.max_k, limit))

    def record(self, record: StepRecord) -> None:
        pass
