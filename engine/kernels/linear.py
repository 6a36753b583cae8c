"""Matrix products of a few rows with a big weight: x [M, K] @ weight [N, K]^T, for memory-bound steps and for prefill.

The weight is the matrix unit's first operand (M rows of x are its columns), so a tile costs the same for 1 and 16 rows,
and every M runs the same instructions in the same order of K. A weight has one number of splits over K, whatever M is:
a row's bits are the same in a decode step, in a verify step and in a prefill. Weights are read once for M <= 128.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.launch import options, start, trigger


@triton.jit
def _load(rows, k, seen, DEPTH: tl.constexpr, BK: tl.constexpr, ALL: tl.constexpr, WIDE: tl.constexpr):
    """Columns k..k+BK-1 of rows; ALL rows exist, else those that are `seen`; 0 beyond the end."""
    column = k + tl.arange(0, BK)[None, :]
    if ALL and DEPTH % BK == 0:
        tile = tl.load(rows + column, eviction_policy="evict_first")
    elif ALL:
        tile = tl.load(rows + column, mask=column < DEPTH, other=0.0)
    elif DEPTH % BK == 0:
        tile = tl.load(rows + column, mask=seen, other=0.0)
    else:
        tile = tl.load(rows + column, mask=seen & (column < DEPTH), other=0.0)
    return tile.to(tl.float32) if WIDE else tile


@triton.jit
def _product(
    acc, w_rows, x_rows, row_seen, first, last,
    DEPTH: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """acc [BN, BM] + sum over k in first..last of w[n, k] x[m, k]; w_rows [BN, 1], x_rows [BM, 1]: starts of rows."""
    for k in tl.range(first, last, BK, num_stages=STAGES):
        w = _load(w_rows, k, row_seen, DEPTH, BK, True, WIDE)
        x = _load(x_rows, k, row_seen, DEPTH, BK, False, WIDE)
        acc = tl.dot(w, tl.trans(x), acc, input_precision="ieee")
    return acc


@triton.jit(do_not_specialize=["rows", "splits"])
def linear_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, rows, splits, split_k,
    N: tl.constexpr, K: tl.constexpr, IN_ORDER: tl.constexpr, GATED: tl.constexpr, BIAS: tl.constexpr,
    PARTIAL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
    PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One tile of BN weight rows (GATED: of gate and of up) and BM rows of x; one of `splits` splits of K, or IN_ORDER
    of them in order. out: [rows, N] in its own type, PARTIAL: float32 [splits, rows, N]. bias: in the first split."""
    pid = tl.program_id(0)
    m_tiles = tl.cdiv(rows, BM)
    tile = pid // m_tiles
    split = tile % splits
    n = (tile // splits) * BN + tl.arange(0, BN)
    m = (pid % m_tiles) * BM + tl.arange(0, BM)
    w_rows = w_ptr + (tl.minimum(n, N - 1) * K)[:, None]  # rows beyond the end repeat the last: never stored
    x_rows = x_ptr + (m * K)[:, None]
    row_seen = (m < rows)[:, None]
    first = split * split_k
    start(PDL)
    acc = tl.zeros([BN, BM], tl.float32)
    up = tl.zeros([BN, BM], tl.float32)
    if GATED:
        for k in tl.range(0, K, BK, num_stages=STAGES):
            gate_w = _load(w_rows, k, row_seen, K, BK, True, WIDE)
            up_w = _load(w_rows + N * K, k, row_seen, K, BK, True, WIDE)
            x = tl.trans(_load(x_rows, k, row_seen, K, BK, False, WIDE))
            acc = tl.dot(gate_w, x, acc, input_precision="ieee")
            up = tl.dot(up_w, x, up, input_precision="ieee")
        total = acc / (1.0 + tl.exp(-acc)) * up
    elif IN_ORDER == 0:
        last = tl.minimum(first + split_k, K)
        total = _product(acc, w_rows, x_rows, row_seen, first, last, K, BK, STAGES, WIDE)
        if BIAS:
            b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
            total += tl.where(split == 0, b, 0.0)[:, None]
    else:
        total = up
        for part in range(IN_ORDER):
            last = tl.minimum((part + 1) * split_k, K)
            one = _product(up, w_rows, x_rows, row_seen, part * split_k, last, K, BK, STAGES, WIDE)
            if BIAS:
                b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
                one += tl.where(part == 0, b, 0.0)[:, None]
            total += one
    trigger(PDL)
    place = out_ptr + (m * N)[None, :] + n[:, None]
    if PARTIAL:
        place += split.to(tl.int64) * rows * N
    tl.store(place, total.to(out_ptr.dtype.element_ty), mask=(n < N)[:, None] & (m < rows)[None, :])


@dataclass(frozen=True)
class Tile:
    """BLOCK sizes of rows of x, rows of the weight, and K; pipeline stages, warps."""

    bm: int
    bn: int
    bk: int
    stages: int
    warps: int


def outputs(
    x: Tensor, weight: Tensor, splits: int, gated: bool, partial: bool, in_order: bool
) -> tuple[Tensor, int, int, int]:
    """Where the result goes, splits of K, how many of them have programs of their own, and the K of one split."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    split_depth = -(-depth // (128 * splits)) * 128
    splits = -(-depth // split_depth)
    own = 1 if in_order else splits
    if partial:
        return torch.empty(own, rows, columns, dtype=torch.float32, device=x.device), splits, own, split_depth
    if own != 1:
        raise ValueError("a product in several splits must be partial or in order")
    return torch.empty(rows, columns, dtype=x.dtype, device=x.device), splits, own, split_depth


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, tile: Tile, *, splits: int = 1, gated: bool = False,
    partial: bool = False, in_order: bool = False,
) -> Tensor:  # fmt: skip
    """x [M, K], weight [N, K] (gated: [2 N, K]) -> [M, N] in x's type; partial: [S, M, N] float32, S = 1 if in_order
    (one program adds its splits up in order) and else `splits`."""
    out, splits, grid_splits, split_depth = outputs(x, weight, splits, gated, partial, in_order)
    rows, depth = x.shape
    columns = out.shape[-1]
    grid = (triton.cdiv(rows, tile.bm) * triton.cdiv(columns, tile.bn) * grid_splits,)
    is_ordered = in_order and splits > 1
    linear_kernel[grid](
        x, weight, bias if bias is not None else weight, out, rows, grid_splits, split_depth,
        N=columns, K=depth, IN_ORDER=splits if is_ordered else 0, GATED=gated, BIAS=bias is not None,
        PARTIAL=partial, BM=tile.bm, BN=tile.bn, BK=tile.bk, STAGES=tile.stages, **options(tile.warps),
    )  # fmt: skip
    return out
