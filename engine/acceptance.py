"""How far drafts survive: learnt from what was accepted, per proposer and per kind of evidence that it names.

A hazard model: in each band of positions, the share of tokens that were refused among those that were reached, with
older counts fading and a prior where little was seen. Survival to a position is the product of what is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import mul

_BANDS = (1, 2, 4, 8, 16, 32, 64)  # upper ends of the bands of positions 1, 2, 3-4, 5-8, ...; the last has no end
_SIZES = [high - low for low, high in pairwise((0, *_BANDS))]  # positions of each band but the last
_FADE = 0.8  # what is left of a count after one more step of the same kind: texts differ, and the prior knows the usual
_PRIOR_WEIGHTS = (3.0, 3.0, 6.0, 12.0, 12.0, 12.0, 12.0, 12.0)  # tokens that the prior of each band counts as


Prior = float | tuple[float, ...]


@dataclass
class _Counts:
    reached: list[float] = field(default_factory=lambda: [0.0] * (len(_BANDS) + 1))
    refused: list[float] = field(default_factory=lambda: [0.0] * (len(_BANDS) + 1))


class Acceptance:
    """priors: chance that a token is refused before anything was seen, by (proposer, evidence): one for all positions,
    or one a band; `default` elsewhere."""

    def __init__(self, priors: Mapping[tuple[str, int], Prior] | None = None, default: float = 0.3) -> None:
        self._priors = dict(priors or {})
        self._default = default
        self._counts: dict[tuple[str, int], _Counts] = {}
        self._survival: dict[tuple[str, int], list[float]] = {}  # by class, as far as it was asked for
        self._expected: dict[tuple[str, int], list[float]] = {}  # likewise: tokens that the first 0, 1, 2, ... win
        self._deepest = 0  # positions that survival was asked for
        self._taught: set[tuple[str, int]] = set()  # classes whose survival is to be worked out anew

    def hazards(self, proposer: str, evidence: int) -> list[float]:
        """Chance that the next token is refused, for each band."""
        prior = self._priors.get((proposer, evidence), self._default)
        priors = (prior,) * (len(_BANDS) + 1) if isinstance(prior, float) else prior
        counts = self._counts.get((proposer, evidence), _Counts())
        seen = zip(counts.reached, counts.refused, strict=True)
        out, least = [], 1.0
        for (reached, refused), before, weight in zip(seen, priors, _PRIOR_WEIGHTS, strict=True):
            # a draft that holds so far is, if anything, more likely to hold on
            expected = min(before, least)
            hazard = (refused + expected * weight) / (reached + weight)
            least = min(least, hazard)
            out.append(hazard)
        return out

    def survival(self, proposer: str, evidence: int, depth: int) -> list[float]:
        """[depth] chance that at least 1, 2, ... tokens are accepted."""
        known = self._survival.get((proposer, evidence))
        if known is None or len(known) < depth:
            alive = [1.0 - hazard for hazard in self.hazards(proposer, evidence)]
            factors = [factor for factor, size in zip(alive, _SIZES, strict=False) for _ in range(size)]
            self._deepest = max(depth, self._deepest)
            factors += [alive[-1]] * (self._deepest - len(factors))
            # Gone before the other is there: jobs share this, and an interrupt in between must not leave one too short.
            is_expected = self._expected.pop((proposer, evidence), None) is not None
            known = self._survival[proposer, evidence] = list(accumulate(factors, mul))
            if is_expected:  # somebody asks for it
                self.expected(proposer, evidence, 0)
        return known[:depth]

    def expected(self, proposer: str, evidence: int, depth: int) -> list[float]:
        """[depth + 1 or more] tokens that a step emits on average by how many drafted ones are verified: the bonus
        token and each drafted one with its chance. Not to be changed."""
        self.survival(proposer, evidence, depth)
        known = self._expected.get((proposer, evidence))
        if known is None:
            known = list(accumulate(self._survival[proposer, evidence], initial=1.0))
            self._expected[proposer, evidence] = known
        return known

    def refresh(self) -> None:
        """Works out what was taught since, so that nobody has to wait for it later."""
        while self._taught:
            self.survival(*self._taught.pop(), self._deepest)

    def record(self, proposer: str, evidence: int, depth: int, accepted: int) -> None:
        """`accepted` tokens of a draft `depth` deep held; the next one, if there was one, was refused."""
        self._survival.pop((proposer, evidence), None)
        self._taught.add((proposer, evidence))
        counts = self._counts.setdefault((proposer, evidence), _Counts())
        counts.reached = [_FADE * value for value in counts.reached]
        counts.refused = [_FADE * value for value in counts.refused]
        low = 0
        for band, high in enumerate((*_BANDS, max(depth, _BANDS[-1] + 1))):
            reached = min(depth, accepted + 1, high) - low
            if reached <= 0:
                break
            counts.reached[band] += reached
            if accepted < depth and low <= accepted < high:
                counts.refused[band] += 1
            low = high
