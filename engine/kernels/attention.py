"""Paged attention whose splits over the keys depend on positions alone, never on the number of rows or of keys.

The rows of all query heads that share a key/value head are one tile, so keys and values are read once for all of them.
A split's keys are taken in blocks of 64 with an online softmax; splits are merged in ascending order (split-KV, "flash
decoding"; the online softmax is FlashAttention's, arXiv 2205.14135). Every path below runs `_attend` and `_merge` in
the same order for a row, whatever path computes it:

- up to 256 rows: `partial_kernel` (a program a split), then `merge_kernel`;
- more: `whole_kernel`, one program for all splits of a tile of rows;
`base`, the table and a tree's lists are read before the kernel before has ended (see launch.py): no kernel of the same
chain may write them.

- a tree: `partial_kernel` only for the blocks of keys that all rows share, then `tail_kernel` goes on with the last
  blocks, row by row, where place j of a row's list of visible rows is depth j, as it would be in a chain.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.launch import constant, options, start, trigger

_SMALL, _KNEE, _LARGE = 256, 4096, 512
MANY = 256  # rows; whole_kernel takes more
WHOLE = (128, 8, 2)  # its R, warps and stages
PROGRAMS = 320  # wanted of partial_kernel: more than its splits per tile are not of use
KEYS = constant(64)  # of a block
SMALL = constant(_SMALL)  # keys of a split among the first KNEE positions
KNEE = constant(_KNEE)
LARGE = constant(_LARGE)  # keys of a split beyond


def splits_of(positions: int) -> int:
    """Splits that hold the first `positions` positions."""
    small = min(positions, _KNEE)
    return -(-small // _SMALL) + -(-(positions - small) // _LARGE)


@triton.jit
def _split_start(split):
    return tl.where(split * SMALL < KNEE, split * SMALL, KNEE + (split - KNEE // SMALL) * LARGE)


@triton.jit
def _split_at(position):
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
def _slots(table_ptr, pages, position, PAGE: tl.constexpr):
    """Cache rows of positions."""
    page = tl.load(table_ptr + tl.minimum(position // PAGE, pages - 1))
    return page.to(tl.int64) * PAGE + position % PAGE


@triton.jit
def _attend(q, k, v, seen, top, norm, acc, SCALE: tl.constexpr, KB: tl.constexpr, MASKED: tl.constexpr):
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
def _merge(top, norm, acc, other_top, other_norm, other_acc, COLUMNS: tl.constexpr):
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
def _queries(
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
def _cells(
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
def _split(
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
            slots = _slots(table_ptr, pages, position, PAGE)
        k, v = _cells(k_ptr, v_ptr, slots, (position < last) | (not MASKED), group, GROUPS, D, BD, q.dtype, WIDE)
        seen = (position[None, :] >= low[:, None]) & (position[None, :] < high[:, None])
        top, norm, acc = _attend(q, k, v, seen, top, norm, acc, SCALE, KEYS, MASKED)
    return top, norm, acc


@triton.jit(do_not_specialize=["rows", "pages"])
def partial_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, base_ptr, stop_ptr, spans_ptr, acc_ptr, state_ptr, rows, pages,
    MODE: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, R: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr,
    PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Every n-th split (n programs) of a tile of rows -> acc [S, rows x HEADS, D], state [S, rows x HEADS, 2] float32.

    MODE "chain": row m sees base + m + 1 positions. "tree": the whole blocks before `base`. "span": positions from
    *base to before *stop, of them spans [rows, 2] int64 ("spans") or all.
    """
    trigger(PDL)
    HEADS: tl.constexpr = GROUP * GROUPS
    group, tile = tl.program_id(0) % GROUPS, tl.program_id(0) // GROUPS
    base = tl.load(base_ptr)
    start(PDL)
    row, line, exists, q = _queries(q_ptr, rows, group, tile, GROUP, HEADS, D, BD, R, WIDE)
    low = tl.zeros([R], tl.int32)
    if MODE == "chain":
        high = base + row + 1
        last = base + tl.minimum((tile * R + R - 1) // GROUP + 1, rows)
    elif MODE == "tree":
        last = base // KEYS * KEYS
        high = last + low
    else:
        last = tl.load(stop_ptr)
        high = last + low
        low += base
        if MODE == "spans":
            low = tl.maximum(low, tl.load(spans_ptr + 2 * row, mask=exists, other=0).to(tl.int32))
            high = tl.minimum(high, tl.load(spans_ptr + 2 * row + 1, mask=exists, other=0).to(tl.int32))
    lane = tl.arange(0, BD)
    for split in range(tl.program_id(1), _split_at(last - 1) + 1, tl.num_programs(1)):
        first = _split_start(split)
        end = tl.minimum(_split_start(split + 1), last)
        if MODE == "span" or MODE == "spans":
            first = tl.maximum(first, base // KEYS * KEYS)
        top = tl.full([R], float("-inf"), tl.float32)
        norm = tl.zeros([R], tl.float32)
        acc = tl.zeros([R, BD], tl.float32)
        top, norm, acc = _split(
            q, low, high, first, end, top, norm, acc, k_ptr, v_ptr, table_ptr, pages, group,
            True, PAGE, GROUPS, D, BD, SCALE, STAGES, WIDE,
        )  # fmt: skip
        place = line.to(tl.int64) + split * rows * HEADS
        tl.store(acc_ptr + place[:, None] * D + lane[None, :], acc, mask=exists[:, None] & (lane < D)[None, :])
        tl.store(state_ptr + place * 2, top, mask=exists)
        tl.store(state_ptr + place * 2 + 1, norm, mask=exists)


@triton.jit(do_not_specialize=["rows", "pages"])
def tail_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, base_ptr, lanes_ptr, acc_ptr, state_ptr, rows, pages,
    WIDTH: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, R: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The last blocks of one tree row and one key/value head: keys from `base`'s block on, those of the block of rows
    by the row's list lanes [rows, rows]. Goes on where `partial_kernel` stopped; writes every split that follows."""
    trigger(PDL)
    HEADS: tl.constexpr = GROUP * GROUPS
    row, group = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, BD)
    base = tl.load(base_ptr)
    start(PDL)
    places = tl.arange(0, WIDTH)
    seen_rows = tl.load(lanes_ptr + row * rows + places, mask=places < rows, other=-1)
    length = base + tl.sum((seen_rows >= 0).to(tl.int32), axis=0)
    head = tl.arange(0, R)
    line = row * HEADS + group * GROUP + head
    exists = head < GROUP
    mask = exists[:, None] & (lane < D)[None, :]
    q = tl.load(q_ptr + line[:, None] * D + lane[None, :], mask=mask, other=0.0)
    if WIDE:
        q = q.to(tl.float32)
    shared = base // KEYS * KEYS
    for split in range(_split_at(shared), _split_at(base + rows - 1) + 1):
        begin = _split_start(split)
        place = line.to(tl.int64) + split * rows * HEADS
        kept = exists & (begin < shared)
        top = tl.load(state_ptr + place * 2, mask=kept, other=float("-inf"))
        norm = tl.load(state_ptr + place * 2 + 1, mask=kept, other=0.0)
        acc_place = acc_ptr + place[:, None] * D + lane[None, :]
        acc = tl.load(acc_place, mask=mask & (begin < shared), other=0.0)
        last = tl.minimum(_split_start(split + 1), length)
        for block in tl.range(tl.maximum(begin, shared), last, KEYS, num_stages=STAGES):
            position = block + tl.arange(0, KEYS)
            depth = position - base
            known = position < last
            other = tl.load(lanes_ptr + row * rows + depth, mask=(depth >= 0) & known, other=0)
            slots = _slots(table_ptr, pages, tl.where(depth >= 0, base + other, position), PAGE)
            k, v = _cells(k_ptr, v_ptr, slots, known, group, GROUPS, D, BD, q.dtype, WIDE)
            top, norm, acc = _attend(q, k, v, known[None, :] & (head < R)[:, None], top, norm, acc, SCALE, KEYS, True)
        tl.store(acc_place, acc, mask=mask)
        tl.store(state_ptr + place * 2, top, mask=exists)
        tl.store(state_ptr + place * 2 + 1, norm, mask=exists)


@triton.jit(do_not_specialize=["rows"])
def merge_kernel(
    acc_ptr, state_ptr, base_ptr, stop_ptr, out_ptr, rows,
    MODE: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, CHUNK: tl.constexpr,
    PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One row and query head: its splits merged in order -> out [rows x HEADS, D]."""
    trigger(PDL)
    line = tl.program_id(0)
    lane = tl.arange(0, BD)
    base = tl.load(base_ptr)
    start(PDL)
    begin = 0
    if MODE == "chain":
        end = _split_at(base + line // HEADS) + 1
    elif MODE == "tree":
        end = _split_at(base + rows - 1) + 1
    else:
        begin = _split_at(base)
        end = _split_at(tl.load(stop_ptr) - 1) + 1
    top = float("-inf")
    norm = 0.0
    acc = tl.zeros([BD], tl.float32)
    part = tl.arange(0, CHUNK)
    for chunk in range(begin, end, CHUNK):
        place = (chunk + part).to(tl.int64) * (rows * HEADS) + line
        inside = chunk + part < end
        tops = tl.load(state_ptr + place * 2, mask=inside, other=float("-inf"))
        norms = tl.load(state_ptr + place * 2 + 1, mask=inside, other=0.0)
        accs = tl.load(
            acc_ptr + place[:, None] * D + lane[None, :], mask=inside[:, None] & (lane < D)[None, :], other=0.0
        )
        for index in tl.static_range(CHUNK):
            mine = part == index
            one_top = tl.max(tl.where(mine, tops, float("-inf")), axis=0)
            one_norm = tl.max(tl.where(mine, norms, 0.0), axis=0)
            one_acc = tl.sum(tl.where(mine[:, None], accs, 0.0), axis=0)
            top, norm, acc = _merge(top, norm, acc, one_top, one_norm, one_acc, False)
    out = acc / tl.where(norm == 0.0, 1.0, norm)
    tl.store(out_ptr + line * D + lane, out.to(out_ptr.dtype.element_ty), mask=lane < D)


@triton.jit(do_not_specialize=["rows", "pages"])
def whole_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, base_ptr, out_ptr, rows, pages,
    PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr,
    SCALE: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile of rows of a chain, all its splits in order: what partial_kernel and merge_kernel compute, bit for bit."""
    trigger(PDL)
    HEADS: tl.constexpr = GROUP * GROUPS
    group = tl.program_id(0) % GROUPS
    tile = tl.num_programs(0) // GROUPS - 1 - tl.program_id(0) // GROUPS  # the longest first
    base = tl.load(base_ptr)
    start(PDL)
    row, line, exists, q = _queries(q_ptr, rows, group, tile, GROUP, HEADS, D, BD, R, WIDE)
    low = tl.zeros([R], tl.int32)
    high = base + row + 1
    last = base + tl.minimum((tile * R + R - 1) // GROUP + 1, rows)
    top = tl.full([R], float("-inf"), tl.float32)
    norm = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, BD], tl.float32)
    for split in range(_split_at(last - 1) + 1):
        one_top = tl.full([R], float("-inf"), tl.float32)
        one_norm = tl.zeros([R], tl.float32)
        one_acc = tl.zeros([R, BD], tl.float32)
        begin, end = _split_start(split), tl.minimum(_split_start(split + 1), last)
        whole = tl.maximum(begin, tl.minimum(end, base + tile * R // GROUP + 1) // KEYS * KEYS)  # all rows see these
        one_top, one_norm, one_acc = _split(
            q, low, high, begin, whole, one_top, one_norm, one_acc, k_ptr, v_ptr, table_ptr, pages, group,
            False, PAGE, GROUPS, D, BD, SCALE, STAGES, WIDE,
        )  # fmt: skip
        one_top, one_norm, one_acc = _split(
            q, low, high, whole, end, one_top, one_norm, one_acc, k_ptr, v_ptr, table_ptr, pages, group,
            True, PAGE, GROUPS, D, BD, SCALE, 1, WIDE,
        )  # fmt: skip
        top, norm, acc = _merge(top, norm, acc, one_top, one_norm, one_acc, True)
    out = acc / tl.where(norm == 0.0, 1.0, norm)[:, None]
    lane = tl.arange(0, BD)
    place = out_ptr + line[:, None] * D + lane[None, :]
    tl.store(place, out.to(out_ptr.dtype.element_ty), mask=exists[:, None] & (lane < D)[None, :])


def plan(rows: int, dtype: torch.dtype) -> tuple[int, int, int]:
    """R, warps and pipeline stages of a tile for so many rows x heads of a group."""
    if dtype == torch.float32:
        return (16, 4, 2) if rows <= 16 else (32, 4, 2)
    if rows <= 16:
        return 16, 4, 4
    return 64, 4, 4 if rows <= 128 else 3


def _scale(size: int) -> float:
    return float(size**-0.5 * 1.4426950408889634)  # scores in base 2


def _split_attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, mode: str, base: Tensor, stop: Tensor,
    extra: Tensor,
) -> Tensor:  # fmt: skip
    rows, heads, size = q.shape
    groups = k_cache.shape[-2]
    splits = splits_of(table.shape[0] * page)
    acc = torch.empty(splits, rows * heads, size, dtype=torch.float32, device=q.device)
    state = torch.empty(splits, rows * heads, 2, dtype=torch.float32, device=q.device)
    out = torch.empty_like(q)
    per = heads // groups
    tile, warps, stages = plan(rows * per, q.dtype)
    block = triton.next_power_of_2(size)
    tiles = triton.cdiv(rows * per, tile) * groups
    programs = max(1, min(splits, 48, PROGRAMS // tiles))
    partial_kernel[(tiles, programs)](
        q, k_cache, v_cache, table, base, stop, extra, acc, state, rows, table.shape[0],
        MODE=mode, PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=block, R=tile, SCALE=_scale(size),
        STAGES=stages, **options(warps),
    )  # fmt: skip
    if mode == "tree":
        tail_kernel[(rows, groups)](
            q, k_cache, v_cache, table, base, extra, acc, state, rows, table.shape[0],
            WIDTH=max(16, triton.next_power_of_2(rows)), PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=block,
            R=max(16, triton.next_power_of_2(per)), SCALE=_scale(size), STAGES=1, **options(4),
        )  # fmt: skip
    merge_kernel[(rows * heads,)](
        acc, state, base, stop, out, rows, MODE=mode, HEADS=heads, D=size, BD=block, CHUNK=8, **options(1)
    )
    return out


def attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, base: Tensor, lanes: Tensor | None
) -> Tensor:
    """As ops.Ops.attention, with base int32 [1] on the device and a tree's rows as lanes [M, M] int32: row m's visible
    rows in ascending order, -1 beyond. -> [M, Hq, D]."""
    rows, heads, size = q.shape
    groups = k_cache.shape[-2]
    if lanes is not None:
        return _split_attention(q, k_cache, v_cache, table, page, "tree", base, base, lanes)
    if rows <= MANY:
        return _split_attention(q, k_cache, v_cache, table, page, "chain", base, base, base)
    out = torch.empty_like(q)
    per = heads // groups
    tile, warps, stages = (32, 4, 2) if q.dtype == torch.float32 else WHOLE
    whole_kernel[(triton.cdiv(rows * per, tile) * groups,)](
        q, k_cache, v_cache, table, base, out, rows, table.shape[0],
        PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=triton.next_power_of_2(size), R=tile, SCALE=_scale(size),
        STAGES=stages, **options(warps),
    )  # fmt: skip
    return out


def span_attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, first: Tensor, stop: Tensor,
    spans: Tensor | None,
) -> Tensor:  # fmt: skip
    """As ops.Ops.span_attention, with first and stop int32 [1] on the device."""
    mode = "span" if spans is None else "spans"
    return _split_attention(q, k_cache, v_cache, table, page, mode, first, stop, spans if spans is not None else first)
