"""What the attention kernels share: where splits lie, tiles of queries, cells of the paged cache, the online softmax.

A split's keys are taken in blocks of 64 with an online softmax; splits are merged in ascending order (split-KV, "flash
decoding"; the online softmax is FlashAttention's, arXiv 2205.14135).
"""

import triton
import triton.language as tl

from specd.engine.kernels.launch import constant

_SMALL, _KNEE, _LARGE = 256, 4096, 512
KEYS = constant(64)  # of a block
SMALL = constant(_SMALL)  # keys of a split among the first KNEE positions
KNEE = constant(_KNEE)
LARGE = constant(_LARGE)  # keys of a split beyond


def splits_of(positions: int) -> int:
    """Splits that hold the first `positions` positions."""
    small = min(positions, _KNEE)
    return -(-small // _SMALL) + -(-(positions - small) // _LARGE)


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
    weights = weights.to(v.dtype)
    shrink = tl.exp2(top - base)
    # The sum by the matrix unit, in the order of the product with the values: no layout of a tile changes it.
    ones = tl.full([KB, 16], 1.0, v.dtype)
    norm = tl.fma(norm, shrink, tl.max(tl.dot(weights, ones, input_precision="ieee"), axis=1))
    acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
    return higher, norm, acc


@triton.jit
def merge(top, norm, acc, other_top, other_norm, other_acc, COLUMNS: tl.constexpr):
    """Takes the next split's result into the sum of those before."""
    higher = tl.maximum(top, other_top)
    base = tl.where(higher == float("-inf"), 0.0, higher)
    left, right = tl.exp2(top - base), tl.exp2(other_top - base)
    norm = tl.fma(norm, left, other_norm * right)
    if COLUMNS:
        acc = tl.fma(acc, left[:, None] + tl.zeros_like(acc), other_acc * right[:, None])
    else:
        acc = tl.fma(acc, left + tl.zeros_like(acc), other_acc * right)
    return higher, norm, acc


@triton.jit
def merged(
    acc_ptr, state_ptr, line, exists, inside, begin, end, lines,
    D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr, CHUNK: tl.constexpr = 8,
):  # fmt: skip
    """Splits begin..end-1 of the lines [R] of a tile, of acc [S, lines, D] and state [S, lines, 2], merged in order ->
    top [R], norm [R] and acc [R, BD]. Other programs may have written them: they do not come from the L1 cache."""
    top = tl.full([R], float("-inf"), tl.float32)
    norm = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, BD], tl.float32)
    lane = tl.arange(0, BD)
    for chunk in range(begin, end, CHUNK):
        for index in tl.static_range(CHUNK):  # their loads are all under way at once
            split = chunk + index
            place = line.to(tl.int64) + split * lines
            one_top = tl.load(state_ptr + place * 2, exists & (split < end), float("-inf"), cache_modifier=".cg")
            one_norm = tl.load(state_ptr + place * 2 + 1, exists & (split < end), 0.0, cache_modifier=".cg")
            one_acc = tl.load(
                acc_ptr + place[:, None] * D + lane[None, :], inside & (split < end), 0.0, cache_modifier=".cg"
            )
            top, norm, acc = merge(top, norm, acc, one_top, one_norm, one_acc, True)
    return top, norm, acc


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
