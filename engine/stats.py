"""What each step did, and the running summary of a job: the figures that the statistics line and the trace show."""

from dataclasses import dataclass, field

from specd.engine.sampling import AcceptRule


@dataclass(frozen=True)
class StepRecord:
    """One verify step. emitted: tokens committed after the finish rules, accepted drafts and the bonus token.
    rule: how the draft was judged, `exact` also where `rejection` was asked for and does not apply."""

    proposer: str | None
    drafted: int
    accepted: int
    emitted: int
    seconds_draft: float
    seconds_verify: float
    rule: AcceptRule = "exact"


@dataclass
class ProposerStats:
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0


@dataclass
class Summary:
    """Sums over a job. Prefill's own token counts in `tokens`, not as a step: tokens_per_step is emitted / steps."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    emitted: int = 0
    drafted: int = 0
    accepted: int = 0
    seconds_prefill: float = 0.0
    seconds_draft: float = 0.0
    seconds_verify: float = 0.0
    by_proposer: dict[str, ProposerStats] = field(default_factory=dict)

    def add(self, record: StepRecord) -> None:
        own = self.by_proposer.setdefault(record.proposer or "none", ProposerStats())
        own.steps += 1
        self.steps += 1
        self.tokens += record.emitted
        for sums in (self, own):
            sums.drafted += record.drafted
            sums.accepted += record.accepted
            sums.emitted += record.emitted
        self.seconds_draft += record.seconds_draft
        self.seconds_verify += record.seconds_verify

    @property
    def seconds_decode(self) -> float:
        return self.seconds_draft + self.seconds_verify

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens a verify step emitted; 0 before the first."""
        return self.emitted / self.steps if self.steps else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens over the time of the decode steps, prefill not counted."""
        return self.emitted / self.seconds_decode if self.seconds_decode else 0.0

    @property
    def drafted_share(self) -> float:
        """Share of the output tokens that came from accepted drafts, 0..1."""
        return self.accepted / self.tokens if self.tokens else 0.0
