"""Which of a draft is accepted, on the device: the exact rule of choice.py."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.launch import constant, options, start, trigger

_FAR = constant(0x7FFFFFFF)


@triton.jit
def accept_kernel(
    tokens_ptr, choices_ptr, rows_ptr, parents_ptr, record_ptr,
    W: tl.constexpr, BLOCK: tl.constexpr, TREE: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One program: the longest accepted path. See `accept`."""
    trigger(PDL)
    lane = tl.arange(0, BLOCK)
    start(PDL)
    rows = tl.load(rows_ptr)
    valid = lane < rows
    tokens = tl.load(tokens_ptr + lane, mask=valid, other=-1).to(tl.int32)
    choices = tl.load(choices_ptr + lane, mask=valid, other=0).to(tl.int32)
    tl.store(record_ptr + 1, tl.min((choices >= 0).to(tl.int32), axis=0))
    if TREE:
        parents = tl.load(parents_ptr + lane, mask=valid, other=-1)
        count = 0
        node = 0
        while node < _FAR:
            choice = tl.sum(tl.where(lane == node, choices, 0), axis=0)
            tl.store(record_ptr + 2 + count, choice)
            fits = valid & (lane > node) & (parents == node) & (tokens == choice)
            node = tl.min(tl.where(fits, lane, _FAR), axis=0)
            if node < _FAR:
                tl.store(record_ptr + 2 + W + count, node)
                count += 1
        tl.store(record_ptr, count)
    else:
        drafted = tl.load(tokens_ptr + lane + 1, mask=lane + 1 < rows, other=-1).to(tl.int32)
        agrees = (drafted == choices) & (lane + 1 < rows)
        count = tl.min(tl.where(agrees, _FAR, lane), axis=0)
        tl.store(record_ptr, count)
        tl.store(record_ptr + 2 + lane, choices, mask=lane <= count)
        tl.store(record_ptr + 2 + W + lane, lane + 1, mask=lane < count)


def accept(tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
    """The rule of `choice.accept` on the device -> record [2 W + 2] int32: how many drafted rows are accepted; 1, or 0
    if a valid row's choice is -1; the emitted tokens (that many and one more, then unset); their rows (that many).

    tokens [W] int (row 0 the newest token, then the draft), choices [W] int64, rows [1] int32 valid rows, parents [W]
    int32 the row of each row's parent (entry 0 unused), or None for a chain.
    """
    width = tokens.shape[0]
    record = torch.empty(2 * width + 2, dtype=torch.int32, device=tokens.device)
    accept_kernel[(1,)](
        tokens, choices, rows, tokens if parents is None else parents, record, W=width,
        BLOCK=max(2, triton.next_power_of_2(width)), TREE=parents is not None, **options(1),
    )  # fmt: skip
    return record
