"""Products of more rows: what linear.py computes, bit for bit, tiles brought by the tensor memory accelerator.

Tiles are copied by descriptor (CUDA, compute capability 9.0), which leaves the multiprocessor's threads to the matrix
unit: with few rows that is 1 % faster, from 17 on more, and in a prefill a tenth to a third. The sums run in
linear.py's order: K upwards, splits of K one after the other.
"""

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from specd.engine.kernels import launch as launching
from specd.engine.kernels import linear_pair
from specd.engine.kernels.launch import options, start, trigger
from specd.engine.kernels.linear import Tile, outputs
from specd.engine.kernels.linear_pair import load_tile

_GROUP = 8  # tiles of weight rows that share the tiles of x in the L2 cache


@triton.jit(do_not_specialize=["rows", "splits"])
def linear_tma_kernel(
    x_desc, w_desc, bias_ptr, out_ptr, rows, splits, split_k,
    N: tl.constexpr, K: tl.constexpr, IN_ORDER: tl.constexpr, GATED: tl.constexpr, BIAS: tl.constexpr,
    PARTIAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """As linear_kernel; what a descriptor reads beyond a matrix' end is 0."""
    split = tl.program_id(0) % splits
    tile = tl.program_id(0) // splits
    m_tiles = tl.cdiv(rows, BM)
    n_tiles: tl.constexpr = (N + BN - 1) // BN
    group = tile // (GROUP * m_tiles)
    size = tl.minimum(n_tiles - group * GROUP, GROUP)
    place = tile % (GROUP * m_tiles)
    n_0 = (group * GROUP + place % size) * BN
    m_0 = place // size * BM
    n, m = n_0 + tl.arange(0, BN), m_0 + tl.arange(0, BM)
    start(PDL)
    acc = tl.zeros([BN, BM], tl.float32)
    total = tl.zeros([BN, BM], tl.float32)
    if GATED:
        for k in tl.range(0, K, BK, num_stages=STAGES):
            gate, up = load_tile(w_desc, n_0, k, WIDE), load_tile(w_desc, N + n_0, k, WIDE)
            x = tl.trans(load_tile(x_desc, m_0, k, WIDE))
            acc = tl.dot(gate, x, acc, input_precision="ieee")
            total = tl.dot(up, x, total, input_precision="ieee")
        total = acc / (1.0 + tl.exp(-acc)) * total
    elif IN_ORDER == 0:
        first = split * split_k
        for k in tl.range(first, tl.minimum(first + split_k, K), BK, num_stages=STAGES):
            w, x = load_tile(w_desc, n_0, k, WIDE), tl.trans(load_tile(x_desc, m_0, k, WIDE))
            acc = tl.dot(w, x, acc, input_precision="ieee")
        total = acc
        if BIAS:
            b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
            total += tl.where(split == 0, b, 0.0)[:, None]
    else:
        for part in tl.range(0, IN_ORDER, flatten=True):  # one pipeline over all splits
            acc = tl.zeros([BN, BM], tl.float32)
            for k in tl.range(part * split_k, tl.minimum((part + 1) * split_k, K), BK, num_stages=STAGES):
                w, x = load_tile(w_desc, n_0, k, WIDE), tl.trans(load_tile(x_desc, m_0, k, WIDE))
                acc = tl.dot(w, x, acc, input_precision="ieee")
            if BIAS:
                b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
                acc += tl.where(part == 0, b, 0.0)[:, None]
            total += acc
    trigger(PDL)
    out = out_ptr + (m * N)[None, :] + n[:, None]
    if PARTIAL:
        out += split.to(tl.int64) * rows * N
    tl.store(out, total.to(out_ptr.dtype.element_ty), mask=(n < N)[:, None] & (m < rows)[None, :])


def takes(x: Tensor, weight: Tensor) -> bool:
    """Whether descriptors can hold these (16-bit, aligned), on a device that knows them."""
    aligned = x.shape[1] % 8 == 0 and (x.device.type == "meta" or (x.data_ptr() | weight.data_ptr()) % 16 == 0)
    return x.element_size() == 2 and aligned and launching.knows_tma()


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, tile: Tile, *, splits: int = 1, gated: bool = False,
    partial: bool = False, in_order: bool = False,
) -> Tensor:  # fmt: skip
    """As linear.launch; x contiguous. A tile whose weight rows are two powers of two goes to linear_pair.py."""
    if tile.bn & (tile.bn - 1):
        return linear_pair.launch(x, weight, bias, tile, splits=splits, gated=gated, partial=partial, in_order=in_order)
    out, splits, grid_splits, split_depth = outputs(x, weight, splits, gated, partial, in_order)
    rows, depth = x.shape
    columns = out.shape[-1]
    x_desc = TensorDescriptor(x, list(x.shape), list(x.stride()), [tile.bm, tile.bk])
    w_desc = TensorDescriptor(weight, list(weight.shape), list(weight.stride()), [tile.bn, tile.bk])
    linear_tma_kernel[(triton.cdiv(rows, tile.bm) * triton.cdiv(columns, tile.bn) * grid_splits,)](
        x_desc, w_desc, bias if bias is not None else weight, out, rows, grid_splits, split_depth,
        N=columns, K=depth, IN_ORDER=splits if in_order and splits > 1 else 0, GATED=gated, BIAS=bias is not None,
        PARTIAL=partial, BM=tile.bm, BN=tile.bn, BK=tile.bk, GROUP=_GROUP, STAGES=tile.stages, **options(tile.warps),
    )  # fmt: skip
    return out
