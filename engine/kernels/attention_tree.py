"""The end of paged attention over a tree's rows: the keys that not all of them see. See attention.py."""

import triton
import triton.language as tl

from specd.engine.kernels.attention_merge import merge, merged
from specd.engine.kernels.attention_tile import KEYS, attend, cache_rows, cells, split_at, split_start
from specd.engine.kernels.launch import start, trigger


@triton.jit(do_not_specialize=["rows", "pages"])
def tail_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, base_ptr, lanes_ptr, acc_ptr, state_ptr, out_ptr, rows, pages,
    WIDTH: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, R: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The last blocks of one tree row and one key/value head: keys from `base`'s block on, those of the block of rows
    by the row's list lanes [rows, rows]. Goes on where `partial_kernel` stopped, and merges all splits -> out."""
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
    first = split_at(shared)
    total_top, total_norm, total = merged(acc_ptr, state_ptr, line, exists, mask, 0, first, rows * HEADS, D, BD, R, 8)
    for split in range(first, split_at(base + rows - 1) + 1):
        begin = split_start(split)
        place = line.to(tl.int64) + split * rows * HEADS
        kept = exists & (begin < shared)
        top = tl.load(state_ptr + place * 2, mask=kept, other=float("-inf"))
        norm = tl.load(state_ptr + place * 2 + 1, mask=kept, other=0.0)
        acc = tl.load(acc_ptr + place[:, None] * D + lane[None, :], mask=mask & (begin < shared), other=0.0)
        last = tl.minimum(split_start(split + 1), length)
        for block in tl.range(tl.maximum(begin, shared), last, KEYS, num_stages=STAGES):
            position = block + tl.arange(0, KEYS)
            depth = position - base
            known = position < last
            other = tl.load(lanes_ptr + row * rows + depth, mask=(depth >= 0) & known, other=0)
            slots = cache_rows(table_ptr, pages, tl.where(depth >= 0, base + other, position), PAGE)
            k, v = cells(k_ptr, v_ptr, slots, known, group, GROUPS, D, BD, q.dtype, WIDE)
            top, norm, acc = attend(q, k, v, known[None, :] & (head < R)[:, None], top, norm, acc, SCALE, KEYS, True)
        total_top, total_norm, total = merge(total_top, total_norm, total, top, norm, acc, True)
    out = total / tl.where(total_norm == 0.0, 1.0, total_norm)[:, None]
    tl.store(out_ptr + line[:, None] * D + lane[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)
