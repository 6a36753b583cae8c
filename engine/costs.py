"""What a step costs on this machine: seconds of a verify step by its number of rows, seconds of each proposer's draft.

A step function, never interpolated below its grid: where steps run at fixed widths, the cost between two widths is the
upper one's. Measured at load, and followed while jobs run, since a longer context or a busier machine shifts it.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import torch

from specd.engine.model import Qwen3

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_CONTEXT = 256  # tokens before the rows that are measured
_FOLLOW = 0.1  # weight of a new measurement in the running one


class CostTable:
    """Seconds of a verify step for each of `widths` rows, ascending, and of a draft by proposer name.

    frozen: measurements that come later are ignored, so that decisions can be replayed.
    """

    def __init__(
        self, verify: dict[int, float], draft: dict[str, float] | None = None, *, frozen: bool = False
    ) -> None:
        if not verify or min(verify) != 1:
            raise ValueError("a cost table needs the cost of one row")
        self.widths: Sequence[int] = sorted(verify)
        self._verify = [verify[width] for width in self.widths]
        self._draft = dict(draft or {})
        self.frozen = frozen

    def verify(self, rows: int) -> float:
        """Seconds of a step of `rows` rows; beyond the last width, in proportion to it."""
        place = bisect_left(self.widths, rows)
        if place == len(self.widths):
            return self._verify[-1] * rows / self.widths[-1]
        return self._verify[place]

    def draft(self, name: str) -> float:
        """Seconds of a draft; 0 for a proposer that has not been measured."""
        return self._draft.get(name, 0.0)

    def saw_verify(self, rows: int, seconds: float) -> None:
        """Follows a measured step. Only that width moves: an outlier of more than four times its cost is a stall."""
        place = bisect_left(self.widths, rows)
        if self.frozen or place == len(self.widths) or seconds > 4 * self._verify[place]:
            return
        self._verify[place] += _FOLLOW * (seconds - self._verify[place])
        for other in range(place):  # more rows never cost less
            self._verify[other] = min(self._verify[other], self._verify[place])
        for other in range(place + 1, len(self._verify)):
            self._verify[other] = max(self._verify[other], self._verify[place])

    def saw_draft(self, name: str, seconds: float) -> None:
        if not self.frozen:
            old = self._draft.setdefault(name, seconds)
            if seconds < 4 * old:
                self._draft[name] += _FOLLOW * (seconds - old)

    def as_dict(self) -> dict[int, float]:
        """Rows -> seconds."""
        return dict(zip(self.widths, self._verify, strict=True))


def measure(model: Qwen3, widths: Iterable[int] = WIDTHS, *, budget: float = 0.6, repeats: int = 3) -> CostTable:
    """Times verify steps on the model. After `budget` seconds the wider ones are extrapolated from the last two."""
    cache = model.new_cache()
    context = min(_CONTEXT, model.config.max_positions // 2)
    seconds: dict[int, float] = {}
    began = time.perf_counter()
    try:
        model.forward(torch.zeros(context, dtype=torch.long, device=model.device), _span(model, 0, context), cache)
        for rows in widths:
            if context + rows > model.config.max_positions:
                break
            if time.perf_counter() - began > budget and len(seconds) > 1:
                (a, x), (b, y) = list(seconds.items())[-2:]
                seconds[rows] = y + max(0.0, y - x) / (b - a) * (rows - b)
                continue
            tokens = torch.zeros(rows, dtype=torch.long, device=model.device)
            best = float("inf")
            for _ in range(repeats):
                start = time.perf_counter()
                hidden = model.forward(tokens, _span(model, context, rows), cache)
                model.logits(hidden.last).argmax(-1).tolist()
                best = min(best, time.perf_counter() - start)
                cache.truncate(context)
            seconds[rows] = max(best, max(seconds.values(), default=0.0))
    finally:
        cache.free()
    return CostTable(seconds)


def _span(model: Qwen3, start: int, rows: int) -> torch.Tensor:
    return torch.arange(start, start + rows, device=model.device)
