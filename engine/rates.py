"""How many of a draft's tokens to verify: those that promise the most tokens per second."""

from collections.abc import Sequence

from specd.engine.costs import CostTable

_NEARLY = 0.99  # a longer draft must promise more than this much better: survival is a guess, rows are a cost


class Rates:
    """What drafts promise, by a cost table: (1 + sum of survival) / (draft + verify cost)."""

    def __init__(self, costs: CostTable) -> None:
        self._costs = costs
        self._known: dict[int, list[tuple[int, float]]] = {}  # by the longest draft, see `_sizes`
        self._version = costs.version  # of the costs that these are of

    def best_cut(self, expected: Sequence[float], longest: int, cost: float) -> tuple[int, float]:
        """The smallest head of a draft of `longest` tokens whose tokens per second are nearly the most, and its rate.

        expected: tokens that its first 0, 1, 2, ... win, see Acceptance."""
        sizes = self._sizes(longest)
        rates = [expected[k] / (cost + seconds) for k, seconds in sizes]
        enough = _NEARLY * max(rates, default=0.0)
        for (k, _), rate in zip(sizes, rates, strict=True):
            if rate >= enough:
                return k, rate
        return 0, 0.0

    def may_beat(self, rate: float, longest: int, cost: float) -> bool:
        """Whether a draft of some size up to `longest` has more tokens per second than `rate` if all is accepted."""
        return any((k + 1) / (cost + seconds) > rate for k, seconds in reversed(self._sizes(longest)))

    def refresh(self) -> None:
        """Works out anew what was asked for before, so that nobody has to wait for it later."""
        if self._version != self._costs.version:
            asked, self._known = list(self._known), {}
            for longest in asked[-4:]:
                self._sizes(longest)

    def _sizes(self, longest: int) -> list[tuple[int, float]]:
        """Drafts that fill a width, ascending, and the one that ends with the tokens at hand; what verifying each
        costs."""
        if self._version != self._costs.version:
            self._known, self._version = {}, self._costs.version
        known = self._known.get(longest)
        if known is None:
            verify = self._costs.verify
            sizes = sorted({min(width - 1, longest) for width in self._costs.widths if width > 1})
            known = self._known[longest] = [(k, verify(k + 1)) for k in sizes]
        return known
