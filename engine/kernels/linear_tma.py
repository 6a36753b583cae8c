"""Products of more rows: what linear.py computes, bit for bit, tiles brought by the tensor memory accelerator.

Tiles are copied by descriptor (CUDA, compute capability 9.0), which leaves the multiprocessor's threads to the matrix
unit: from 17 rows on that is faster, and in a prefill a tenth to a third. The sums run in linear.py's order: K upwards,
splits of K one after the other.
"""

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from specd.engine.kernels import launch as launching
from specd.engine.kernels.launch import options, start, trigger
from specd.engine.kernels.linear import Tile, outputs

WIDE_TILE = 160  # weight rows of a tile of linear_160_kernel
_GROUP = 8  # tiles of weight rows that share the tiles of x in the L2 cache


@triton.jit
def _tile(desc, row, k, WIDE: tl.constexpr):
    tile = desc.load([row, k])
    return tile.to(tl.float32) if WIDE else tile


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
            gate, up = _tile(w_desc, n_0, k, WIDE), _tile(w_desc, N + n_0, k, WIDE)
            x = tl.trans(_tile(x_desc, m_0, k, WIDE))
            acc = tl.dot(gate, x, acc, input_precision="ieee")
            total = tl.dot(up, x, total, input_precision="ieee")
        total = acc / (1.0 + tl.exp(-acc)) * total
    elif IN_ORDER == 0:
        first = split * split_k
        for k in tl.range(first, tl.minimum(first + split_k, K), BK, num_stages=STAGES):
            w, x = _tile(w_desc, n_0, k, WIDE), tl.trans(_tile(x_desc, m_0, k, WIDE))
            acc = tl.dot(w, x, acc, input_precision="ieee")
        total = acc
        if BIAS:
            b = tl.load(bias_ptr + tl.minimum(n, N - 1)).to(tl.float32)
            total += tl.where(split == 0, b, 0.0)[:, None]
    else:
        for part in tl.range(0, IN_ORDER, flatten=True):  # one pipeline over all splits
            acc = tl.zeros([BN, BM], tl.float32)
            for k in tl.range(part * split_k, tl.minimum((part + 1) * split_k, K), BK, num_stages=STAGES):
                w, x = _tile(w_desc, n_0, k, WIDE), tl.trans(_tile(x_desc, m_0, k, WIDE))
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


@triton.jit(do_not_specialize=["rows"])
def linear_160_kernel(
    x_desc, w_desc, last_desc, bias_ptr, out_ptr, rows, split_k,
    N: tl.constexpr, K: tl.constexpr, IN_ORDER: tl.constexpr, BIAS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows of x and 160 weight rows, as 128 and 32; splits in order -> out [rows, N]. 2,560 weight rows
    are 16 such tiles, so that with 512 or 1,024 rows each multiprocessor has the same number of programs."""
    m_tiles = tl.cdiv(rows, BM)
    m_0 = tl.program_id(0) % m_tiles * BM
    n_0 = tl.program_id(0) // m_tiles * 160
    start(PDL)
    total_a, total_b = tl.zeros([BM, 128], tl.float32), tl.zeros([BM, 32], tl.float32)
    n_a, n_b = n_0 + tl.arange(0, 128), n_0 + 128 + tl.arange(0, 32)
    for part in tl.range(0, IN_ORDER, flatten=True):
        a, b = tl.zeros([BM, 128], tl.float32), tl.zeros([BM, 32], tl.float32)
        for k in tl.range(part * split_k, tl.minimum((part + 1) * split_k, K), BK, num_stages=STAGES):
            x = _tile(x_desc, m_0, k, WIDE)
            a = tl.dot(x, tl.trans(_tile(w_desc, n_0, k, WIDE)), a, input_precision="ieee")
            b = tl.dot(x, tl.trans(_tile(last_desc, n_0 + 128, k, WIDE)), b, input_precision="ieee")
        if BIAS:
            bias_a = tl.load(bias_ptr + tl.minimum(n_a, N - 1)).to(tl.float32)
            bias_b = tl.load(bias_ptr + tl.minimum(n_b, N - 1)).to(tl.float32)
            a += tl.where(part == 0, bias_a, 0.0)[None, :]
            b += tl.where(part == 0, bias_b, 0.0)[None, :]
        total_a += a
        total_b += b
    trigger(PDL)
    m = m_0 + tl.arange(0, BM)
    line = out_ptr + (m * N)[:, None]
    total_a, total_b = total_a.to(out_ptr.dtype.element_ty), total_b.to(out_ptr.dtype.element_ty)
    tl.store(line + n_a[None, :], total_a, mask=(n_a < N)[None, :] & (m < rows)[:, None])
    tl.store(line + n_b[None, :], total_b, mask=(n_b < N)[None, :] & (m < rows)[:, None])


def takes(x: Tensor, weight: Tensor) -> bool:
    """Whether descriptors can hold these (16-bit, aligned), on a device that knows them."""
    aligned = x.shape[1] % 8 == 0 and (x.device.type == "meta" or (x.data_ptr() | weight.data_ptr()) % 16 == 0)
    return x.element_size() == 2 and aligned and launching.knows_tma()


def tile_for(rows: int, columns: int, gated: bool = False) -> Tile:
    """The tile of a product with a weight of so many columns (gated: of two such)."""
    if rows <= 16:
        return Tile(16, 64, 128, 3 if gated or columns > 65536 else 4, 4)
    if rows <= 32:
        return Tile(32, 64, 64, 4, 4) if gated else Tile(32, 64, 128, 4, 4)
    if rows <= 64:
        return (
            Tile(64, 64, 64, 4, 4) if gated else Tile(64, 128, 64, 3, 4) if columns > 65536 else Tile(64, 64, 128, 3, 4)
        )
    if rows <= 128:
        return (
            Tile(128, 128, 64, 4, 8)
            if gated
            else Tile(128, 128, 64, 6, 8)
            if columns > 65536
            else Tile(128, 64, 64, 4, 4)
        )
    if gated:
        return Tile(128, 64, 64, 4, 4) if rows <= 512 else Tile(256, 64, 64, 4, 8)

    def tiles(bm: int, bn: int) -> int:
        return -(-rows // bm) * -(-columns // bn)

    # What fills 132 multiprocessors best, with one program each, or two of a half of its shared memory.
    wide = columns % WIDE_TILE == 0
    if wide and tiles(64, WIDE_TILE) <= 132:
        return Tile(64, WIDE_TILE, 64, 6, 4)
    if tiles(128, 128) <= 132:
        return Tile(128, 128, 64, 4, 8) if tiles(128, 128) >= 66 else Tile(64, 128, 64, 4, 4)
    if wide and tiles(64, WIDE_TILE) <= 264:
        return Tile(64, WIDE_TILE, 64, 4, 4)
    return Tile(256, 128, 64, 3, 8) if tiles(256, 128) <= 132 else Tile(128, 128, 64, 4, 8)


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, tile: Tile, *, splits: int = 1, gated: bool = False,
    partial: bool = False, in_order: bool = False,
) -> Tensor:  # fmt: skip
    """As linear.launch; x contiguous."""
    out, splits, grid_splits, split_depth = outputs(x, weight, splits, gated, partial, in_order)
    rows, depth = x.shape
    columns = out.shape[-1]
    if tile.bn == WIDE_TILE:
        if grid_splits != 1 or gated:
            raise ValueError(f"a tile of {WIDE_TILE} takes its splits in order, and no gated product")
        x_desc, w_desc, last_desc = (
            TensorDescriptor(of, list(of.shape), list(of.stride()), [count, tile.bk])
            for of, count in ((x, tile.bm), (weight, 128), (weight, WIDE_TILE - 128))
        )
        linear_160_kernel[(triton.cdiv(rows, tile.bm) * triton.cdiv(columns, WIDE_TILE),)](
            x_desc, w_desc, last_desc, bias if bias is not None else weight, out, rows, split_depth,
            N=columns, K=depth, IN_ORDER=splits, BIAS=bias is not None, BM=tile.bm, BK=tile.bk, STAGES=tile.stages,
            **options(tile.warps),
        )  # fmt: skip
        return out
    x_desc = TensorDescriptor(x, list(x.shape), list(x.stride()), [tile.bm, tile.bk])
    w_desc = TensorDescriptor(weight, list(weight.shape), list(weight.stride()), [tile.bn, tile.bk])
    linear_tma_kernel[(triton.cdiv(rows, tile.bm) * triton.cdiv(columns, tile.bn) * grid_splits,)](
        x_desc, w_desc, bias if bias is not None else weight, out, rows, grid_splits, split_depth,
        N=columns, K=depth, IN_ORDER=splits if in_order and splits > 1 else 0, GATED=gated, BIAS=bias is not None,
        PARTIAL=partial, BM=tile.bm, BN=tile.bn, BK=tile.bk, GROUP=_GROUP, STAGES=tile.stages, **options(tile.warps),
    )  # fmt: skip
    return out
