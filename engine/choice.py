"""What the target chooses in a block of rows, and which drafts agree, for steps of fixed shape: in torch.

The same rules as sampling.py's and verify.py's, but all of their inputs are tensors, so that a captured step can be fed
with another request's. A device's kernels are tested against these.
"""

import math

import torch
from torch import Tensor

from specd.engine.sampling import TARGET, SamplingParams, draw_keyed, noise_key, signed

PARAMS = 8  # words of `packed`


def packed(params: SamplingParams) -> tuple[list[float], list[int]]:
    """The request's parameters, 8 words of 64 bits: 4 float64, temperature (0: greedy), top_p, log(min_p) and min_p;
    and 8 int32, top_k, the two words of the noise key, and zeros."""
    temperature = 0.0 if params.greedy else params.temperature
    floor = math.log(params.min_p) if params.min_p > 0.0 else -math.inf
    words = [signed(word) for word in noise_key(params.seed, TARGET)]
    return [temperature, params.top_p, floor, params.min_p], [min(params.top_k, 2**31 - 1), *words, 0, 0, 0, 0, 0]


def as_tensor(params: SamplingParams) -> Tensor:
    """`packed` as a tensor [8] int64."""
    floats, ints = packed(params)
    parts = torch.tensor(floats, dtype=torch.float64), torch.tensor(ints, dtype=torch.int32)
    return torch.cat([part.view(torch.int64) for part in parts])


def choose(logits: Tensor, positions: Tensor, params: Tensor) -> Tensor:
    """`ops.StaticOps.choose`, as sampling.py defines it. Waits for the device."""
    temperature, top_p, _, min_p = params[:4].view(torch.float64).tolist()
    top_k, first, second = params[4:].view(torch.int32)[:3].tolist()
    logits = logits.float()
    chosen = draw_keyed(logits, positions, SamplingParams(temperature, top_k, top_p, min_p), (first, second))
    return torch.where(logits.amax(dim=-1).isfinite(), chosen, -1)


def accepted(tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
    """The exact rule over a block: tokens [W] int64, the newest token and the drafts; choices [W] int64, the target's
    after each row; rows [1] int32: the rows that count; parents [W] int32: the block row that each row follows (row 0's
    means nothing), None for a chain. Waits for the device.

    -> record [2 + 2 W] int32: how many drafts are accepted (a); 1, or 0 if a choice of the rows that count is -1; W
    words of which a + 1 count: the tokens of the accepted and the choice after them; W of which a count: their rows.
    """
    count, width = int(rows), len(tokens)
    drafted, chosen = tokens.tolist(), choices.tolist()
    above = range(-1, width - 1) if parents is None else parents.tolist()
    path = [0]
    for row in range(1, count):
        if above[row] == path[-1] and drafted[row] == chosen[path[-1]]:
            path.append(row)
    taken = len(path) - 1
    emitted = [*(drafted[row] for row in path[1:]), chosen[path[-1]]]
    sane = int(min(chosen[:count]) >= 0)
    record = [taken, sane, *emitted, *[0] * (width - len(emitted)), *path[1:], *[0] * (width - taken)]
    return torch.tensor(record, dtype=torch.int32, device=tokens.device)


def as_mask(mask: Tensor) -> Tensor:
    """A mask [M, M] bool of a mask or of lanes ([M, M] int32: the rows that each row sees, -1 behind them)."""
    if mask.dtype == torch.bool:
        return mask
    seen = torch.zeros(len(mask), len(mask) + 1, dtype=torch.bool, device=mask.device)
    return seen.scatter_(1, mask.long().where(mask >= 0, len(mask)), True)[:, :-1]


def as_lanes(mask: Tensor) -> Tensor:
    """The lanes [M, M] int32 of a mask [M, M] bool: each row's visible rows in ascending order, -1 behind them."""
    rows = mask.shape[0]
    places = torch.arange(rows, device=mask.device)
    lanes = torch.where(mask, places, rows).sort(dim=1).values
    return torch.where(lanes < rows, lanes, -1).int()
