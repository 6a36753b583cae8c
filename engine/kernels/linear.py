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

from specd.engine.kernels.launch import options, prefetch_lines, start, trigger


@triton.jit
def _product(
    w_rows, x_rows, row_seen, first, last,
    DEPTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """sum over k in first..last of w[n, k] x[m, k] -> [BN, BM] float32; w_rows [BN, 1], x_rows [BM, 1]: row starts."""
    lane = tl.arange(0, BK)[None, :]
    acc = tl.zeros([BN, BM], tl.float32)
    for k in tl.range(first, last, BK, num_stages=STAGES):
        if DEPTH % BK == 0:
            w = tl.load(w_rows + (k + lane), eviction_policy="evict_first")
            x = tl.load(x_rows + (k + lane), mask=row_seen, other=0.0)
        else:
            w = tl.load(w_rows + (k + lane), mask=k + lane < DEPTH, other=0.0)
            x = tl.load(x_rows + (k + lane), mask=row_seen & (k + lane < DEPTH), other=0.0)
        if WIDE:
            w, x = w.to(tl.float32), x.to(tl.float32)
        acc = tl.dot(w, tl.trans(x), acc, input_precision="ieee")
    return acc


@triton.jit(do_not_specialize=["rows", "splits"])
def linear_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, rows, splits, split_k,
    N: tl.constexpr, K: tl.constexpr, IN_ORDER: tl.constexpr, GATED: tl.constexpr, BIAS: tl.constexpr,
    PARTIAL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
    PREFETCH: tl.constexpr, TRIGGER: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One tile of BN weight rows (GATED: of gate and of up) and BM rows of x; one of `splits` splits of K, or IN_ORDER
    of them in order. out: [rows, N] in its own type, PARTIAL: float32 [splits, rows, N]. bias: in the first split."""
    if TRIGGER == 0:
        trigger(PDL)
    pid = tl.program_id(0)
    m_tiles = tl.cdiv(rows, BM)
    tile = pid // m_tiles
    split = tile % splits
    n = (tile // splits) * BN + tl.arange(0, BN)
    m = (pid % m_tiles) * BM + tl.arange(0, BM)
    w_rows = w_ptr + (tl.minimum(n, N - 1) * K)[:, None]  # rows beyond the end repeat the last: never stored
    x_rows = x_ptr + (m * K)[:, None]
    row_seen = (m < rows)[:, None]
    if PREFETCH > 0:
        prefetch_lines(w_ptr + tl.minimum(n, N - 1) * K + split * split_k, PREFETCH, PDL)
        if GATED:
            prefetch_lines(w_ptr + (tl.minimum(n, N - 1) + N) * K, PREFETCH, PDL)
    start(PDL)
    if GATED:
        lane = tl.arange(0, BK)[None, :]
        gate = tl.zeros([BN, BM], tl.float32)
        up = tl.zeros([BN, BM], tl.float32)
        for k in tl.range(0, K, BK, num_stages=STAGES):
            inside = k + lane < K
            if K % BK == 0:
                g = tl.load(w_rows + (k + lane), eviction_policy="evict_first")
                u = tl.load(w_rows + (N * K + k + lane), eviction_policy="evict_first")
                x = tl.load(x_rows + (k + lane), mask=row_seen, other=0.0)
            else:
                g = tl.load(w_rows + (k + lane), mask=inside, other=0.0)
                u = tl.load(w_rows + (N * K + k + lane), mask=inside, other=0.0)
                x = tl.load(x_rows + (k + lane), mask=row_seen & inside, other=0.0)
            if WIDE:
                g, u, x = g.to(tl.float32), u.to(tl.float32), x.to(tl.float32)
            x = tl.trans(x)
            gate = tl.dot(g, x, gate, input_precision="ieee")
            up = tl.dot(u, x, up, input_precision="ieee")
        total = gate / (1.0 + tl.exp(-gate)) * up
    elif IN_ORDER == 0:
        first = split * split_k
        last = tl.minimum(first + split_k, K)
        total = _product(w_rows, x_rows, row_seen, first, last, K, BM, BN, BK, STAGES, WIDE)
        if BIAS:
            b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
            total += tl.where(split == 0, b, 0.0)[:, None]
    else:
        total = tl.zeros([BN, BM], tl.float32)
        for part in range(IN_ORDER):
            last = tl.minimum((part + 1) * split_k, K)
            acc = _product(w_rows, x_rows, row_seen, part * split_k, last, K, BM, BN, BK, STAGES, WIDE)
            if BIAS:
                b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
                acc += tl.where(part == 0, b, 0.0)[:, None]
            total += acc
    if TRIGGER == 1:
        trigger(PDL)
    place = out_ptr + (m * N)[None, :] + n[:, None]
    if PARTIAL:
        place += split.to(tl.int64) * rows * N
    tl.store(place, total.to(out_ptr.dtype.element_ty), mask=(n < N)[:, None] & (m < rows)[None, :])


@dataclass(frozen=True)
class Tile:
    """BLOCK sizes of rows of x, rows of the weight, and K; pipeline stages, warps; bytes of each weight row that are
    brought into the L2 before the kernel before has ended."""

    bm: int
    bn: int
    bk: int
    stages: int
    warps: int
    prefetch: int = 0
    trigger: int = 1


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, tile: Tile, *, splits: int = 1, gated: bool = False,
    partial: bool = False, in_order: bool = False,
) -> Tensor:  # fmt: skip
    """x [M, K], weight [N, K] (gated: [2 N, K]) -> [M, N] in x's type; partial: [S, M, N] float32, S = 1 if in_order
    (one program adds its splits up in order) and else `splits`."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    split_depth = -(-depth // (128 * splits)) * 128
    splits = -(-depth // split_depth)
    grid_splits = 1 if in_order else splits
    if partial:
        out = torch.empty(grid_splits, rows, columns, dtype=torch.float32, device=x.device)
    else:
        if grid_splits != 1:
            raise ValueError("a product in several splits must be partial or in order")
        out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, tile.bm) * triton.cdiv(columns, tile.bn) * grid_splits,)
    linear_kernel[grid](
        x, weight, bias if bias is not None else weight, out, rows, grid_splits, split_depth,
        N=columns, K=depth, IN_ORDER=splits if in_order and splits > 1 else 0, GATED=gated, BIAS=bias is not None,
        PARTIAL=partial, BM=tile.bm, BN=tile.bn, BK=tile.bk, STAGES=tile.stages,
        PREFETCH=min(tile.prefetch, depth // splits // 8 * 8 * weight.element_size()), TRIGGER=tile.trigger,
        **options(tile.warps),
    )  # fmt: skip
    return out
