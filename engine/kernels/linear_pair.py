"""Products by descriptor in tiles of two widths side by side, as many weight rows as fill the device evenly.

A grid of one program a multiprocessor wants tiles of 80, 96 or 160 weight rows, say, and a tile's side is a power of
two: so 64 + 16, 64 + 32 or 128 + 32. The sums run in linear.py's order, and are the same to the bit.
"""

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from specd.engine.kernels.launch import options, start, trigger
from specd.engine.kernels.linear import Tile, outputs


@triton.jit
def load_tile(desc, row, k, WIDE: tl.constexpr):
    """What desc holds from there on; 0 beyond a matrix' end."""
    tile = desc.load([row, k])
    return tile.to(tl.float32) if WIDE else tile


@triton.jit(do_not_specialize=["rows", "splits"])
def linear_pair_kernel(
    x_desc, a_desc, b_desc, bias_ptr, out_ptr, rows, splits, split_k,
    N: tl.constexpr, K: tl.constexpr, IN_ORDER: tl.constexpr, GATED: tl.constexpr, BIAS: tl.constexpr,
    PARTIAL: tl.constexpr, BM: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """As linear_tma_kernel, for tiles of NA + NB weight rows, which with one power of two could not be as many as fill
    the device evenly. x is the matrix unit's first operand here."""
    split = tl.program_id(0) % splits
    tile = tl.program_id(0) // splits
    m_tiles = tl.cdiv(rows, BM)
    m_0, n_0 = tile % m_tiles * BM, tile // m_tiles * (NA + NB)
    start(PDL)
    a, b = tl.zeros([BM, NA], tl.float32), tl.zeros([BM, NB], tl.float32)
    total_a, total_b = tl.zeros([BM, NA], tl.float32), tl.zeros([BM, NB], tl.float32)
    n_a, n_b = n_0 + tl.arange(0, NA), n_0 + NA + tl.arange(0, NB)
    bias_a, bias_b = tl.zeros([NA], tl.float32), tl.zeros([NB], tl.float32)
    if BIAS:
        bias_a = tl.load(bias_ptr + tl.minimum(n_a, N - 1)).to(tl.float32)
        bias_b = tl.load(bias_ptr + tl.minimum(n_b, N - 1)).to(tl.float32)
    if GATED:
        for k in tl.range(0, K, BK, num_stages=STAGES):
            x = load_tile(x_desc, m_0, k, WIDE)
            a = tl.dot(x, tl.trans(load_tile(a_desc, n_0, k, WIDE)), a, input_precision="ieee")
            b = tl.dot(x, tl.trans(load_tile(b_desc, n_0 + NA, k, WIDE)), b, input_precision="ieee")
            total_a = tl.dot(x, tl.trans(load_tile(a_desc, N + n_0, k, WIDE)), total_a, input_precision="ieee")
            total_b = tl.dot(x, tl.trans(load_tile(b_desc, N + n_0 + NA, k, WIDE)), total_b, input_precision="ieee")
        total_a = a / (1.0 + tl.exp(-a)) * total_a
        total_b = b / (1.0 + tl.exp(-b)) * total_b
    elif IN_ORDER == 0:
        first = split * split_k
        for k in tl.range(first, tl.minimum(first + split_k, K), BK, num_stages=STAGES):
            x = load_tile(x_desc, m_0, k, WIDE)
            a = tl.dot(x, tl.trans(load_tile(a_desc, n_0, k, WIDE)), a, input_precision="ieee")
            b = tl.dot(x, tl.trans(load_tile(b_desc, n_0 + NA, k, WIDE)), b, input_precision="ieee")
        total_a = a + tl.where(split == 0, bias_a, 0.0)[None, :]
        total_b = b + tl.where(split == 0, bias_b, 0.0)[None, :]
    else:
        for part in tl.range(0, IN_ORDER, flatten=True):  # one pipeline over all splits
            a, b = tl.zeros([BM, NA], tl.float32), tl.zeros([BM, NB], tl.float32)
            for k in tl.range(part * split_k, tl.minimum((part + 1) * split_k, K), BK, num_stages=STAGES):
                x = load_tile(x_desc, m_0, k, WIDE)
                a = tl.dot(x, tl.trans(load_tile(a_desc, n_0, k, WIDE)), a, input_precision="ieee")
                b = tl.dot(x, tl.trans(load_tile(b_desc, n_0 + NA, k, WIDE)), b, input_precision="ieee")
            if BIAS:
                a += tl.where(part == 0, bias_a, 0.0)[None, :]
                b += tl.where(part == 0, bias_b, 0.0)[None, :]
            total_a += a
            total_b += b
    trigger(PDL)
    m = m_0 + tl.arange(0, BM)
    line = out_ptr + (m * N)[:, None]
    if PARTIAL:
        line += split.to(tl.int64) * rows * N
    total_a, total_b = total_a.to(out_ptr.dtype.element_ty), total_b.to(out_ptr.dtype.element_ty)
    tl.store(line + n_a[None, :], total_a, mask=(n_a < N)[None, :] & (m < rows)[:, None])
    tl.store(line + n_b[None, :], total_b, mask=(n_b < N)[None, :] & (m < rows)[:, None])


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, tile: Tile, *, splits: int = 1, gated: bool = False,
    partial: bool = False, in_order: bool = False,
) -> Tensor:  # fmt: skip
    """As linear_tma.launch; tile.bn the sum of two powers of two, of 16 and more."""
    out, splits, grid_splits, split_depth = outputs(x, weight, splits, gated, partial, in_order)
    rows, depth = x.shape
    columns = out.shape[-1]
    wide = 1 << tile.bn.bit_length() - 1
    x_desc, a_desc, b_desc = (
        TensorDescriptor(of, list(of.shape), list(of.stride()), [count, tile.bk])
        for of, count in ((x, tile.bm), (weight, wide), (weight, tile.bn - wide))
    )
    linear_pair_kernel[(triton.cdiv(rows, tile.bm) * triton.cdiv(columns, tile.bn) * grid_splits,)](
        x_desc, a_desc, b_desc, bias if bias is not None else weight, out, rows, grid_splits, split_depth,
        N=columns, K=depth, IN_ORDER=splits if in_order and splits > 1 else 0, GATED=gated, BIAS=bias is not None,
        PARTIAL=partial, BM=tile.bm, NA=wide, NB=tile.bn - wide, BK=tile.bk, STAGES=tile.stages, **options(tile.warps),
    )  # fmt: skip
    return out
