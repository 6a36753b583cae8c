"""What a step costs on this machine: seconds of a verify step by its number of rows, seconds of each proposer's draft.

A step function where steps run at fixed widths (one CUDA graph each): between two of them the cost is the upper one's.
Elsewhere the cost lies between theirs. Measured at load, and followed while jobs run. Noise only ever adds time, so
measurements bound each other: fewer rows cost no more, and a wide step no more than the narrow ones that add up to it.
What moves while jobs run is mostly common to all widths (a longer context, a busier machine), so one factor follows
fast and each width's own cost slowly. A width that no job has run yet looks a little cheaper with every narrower step,
until it is tried: a bad moment at load must not shut it out for good.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import torch

from specd.engine.draft import Draft
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.sampling import SamplingParams

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_CONTEXT = 256  # tokens before the rows that are measured
_FOLLOW = 0.1  # weight of a new measurement in the factor of all widths, and in a draft's cost
_OWN = 0.05  # ... in the width's own cost, once it was seen often
_TRIED = 3  # steps after which a width counts as tried
_WARM_UP = 0.3  # seconds of steps before measuring on a GPU: one that was idle has low clocks for as long
_HOPE = 0.99  # what a width's own cost is multiplied by at every step until then


class CostTable:
    """Seconds of a verify step for each of `widths` rows, ascending, and of a draft by proposer name.

    stepped: steps run at these widths only, rows between two of them are padded to the upper one. frozen: measurements
    that come later are ignored, so that decisions can be replayed.
    """

    def __init__(
        self,
        verify: dict[int, float],
        draft: dict[str, float] | None = None,
        *,
        stepped: bool = True,
        frozen: bool = False,
    ) -> None:
        if not verify or min(verify) != 1:
            raise ValueError("a cost table needs the cost of one row")
        self.widths: Sequence[int] = sorted(verify)
        self._verify = [verify[width] for width in self.widths]
        self._factor = 1.0
        self._seen = [0] * len(self.widths)
        self._draft = dict(draft or {})
        self._by_rows: dict[int, float] = {}  # by rows, until a step is seen
        self.stepped = stepped
        self.frozen = frozen
        self.version = 0  # changes with what a step costs

    def verify(self, rows: int) -> float:
        """Seconds of a step of `rows` rows; beyond the last width, in proportion to it."""
        known = self._by_rows.get(rows)
        if known is None:
            known = self._by_rows[rows] = self._work_out(rows)
        return known

    def _work_out(self, rows: int) -> float:
        place = bisect_left(self.widths, rows)
        if place == len(self.widths):
            return self._factor * self._verify[-1] * rows / self.widths[-1]
        cost, width = self._verify[place], self.widths[place]
        if not self.stepped and place and rows < width:
            below, least = self.widths[place - 1], self._verify[place - 1]
            cost = least + (cost - least) * (rows - below) / (width - below)
        return self._factor * cost

    def draft(self, name: str) -> float:
        """Seconds of a draft; 0 for a proposer that has not been measured."""
        return self._draft.get(name, 0.0)

    def saw_verify(self, rows: int, seconds: float) -> None:
        """Follows a step of one of the widths, or padded to one. Others tell nothing, nor does a stall of over four
        times the cost."""
        place = bisect_left(self.widths, rows)
        if self.frozen or place == len(self.widths) or not (self.stepped or self.widths[place] == rows):
            return
        change = seconds / (self._factor * self._verify[place]) - 1.0
        if change > 3.0:
            return
        self._by_rows.clear()
        self.version += 1
        self._factor *= 1.0 + _FOLLOW * change
        fresh = 1.0 / (3 + self._seen[place])
        self._verify[place] *= 1.0 + max(_OWN, fresh if change < 0 else fresh / 2) * change  # noise only adds
        self._seen[place] += 1
        known = self._verify[place]  # the widest tried width so far: wider ones cost no less
        for wider in range(place + 1, len(self.widths)):
            if self._seen[wider] < _TRIED:
                self._verify[wider] = max(_HOPE * self._verify[wider], known)
            known = max(known, self._verify[wider])
        self._verify = tightened(self.widths, self._verify)

    def saw_draft(self, name: str, seconds: float) -> None:
        if not self.frozen:
            old = self._draft.setdefault(name, seconds)
            if seconds < 4 * old:
                self._draft[name] += _FOLLOW * (seconds - old)

    def as_dict(self) -> dict[int, float]:
        """Rows -> seconds."""
        return {width: self._factor * seconds for width, seconds in zip(self.widths, self._verify, strict=True)}


def measure(model: Qwen3, widths: Iterable[int] | None = None, *, budget: float = 1.0, rounds: int = 4) -> CostTable:
    """Times verify steps on the model: the best of some rounds through all widths, for about `budget` seconds.

    Widths that the first round has no time for are extrapolated from the last two. Where the model has steps of fixed
    shape these are timed, as they run in a job, at their own widths."""
    if widths is None:
        widths = WIDTHS if model.steps is None else model.steps.widths
    cache = model.new_cache()
    context = min(_CONTEXT, model.config.max_positions // 2)
    fitting = [rows for rows in widths if context + rows <= model.config.max_positions]
    seconds: dict[int, float] = {}
    began = time.perf_counter()

    def spent() -> float:
        return time.perf_counter() - began

    try:
        model.forward(torch.zeros(context, dtype=torch.long, device=model.device), _span(model, 0, context), cache)
        warm = time.perf_counter() + (_WARM_UP if model.device.type == "cuda" else 0.0)
        while _step(model, cache, fitting[0]) and time.perf_counter() < warm:
            pass
        began = time.perf_counter()
        for number in range(1, rounds + 1):
            if number > 1 and spent() * number > budget * (number - 1):  # as long as the ones before
                break
            for rows in fitting:
                if spent() < budget or len(seconds) < 2:
                    seconds[rows] = min(_step(model, cache, rows), seconds.get(rows, float("inf")))
    finally:
        cache.free()
    for rows in fitting[len(seconds) :]:
        (a, x), (b, y) = list(seconds.items())[-2:]
        seconds[rows] = y + max(0.0, y - x) / (b - a) * (rows - b)
    costs = dict(zip(fitting, tightened(fitting, [seconds[rows] for rows in fitting]), strict=True))
    return CostTable(costs, stepped=model.steps is not None or model.device.type != "cpu")


def tightened(widths: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """The most that each width can cost: no more than a wider one, nor than narrower ones that add up to its rows."""
    out: list[float] = []
    for place, width in enumerate(widths):
        sums = [-(-width // other) * cost for other, cost in zip(widths, out, strict=False)]
        out.append(min([*seconds[place:], *sums]))
    return out


def _step(model: Qwen3, cache: KVCache, rows: int) -> float:
    """Seconds of one greedy step of `rows` rows after what the cache holds."""
    context = cache.length
    tokens, places = torch.zeros(rows, dtype=torch.long, device=model.device), _span(model, context, rows)
    draft = Draft.chain([0] * (rows - 1))
    start = time.perf_counter()
    with model.ops.alone():
        if model.steps is not None and model.steps.takes(rows, ()):
            model.steps.step(cache, 0, draft, SamplingParams())
        else:
            hidden = model.forward(tokens, places, cache)
            model.logits(hidden.last).argmax(-1).tolist()
    seconds = time.perf_counter() - start
    cache.truncate(context)
    return seconds


def _span(model: Qwen3, start: int, rows: int) -> torch.Tensor:
    return torch.arange(start, start + rows, device=model.device)
