"""Products of few rows on Hopper GPUs, in Gluon: what linear.py computes, bit for bit, while the memory is never idle.

With few rows a product takes as long as its weight takes to arrive, and at the border of two kernels nothing arrives:
Triton's pipelines start when the kernel before has ended. Here a program lets the next kernel start at once, and has
the first tiles of its weight copied into shared memory before it waits: weights are constants. The rows of x come
after. One warp of a program copies, four multiply. A tile has 64 weight rows, the matrix unit's least, or as many more
as give every multiprocessor one program: where all have the same to do, all of the memory's width is used to the end.

Gluon (Triton's language for layouts and barriers) is experimental, and has no interpreter: it serves where it is known
to build, linear.py is its twin in the tests, and bench/kernel_checks.py compares the two on a device.
"""

import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from specd.engine.kernels import launch as launching
from specd.engine.kernels import linear_tma
from specd.engine.kernels.launch import options, start, trigger
from specd.engine.kernels.linear import outputs

MOST = 32  # rows
_KNOWN = ("3.6.",)  # versions of Triton whose Gluon builds this
_PROGRAMS = 132  # multiprocessors of the device that the tiles were measured on
_TILE = 64
_SWIZZLED = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)


@gluon.jit
def _copy_weight(w_desc, rest_desc, w_tiles, rest_tiles, bars, stage, n, k, exists,
                 N: gl.constexpr, GATED: gl.constexpr, REST: gl.constexpr, BYTES: gl.constexpr):  # fmt: skip
    """Starts the copies of a stage's tiles of the weight, columns from k on. The stage's barrier waits for BYTES: these
    and x's tile."""
    bar = bars.index(stage)
    TILE: gl.constexpr = w_tiles.shape[1]
    STAGES: gl.constexpr = rest_tiles.shape[0]
    mbarrier.expect(bar, BYTES, pred=exists)
    tma.async_copy_global_to_shared(w_desc, [n, k], bar, w_tiles.index(stage), pred=exists)
    if GATED:
        tma.async_copy_global_to_shared(w_desc, [N + n, k], bar, w_tiles.index(STAGES + stage), pred=exists)
    if REST:
        rest = rest_tiles.index(stage)
        tma.async_copy_global_to_shared(rest_desc, [n + TILE, k], bar, rest.slice(0, REST), pred=exists)
        if GATED:
            tma.async_copy_global_to_shared(rest_desc, [N + n + TILE, k], bar, rest.slice(REST, REST), pred=exists)


@gluon.jit
def _copy(x_desc, w_desc, rest_desc, x_tiles, w_tiles, rest_tiles, full, empty, rows, n, first, last,
          N: gl.constexpr, GATED: gl.constexpr, REST: gl.constexpr, PDL: gl.constexpr):  # fmt: skip
    """The copying warp: all stages at once, and then each when its tiles have been multiplied."""
    STAGES: gl.constexpr = x_tiles.shape[0]
    BM: gl.constexpr = x_tiles.shape[1]
    BK: gl.constexpr = x_tiles.shape[2]
    BYTES: gl.constexpr = ((w_tiles.shape[1] + REST) * (2 if GATED else 1) + BM) * BK * 2
    # x's descriptor is fetched early by a copy of no row of x.
    mbarrier.expect(full.index(STAGES), BM * BK * 2)
    tma.async_copy_global_to_shared(x_desc, [rows, 0], full.index(STAGES), x_tiles.index(0))
    for s in gl.static_range(STAGES):
        k = first + s * BK
        _copy_weight(w_desc, rest_desc, w_tiles, rest_tiles, full, s, n, k, k < last, N, GATED, REST, BYTES)
    start(PDL)
    mbarrier.wait(full.index(STAGES), 0)
    for s in gl.static_range(STAGES):
        k = first + s * BK
        tma.async_copy_global_to_shared(x_desc, [0, k], full.index(s), x_tiles.index(s), pred=k < last)
    stage = 0
    phase = 0
    for k in range(first + STAGES * BK, last, BK):
        mbarrier.wait(empty.index(stage), phase)
        _copy_weight(w_desc, rest_desc, w_tiles, rest_tiles, full, stage, n, k, True, N, GATED, REST, BYTES)
        tma.async_copy_global_to_shared(x_desc, [0, k], full.index(stage), x_tiles.index(stage))
        stage += 1
        if stage == STAGES:
            stage = 0
            phase ^= 1


@gluon.jit
def _store(out_ptr, total, n, count, rows, N: gl.constexpr, layout: gl.constexpr):
    """The first `count` rows of total [weight rows from n on, rows of x] to out [rows, N]."""
    i = gl.arange(0, total.shape[0], gl.SliceLayout(1, layout))
    m = gl.arange(0, total.shape[1], gl.SliceLayout(0, layout))
    inside = ((i < count) & (n + i < N))[:, None] & (m < rows)[None, :]
    gl.store(out_ptr + (m * N)[None, :] + (n + i)[:, None], total.to(out_ptr.dtype.element_ty), mask=inside)


@gluon.jit
def _biased(total, bias_ptr, n, split, N: gl.constexpr, layout: gl.constexpr):
    at = gl.minimum(n + gl.arange(0, total.shape[0], gl.SliceLayout(1, layout)), N - 1)
    return total + gl.where(split == 0, gl.load(bias_ptr + at).to(gl.float32), 0.0)[:, None]


@gluon.jit
def _multiply(x_tiles, w_tiles, rest_tiles, full, empty, bias_ptr, out_ptr, rows, n, split, first, last,
              N: gl.constexpr, GATED: gl.constexpr, BIAS: gl.constexpr, PARTIAL: gl.constexpr, REST: gl.constexpr,
              PDL: gl.constexpr):  # fmt: skip
    """The multiplying warps: a stage's products are under way while those of the one before end."""
    STAGES: gl.constexpr = x_tiles.shape[0]
    BM: gl.constexpr = x_tiles.shape[1]
    BK: gl.constexpr = x_tiles.shape[2]
    TILE: gl.constexpr = w_tiles.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BM, 16])
    start(PDL)
    acc = gl.zeros([TILE, BM], gl.float32, layout)
    up = gl.zeros([TILE, BM], gl.float32, layout)
    rest = gl.zeros([TILE, BM], gl.float32, layout)
    stage = 0
    phase = 0
    before = 0
    for k in range(first, last, BK):
        mbarrier.wait(full.index(stage), phase)
        x = x_tiles.index(stage).permute((1, 0))
        acc = warpgroup_mma(w_tiles.index(stage), x, acc, is_async=True)
        if GATED:
            up = warpgroup_mma(w_tiles.index(STAGES + stage), x, up, is_async=True)
        if REST:
            rest = warpgroup_mma(rest_tiles.index(stage), x, rest, is_async=True)
        acc, up, rest = warpgroup_mma_wait(1 + (1 if GATED else 0) + (1 if REST else 0), [acc, up, rest])
        mbarrier.arrive(empty.index(before), pred=k > first)
        before = stage
        stage += 1
        if stage == STAGES:
            stage = 0
            phase ^= 1
    acc, up, rest = warpgroup_mma_wait(0, [acc, up, rest])
    if PARTIAL:
        out_ptr += split.to(gl.int64) * rows * N
    if GATED:
        acc = acc / (1.0 + gl.exp(-acc)) * up
    elif BIAS:
        acc = _biased(acc, bias_ptr, n, split, N, layout)
        rest = _biased(rest, bias_ptr, n + TILE, split, N, layout)
    _store(out_ptr, acc, n, TILE, rows, N, layout)
    if REST and GATED:  # other warps hold a row's gate than its up
        both = gl.allocate_shared_memory(gl.float32, [TILE, BM], gl.SwizzledSharedLayout(1, 1, 1, order=[0, 1]))
        both.store(rest)
        lines: gl.constexpr = gl.BlockedLayout([1, 1], [16, 2], [1, 4], [0, 1])
        gate = both.slice(0, REST).load(lines)
        gate = gate / (1.0 + gl.exp(-gate)) * both.slice(REST, REST).load(lines)
        _store(out_ptr, gate, n + TILE, REST, rows, N, lines)
    elif REST:
        _store(out_ptr, rest, n + TILE, REST, rows, N, layout)


@gluon.jit(do_not_specialize=["rows"])
def linear_gluon_kernel(
    x_desc, w_desc, rest_desc, bias_ptr, out_ptr, rows, SPLITS: gl.constexpr, SPLIT_K: gl.constexpr,
    N: gl.constexpr, K: gl.constexpr, GATED: gl.constexpr, BIAS: gl.constexpr, PARTIAL: gl.constexpr,
    BM: gl.constexpr, TILE: gl.constexpr, REST: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
    PDL: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """TILE + REST weight rows (GATED: of gate and of up) and a split of K, for all rows of x. What a descriptor reads
    beyond a matrix' end is 0; REST: of a whole tile of their own, whose other rows are anything and not stored."""
    trigger(PDL)
    dtype: gl.constexpr = x_desc.dtype
    x_tiles = gl.allocate_shared_memory(dtype, [STAGES, BM, BK], x_desc.layout)
    w_tiles = gl.allocate_shared_memory(dtype, [STAGES * (2 if GATED else 1), TILE, BK], w_desc.layout)
    rest_tiles = x_tiles
    if REST:
        rest_tiles = gl.allocate_shared_memory(dtype, [STAGES, TILE, BK], w_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
        mbarrier.init(empty.index(s), count=1)
    mbarrier.init(full.index(STAGES), count=1)
    fence_async_shared()
    n = gl.program_id(0) // SPLITS * (TILE + REST)
    split = gl.program_id(0) % SPLITS
    first = split * SPLIT_K
    last = gl.minimum(first + SPLIT_K, K)
    gl.warp_specialize([
        (_multiply, (x_tiles, w_tiles, rest_tiles, full, empty, bias_ptr, out_ptr, rows, n, split, first, last,
                     N, GATED, BIAS, PARTIAL, REST, PDL)),
        (_copy, (x_desc, w_desc, rest_desc, x_tiles, w_tiles, rest_tiles, full, empty, rows, n, first, last,
                 N, GATED, REST, PDL)),
    ], worker_num_warps=[1], worker_num_regs=[32])  # fmt: skip


def takes(x: Tensor, weight: Tensor) -> bool:
    """Whether x is few rows and descriptors can hold both, on a GPU that this is known to run on."""
    known = triton.__version__.startswith(_KNOWN) and launching.knows_wgmma()
    return x.shape[0] <= MOST and known and linear_tma.takes(x, weight)


def _shape(bm: int, columns: int, splits: int, split_depth: int, gated: bool) -> tuple[int, int, int]:
    """A tile's weight rows beyond 64, columns and stages, as measured on an H200. A program with much to do has a
    multiprocessor to itself; of others two share one, so that one multiplies while the other waits."""
    if gated or split_depth >= 2048:
        for rest in (16, 32):
            if 0.9 * _PROGRAMS <= -(-columns // (_TILE + rest)) * splits <= _PROGRAMS:
                return rest, 64, (8 if gated else 11) - (bm == 32)
    if gated:
        return 0, 64, 5
    return 0, 128, 5 if bm == 16 and split_depth > 1024 else 4


def launch(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, splits: int = 1, gated: bool = False, partial: bool = False
) -> Tensor:
    """As linear.launch, for what this file `takes`; x contiguous."""
    out, _, splits, split_depth = outputs(x, weight, splits, gated, partial, in_order=False)
    rows, depth = x.shape
    columns = out.shape[-1]
    bm = 16 if rows <= 16 else 32
    rest, bk, stages = _shape(bm, columns, splits, split_depth, gated)
    descriptors = [
        TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [height, bk], _SWIZZLED)
        for tensor, height in ((x, bm), (weight, _TILE), (weight, rest or _TILE))
    ]
    linear_gluon_kernel[(triton.cdiv(columns, _TILE + rest) * splits,)](
        *descriptors, bias if bias is not None else weight, out, rows, splits, split_depth, N=columns, K=depth,
        GATED=gated, BIAS=bias is not None, PARTIAL=partial, BM=bm, TILE=_TILE, REST=rest, BK=bk, STAGES=stages,
        maxnreg=64, **options(4),
    )  # fmt: skip
    return out
