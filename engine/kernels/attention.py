"""Paged attention whose splits over the keys depend on positions alone, never on the number of rows or of keys.

The rows of all query heads that share a key/value head are one tile, so keys and values are read once for all of them.
Every path below runs `attend` of attention_tile.py and `merge` of attention_merge.py in the same order for a row:

- up to 256 rows: `partial_kernel` (a program a split), then `merge_kernel`; for few rows the last program of a tile
  merges in place of it, which saves a launch a layer;
- more: `whole_kernel`, one program for all splits of a tile of rows;
- a tree: `partial_kernel` only for the blocks of keys that all rows share, then `tail_kernel` of attention_tree.py goes
  on with the last blocks, row by row, where place j of a row's list of visible rows is depth j, as in a chain; it
  merges too.

Where the device has a tensor memory accelerator, blocks that all rows of a tile see come by descriptor. The blocks at
the end, of which some rows see a part, and what no descriptor can hold, are loaded under a mask.

`base`, the table and a tree's lists are read before the kernel before has ended (see launch.py): no kernel of the same
chain may write them.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from specd.engine.kernels.attention_merge import merge, merge_kernel, merged
from specd.engine.kernels.attention_tile import (
    BLOCK,
    KEYS,
    attend_split,
    queries,
    split_at,
    split_start,
    splits_of,
    stages_for,
)
from specd.engine.kernels.attention_tree import tail_kernel
from specd.engine.kernels.launch import knows_tma, options, start, trigger

MANY = 256  # rows; whole_kernel takes more
PROGRAMS = 264  # of partial_kernel that run at once, two a multiprocessor


@triton.jit(do_not_specialize=["rows", "pages"])
def partial_kernel(
    q_ptr, k_ptr, v_ptr, k_desc, v_desc, table_ptr, base_ptr, stop_ptr, spans_ptr, acc_ptr, state_ptr, ended_ptr,
    out_ptr, rows, pages, MODE: tl.constexpr, TMA: tl.constexpr, MERGES: tl.constexpr, LINES: tl.constexpr,
    PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr,
    SCALE: tl.constexpr, STAGES: tl.constexpr, TAIL: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Every n-th split (n programs) of a tile of rows -> acc [S, rows x HEADS, D], state [S, rows x HEADS, 2] float32.

    MODE "chain": row m sees base + m + 1 positions. "tree": the whole blocks before `base`. "span": positions from
    *base to before *stop, of them spans [rows, 2] int64 ("spans") or all. MERGES: the program of a tile that ends last,
    by the tile's count in ended [tiles] int32 (0 before and after), merges its splits -> out [rows x HEADS, D].
    """
    trigger(PDL)
    HEADS: tl.constexpr = GROUP * GROUPS
    group, tile = tl.program_id(0) % GROUPS, tl.program_id(0) // GROUPS
    base = tl.load(base_ptr)
    start(PDL)
    row, line, exists, q = queries(q_ptr, rows, group, tile, GROUP, HEADS, D, BD, R, WIDE)
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
    inside = exists[:, None] & (lane < D)[None, :]
    count = split_at(last - 1) + 1
    for index in range(tl.program_id(1), count, tl.num_programs(1)):
        split = tl.where(index == count - 1, index, count - 2 - index)  # the longest first; the newest may be short
        first = split_start(split)
        end = tl.minimum(split_start(split + 1), last)
        if MODE == "span" or MODE == "spans":
            first = tl.maximum(first, base // KEYS * KEYS)
        whole = first
        if MODE == "tree":
            whole = tl.maximum(first, end)
        elif MODE == "chain":
            whole = tl.maximum(first, tl.minimum(end, base + tile * R // GROUP + 1) // KEYS * KEYS)
        elif MODE == "span" and first >= base:
            whole = tl.maximum(first, end // KEYS * KEYS)
        top, norm, acc = attend_split(
            q, low, high, first, whole, end, k_ptr, v_ptr, k_desc, v_desc, table_ptr, pages, group,
            TMA, PAGE, GROUPS, D, BD, R, SCALE, STAGES, TAIL, WIDE,
        )  # fmt: skip
        place = line.to(tl.int64) + split * rows * HEADS
        tl.store(acc_ptr + place[:, None] * D + lane[None, :], acc, mask=inside)
        tl.store(state_ptr + place * 2, top, mask=exists)
        tl.store(state_ptr + place * 2 + 1, norm, mask=exists)
    if MERGES:
        tl.debug_barrier()  # all threads have stored before one counts
        if tl.atomic_add(ended_ptr + tl.program_id(0), 1, sem="acq_rel") == tl.num_programs(1) - 1:
            tl.store(ended_ptr + tl.program_id(0), 0)
            begin = split_at(base)
            if MODE == "chain":
                begin = 0
            few = tile * R + tl.arange(0, LINES)  # as many lines as there are, and no layout for more
            places = few // GROUP * HEADS + group * GROUP + few % GROUP
            known = few // GROUP < rows
            mask = known[:, None] & (lane < D)[None, :]
            _, sums, mixed = merged(
                acc_ptr, state_ptr, places, known, mask, begin, count, rows * HEADS, D, BD, LINES, 128 // LINES
            )
            mixed = mixed / tl.where(sums == 0.0, 1.0, sums)[:, None]
            tl.store(out_ptr + places[:, None] * D + lane[None, :], mixed.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["rows", "pages"])
def whole_kernel(
    q_ptr, k_ptr, v_ptr, k_desc, v_desc, table_ptr, base_ptr, out_ptr, rows, pages,
    TMA: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, BD: tl.constexpr,
    R: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A tile of rows of a chain, all its splits in order: what partial_kernel and merge_kernel compute, bit for bit."""
    trigger(PDL)
    HEADS: tl.constexpr = GROUP * GROUPS
    group = tl.program_id(0) % GROUPS
    tile = tl.num_programs(0) // GROUPS - 1 - tl.program_id(0) // GROUPS  # the longest first
    base = tl.load(base_ptr)
    start(PDL)
    row, line, exists, q = queries(q_ptr, rows, group, tile, GROUP, HEADS, D, BD, R, WIDE)
    low = tl.zeros([R], tl.int32)
    high = base + row + 1
    last = base + tl.minimum((tile * R + R - 1) // GROUP + 1, rows)
    top = tl.full([R], float("-inf"), tl.float32)
    norm = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, BD], tl.float32)
    for split in range(split_at(last - 1) + 1):
        begin, end = split_start(split), tl.minimum(split_start(split + 1), last)
        whole = tl.maximum(begin, tl.minimum(end, base + tile * R // GROUP + 1) // KEYS * KEYS)
        one_top, one_norm, one_acc = attend_split(
            q, low, high, begin, whole, end, k_ptr, v_ptr, k_desc, v_desc, table_ptr, pages, group,
            TMA, PAGE, GROUPS, D, BD, R, SCALE, STAGES, 1, WIDE,
        )  # fmt: skip
        top, norm, acc = merge(top, norm, acc, one_top, one_norm, one_acc, True)
    out = acc / tl.where(norm == 0.0, 1.0, norm)[:, None]
    lane = tl.arange(0, BD)
    place = out_ptr + line[:, None] * D + lane[None, :]
    tl.store(place, out.to(out_ptr.dtype.element_ty), mask=exists[:, None] & (lane < D)[None, :])


def plan(rows: int, dtype: torch.dtype) -> tuple[int, int, int]:
    """R, warps and pipeline stages of a tile for so many rows x heads of a group. Two programs of 64 share a
    multiprocessor: one computes while one waits."""
    if dtype == torch.float32:
        return (16, 4, 2) if rows <= 16 else (32, 4, 2)
    if rows <= 16:
        return 16, 4, 4
    return 64, 4, 3


def descriptors(k_cache: Tensor, v_cache: Tensor, page: int) -> tuple[Any, Any]:
    """Descriptors of the caches [slots, G, D] for blocks of keys of one head, where the device knows them, a block lies
    in one page and the sizes fit; the caches themselves elsewhere."""
    slots, groups, size = k_cache.shape
    fits = page % BLOCK == 0 and size == triton.next_power_of_2(size) and k_cache.element_size() == 2
    if not (fits and size >= 16 and knows_tma()):
        return k_cache, v_cache
    shape, block = [slots, groups * size], [BLOCK, size]
    return tuple(TensorDescriptor(c, shape, [groups * size, 1], block) for c in (k_cache, v_cache))


def _scale(size: int) -> float:
    return float(size**-0.5 * 1.4426950408889634)  # scores in base 2


def _split_attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, mode: str, base: Tensor, stop: Tensor,
    extra: Tensor, ended: Tensor | None,
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
    programs = min(splits, 48 if tiles <= 32 else max(1, PROGRAMS // tiles))
    merges = mode != "tree" and ended is not None and tile == 16 and tiles <= len(ended)
    lines = min(tile, max(8, triton.next_power_of_2(rows * per)))
    k_desc, v_desc = descriptors(k_cache, v_cache, page)
    tma = k_desc is not k_cache
    stages = stages_for(stages, tile, block, q.element_size(), tma)
    partial_kernel[(tiles, programs)](
        q, k_cache, v_cache, k_desc, v_desc, table, base, stop, extra, acc, state, base if ended is None else ended,
        out, rows, table.shape[0], MODE=mode, TMA=tma, MERGES=merges, LINES=lines if merges else tile, PAGE=page,
        GROUP=per, GROUPS=groups, D=size, BD=block, R=tile, SCALE=_scale(size), STAGES=stages,
        TAIL=1 if tma else stages, **options(warps),
    )  # fmt: skip
    if mode == "tree":
        tail_kernel[(rows, groups)](
            q, k_cache, v_cache, table, base, extra, acc, state, out, rows, table.shape[0],
            WIDTH=max(16, triton.next_power_of_2(rows)), PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=block,
            R=max(16, triton.next_power_of_2(per)), SCALE=_scale(size), STAGES=1, **options(4),
        )  # fmt: skip
    elif not merges:
        merge_kernel[(rows * heads,)](
            acc, state, base, stop, out, rows, MODE=mode, HEADS=heads, D=size, BD=block, CHUNK=8, **options(1)
        )
    return out


def attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, base: Tensor, lanes: Tensor | None,
    ended: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """As ops.Ops.attention, with base int32 [1] on the device and a tree's rows as lanes [M, M] int32: row m's visible
    rows in ascending order, -1 beyond. ended: zeros [.] int32 that no kernel of another stream uses, so that few rows
    need one kernel less. -> [M, Hq, D]."""
    rows, heads, size = q.shape
    groups = k_cache.shape[-2]
    if lanes is not None:
        return _split_attention(q, k_cache, v_cache, table, page, "tree", base, base, lanes, None)
    if rows <= MANY:
        return _split_attention(q, k_cache, v_cache, table, page, "chain", base, base, base, ended)
    out = torch.empty_like(q)
    per = heads // groups
    tile, warps, stages = plan(rows * per, q.dtype)
    k_desc, v_desc = descriptors(k_cache, v_cache, page)
    block, tma = triton.next_power_of_2(size), k_desc is not k_cache
    stages = stages_for(stages, tile, block, q.element_size(), tma)
    whole_kernel[(triton.cdiv(rows * per, tile) * groups,)](
        q, k_cache, v_cache, k_desc, v_desc, table, base, out, rows, table.shape[0],
        TMA=tma, PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=block, R=tile, SCALE=_scale(size), STAGES=stages,
        **options(warps),
    )  # fmt: skip
    return out


def span_attention(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, page: int, first: Tensor, stop: Tensor,
    spans: Tensor | None, ended: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """As ops.Ops.span_attention, with first and stop int32 [1] on the device; ended as in `attention`."""
    mode = "span" if spans is None else "spans"
    extra = first if spans is None else spans
    return _split_attention(q, k_cache, v_cache, table, page, mode, first, stop, extra, ended)
