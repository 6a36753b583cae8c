"""What a generation tells, event by event."""

from dataclasses import dataclass

from specd.engine.finish import Reason
from specd.engine.prefill import PrefillProgress
from specd.engine.stats import StepRecord, Summary


@dataclass(frozen=True)
class PrefillDone:
    """reused + new = prompt tokens - 1; the newest one goes with the first step."""

    reused: int
    new: int
    seconds: float


@dataclass(frozen=True)
class StepDone:
    """tokens: what the step committed. text: what left the text stream with it (its last characters may be held back).
    logprobs: log-probability of each token under the target's own law at temperature 1, where asked for."""

    tokens: list[int]
    text: str
    record: StepRecord
    logprobs: list[float] | None = None


@dataclass(frozen=True)
class Finished:
    """text_tail: the rest of the text. Always the last event of a job that was not cancelled and did not fail."""

    reason: Reason
    text_tail: str
    stats: Summary


Event = PrefillProgress | PrefillDone | StepDone | Finished
