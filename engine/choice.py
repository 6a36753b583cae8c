"""What the target chooses in a block of rows, and which drafts agree.

`accept` is the exact rule; `choose` and `accepted` are that rule and sampling.py's for steps of fixed shape, in torch:
all of their inputs are tensors, so that a captured step can be fed with another request's. A device's kernels are
tested against these.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

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


class Accepted(NamedTuple):
    """path: accepted draft indices, from the root down. tokens: their tokens and the bonus token after them."""

    path: list[int]
    tokens: list[int]


def accept(drafted: Sequence[int], parents: Sequence[int] | None, targets: Sequence[int]) -> Accepted:
    """The longest path of drafted tokens that the target agrees with, and the target's token after it.

    targets: k+1 tokens, the target's choice after the newest token (index 0) and after each drafted one (index i+1);
    parents as in Draft. Pure; linear in k. Of two siblings with one token the first counts.
    """
    if parents is None:
        count = 0
        while count < len(drafted) and drafted[count] == targets[count]:
            count += 1
        return Accepted(list(range(count)), [*drafted[:count], targets[count]])
    path: list[int] = []
    node = -1
    for index, (token, parent) in enumerate(zip(drafted, parents, strict=True)):  # parents stand before children
        if parent == node and token == targets[node + 1]:
            path.append(index)
            node = index
    return Accepted(path, [*(drafted[index] for index in path), targets[node + 1]])


def accepted(tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
    """The exact rule over a block: tokens [W] int64, the newest token and the drafts; choices [W] int64, the target's
    after each row; rows [1] int32: the rows that count; parents [W] int32: the block row that each row follows (row 0's
    means nothing), None for a chain. Waits for the device.

    -> record [2 + 2 W] int32: how many drafts are accepted (a); 1, or 0 if a choice of the rows that count is -1; W
    words of which a + 1 count: the tokens of the accepted and the choice after them; W of which a count: their rows.
    """
    count, width = int(rows), len(tokens)
    chosen = choices.tolist()[:count]
    above = None if parents is None else [row - 1 for row in parents.tolist()[1:count]]
    found = accept(tokens.tolist()[1:count], above, chosen)
    taken = len(found.path)
    path = [index + 1 for index in found.path]
    padding = [0] * (width - taken)
    record = [taken, int(min(chosen) >= 0), *found.tokens, *padding[1:], *path, *padding]
    return torch.tensor(record, dtype=torch.int32, device=tokens.device)
