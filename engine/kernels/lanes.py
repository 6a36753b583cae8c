"""How attention is told of a tree: lanes, each row's visible rows of the block in order, in place of a mask."""

import torch
from torch import Tensor


def as_mask(mask: Tensor) -> Tensor:
    """A mask [M, M] bool of a mask or of lanes ([M, M] int32: the rows that each row sees, -1 behind them)."""
    if mask.dtype == torch.bool:
        return mask
    seen = torch.zeros(len(mask), len(mask) + 1, dtype=torch.bool, device=mask.device)
    return seen.scatter_(1, mask.long().where(mask >= 0, len(mask)), True)[:, :-1]


def as_lanes(mask: Tensor) -> Tensor:
    """The lanes [M, M] int32 of a mask [M, M] bool (row i sees row j), or lanes as they are: each row's visible rows in
    ascending order, -1 behind them."""
    if mask.dtype != torch.bool:
        return mask
    rows = mask.shape[0]
    lanes = torch.where(mask, torch.arange(rows, device=mask.device), rows).sort(dim=1).values
    return torch.where(lanes < rows, lanes, -1).int()
