"""What the attention kernels share: where splits lie, tiles of queries, cells of the paged cache, the online softmax.

A split's keys are taken in blocks of 64 with an online softmax; splits are merged in ascending order (split-KV, "flash
decoding"; the online softmax is FlashAttention's, arXiv 2205.14135).
"""

import triton
import triton.language as tl

from specd.engine.kernels import launch
from specd.engine.kernels.launch import constant

_SMALL, _KNEE, _LARGE = 256, 4096, 512
BLOCK = 64
KEYS = constant(BLOCK)  # of a block
SMALL = constant(_SMALL)  # keys of a split among the first KNEE positions
KNEE = constant(_KNEE)
LARGE = constant(_LARGE)  # keys of a split beyond


def splits_of(positions: int) -> int:
    """Splits that hold the first `positions` positions."""
    small = min(positions, _KNEE)
    return -(-small // _SMALL) + -(-(positions - small) // _LARGE)


def stages_for(stages: int, rows: int, size: int, item: int, tma: bool) -> int:
    """Of so many stages of a tile's pipeline, those that shared memory holds beside q and weights: rows of size `size`
    and `item` bytes an element. By descriptor a stage's blocks are still read while the next one's arrive."""
    left = launch.shared_memory() - rows * (size + BLOCK) * item
    return max(1, min(stages, left // (2 * BLOCK * size * item) + (not tma)))


@triton.jit
def split_start(split):
    return tl.where(split * SMALL < KNEE, split * SMALL, KNEE + (split - KNEE // SMALL) * LARGE)


@triton.jit
def split_at(position):
    return tl.where(position < KNEE, position // SMALL, KNEE // SMALL + (position - KNEE) // LARGE)


@triton.jit
def _page(table_ptr, index, WIDE: tl.constexpr):
    """One entry of the page table. Not as a load, which would be put into the pipeline of loads that depend on it, and
    take half its depth: it comes from the L1 cache in no time."""
    if WIDE:
        return tl.load(table_ptr + index)
    return tl.inline_asm_elementwise(
        "ld.global.nc.b32 $0, [$1];", "=r,l", [(table_ptr + index).to(tl.int64)], dtype=tl.int32, is_pure=True, pack=1
    )


@triton.jit
def cache_rows(table_ptr, pages, position, PAGE: tl.constexpr):
    """Cache rows of positions."""
    page = tl.load(table_ptr + tl.minimum(position // PAGE, pages - 1))
    return page.to(tl.int64) * PAGE + position % PAGE


@triton.jit
def _total(x):
    """The sum of each row of x [R, 64], by pairs: no layout of a tile changes the order."""
    x = tl.sum(tl.reshape(x, [x.shape[0], 2, 2, 2, 2, 2, 2]), axis=6)
    for _ in tl.static_range(5):  # from the bit of a column that a thread holds to those of its neighbours
        x = tl.sum(x, axis=1)
    return x


@triton.jit
def attend(q, k, v, seen, top, norm, acc, SCALE: tl.constexpr, KB: tl.constexpr, MASKED: tl.constexpr):
    """Takes a block of keys into a running softmax in base 2. q [R, D], k and v [KB, D]; MASKED: only those seen
    [R, KB]. top [R] is the largest score so far, norm [R] the sum of weights, acc [R, D] the weighted sum of values."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee")
    if MASKED:
        scores = tl.where(seen, scores, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, axis=1) * SCALE)
    base = tl.where(higher == float("-inf"), 0.0, higher)
    weights = tl.exp2(
        tl.fma(scores, tl.full(scores.shape, SCALE, tl.float32), (-base)[:, None] + tl.zeros_like(scores))
    )
    shrink = tl.exp2(top - base)
    acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
    norm = tl.fma(norm, shrink, _total(weights))  # while the product runs
    return higher, norm, acc


@triton.jit
def queries(
    q_ptr, rows, group, tile,
    GROUP: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile of R of the rows x GROUP query heads of one key/value head -> their row, their line in [rows x HEADS],
    whether they exist, and q [R, BD]."""
    index = tile * R + tl.arange(0, R)
    row = index // GROUP
    line = row * HEADS + group * GROUP + index % GROUP
    lane = tl.arange(0, BD)
    q = tl.load(q_ptr + line[:, None] * D + lane[None, :], mask=(row < rows)[:, None] & (lane < D)[None, :], other=0.0)
    if WIDE:
        q = q.to(tl.float32)
    return row, line, row < rows, q


@triton.jit
def cells(
    k_ptr, v_ptr, slots, known, group,
    GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, Q: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Keys and values [KB, BD] of the cache rows `slots`, 0 where not `known`, in type Q."""
    lane = tl.arange(0, BD)
    place = (slots * GROUPS + group)[:, None] * D + lane[None, :]
    mask = known[:, None] if D == BD else known[:, None] & (lane < D)[None, :]
    k = tl.load(k_ptr + place, mask=mask, other=0.0)
    v = tl.load(v_ptr + place, mask=mask, other=0.0)
    if WIDE:
        return k.to(tl.float32), v.to(tl.float32)
    return k.to(Q), v.to(Q)


@triton.jit
def attend_blocks(
    q, low, high, first, last, top, norm, acc, k_ptr, v_ptr, table_ptr, pages, group,
    MASKED: tl.constexpr, PAGE: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr,
    SCALE: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Takes the blocks of keys from position `first` (a block's start) to before `last` into a running softmax; row r
    sees positions low[r]..high[r]-1, or all of them, which then are whole blocks (MASKED false)."""
    for begin in tl.range(first, last, KEYS, num_stages=STAGES):
        position = begin + tl.arange(0, KEYS)
        if PAGE % KEYS == 0:
            page = _page(table_ptr, tl.minimum(begin // PAGE, pages - 1), WIDE)
            slots = page.to(tl.int64) * PAGE + begin % PAGE + tl.arange(0, KEYS)
        else:
            slots = cache_rows(table_ptr, pages, position, PAGE)
        k, v = cells(k_ptr, v_ptr, slots, (position < last) | (not MASKED), group, GROUPS, D, BD, q.dtype, WIDE)
        seen = (position[None, :] >= low[:, None]) & (position[None, :] < high[:, None])
        top, norm, acc = attend(q, k, v, seen, top, norm, acc, SCALE, KEYS, MASKED)
    return top, norm, acc


@triton.jit
def attend_split(
    q, low, high, first, whole, last, k_ptr, v_ptr, k_desc, v_desc, table_ptr, pages, group,
    TMA: tl.constexpr, PAGE: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr,
    SCALE: tl.constexpr, STAGES: tl.constexpr, TAIL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One split, as attend_blocks: positions first..last-1, of which all rows see those before `whole` (a block's
    start). TMA: those come by descriptors of the caches [slots, GROUPS x D], which know no mask: what lies behind the
    last position is never read by them, since it may be anything. TAIL: stages of the rest."""
    top = tl.full([R], float("-inf"), tl.float32)
    norm = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, BD], tl.float32)
    if TMA:
        for begin in tl.range(first, whole, KEYS, num_stages=STAGES):
            slot = _page(table_ptr, begin // PAGE, WIDE) * PAGE + begin % PAGE
            k, v = k_desc.load([slot, group * D]), v_desc.load([slot, group * D])
            if WIDE:
                k, v = k.to(tl.float32), v.to(tl.float32)
            top, norm, acc = attend(q, k, v, 0, top, norm, acc, SCALE, KEYS, False)
    else:
        top, norm, acc = attend_blocks(
            q, low, high, first, whole, top, norm, acc, k_ptr, v_ptr, table_ptr, pages, group,
            False, PAGE, GROUPS, D, BD, SCALE, STAGES, WIDE,
        )  # fmt: skip
    return attend_blocks(
        q, low, high, whole, last, top, norm, acc, k_ptr, v_ptr, table_ptr, pages, group,
        True, PAGE, GROUPS, D, BD, SCALE, TAIL, WIDE,
    )  # fmt: skip
