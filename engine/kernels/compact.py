# mypy: disable-error-code="untyped-decorator, no-untyped-def"
"""Moves the keys and values of a tree's accepted path to the front of its block, on the device (Triton)."""

import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512


@triton.jit
def _keep_path(k, v, slots, record, layer_size, WIDTH: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr):
    """One program a layer and a part of a row. k, v: [L, slots, ROW]; slots [WIDTH] int64, record as `accept` makes."""
    layer = tl.program_id(0).to(tl.int64) * layer_size
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < ROW
    count = tl.load(record)
    place = 0
    while place < count:
        row = tl.load(record + 2 + WIDTH + place)
        if row != place + 1:  # a path ascends, so what is read now was not written before
            source = layer + tl.load(slots + row) * ROW + column
            target = layer + tl.load(slots + place + 1) * ROW + column
            tl.store(k + target, tl.load(k + source, mask=inside), mask=inside)
            tl.store(v + target, tl.load(v + source, mask=inside), mask=inside)
        place += 1


def keep_path(k: Tensor, v: Tensor, slots: Tensor, record: Tensor) -> None:
    """k, v [L, P, S, G, D] contiguous, slots [W] int64, record [2 + 2 W] int32: the accepted rows, which the record
    names in ascending order, move to the slots after the block's first."""
    row = k.shape[-1] * k.shape[-2]
    grid = (k.shape[0], triton.cdiv(row, _BLOCK))
    _keep_path[grid](k, v, slots, record, k[0].numel(), WIDTH=len(slots), ROW=row, BLOCK=_BLOCK)
