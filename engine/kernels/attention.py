"""Paged attention whose splits over the keys depend on positions alone, never on the number of rows or of keys.

The rows of all query heads that share a key/value head are one tile, so keys and values are read once for all of them.
Every path below runs `attend` and `merge` of attention_tile.py in the same order for a row:

- up to 256 rows: `partial_kernel` (a program a split), then `merge_kernel`; for few rows the last program of a tile
  merges in place of it, which saves a launch a layer;
- more: `whole_kernel`, one program for all splits of a tile of rows;
- a tree: `partial_kernel` only for the blocks of keys that all rows share, then `tail_kernel` of attention_tree.py goes
  on with the last blocks, row by row, where place j of a row's list of visible rows is depth j, as in a chain; it
  merges too.

`base`, the table and a tree's lists are read before the kernel before has ended (see launch.py): no kernel of the same
chain may write them.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.attention_tile import (
    KEYS,
    attend_blocks,
    merge,
    merged,
    queries,
    split_at,
    split_start,
    splits_of,
)
from specd.engine.kernels.attention_tree import tail_kernel
from specd.engine.kernels.launch import options, start, trigger

MANY = 256  # rows; whole_kernel takes more
WHOLE = (128, 8, 3)  # its R, warps and stages
PROGRAMS = {16: 320, 64: 320, 128: 132}  # wanted of partial_kernel, by R; more than a tile's splits are not of use


@triton.jit(do_not_specialize=["rows", "pages"])
def partial_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, base_ptr, stop_ptr, spans_ptr, acc_ptr, state_ptr, ended_ptr, out_ptr, rows, pages,
    MODE: tl.constexpr, MERGES: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr,
    PDL: tl.constexpr, WIDE: tl.constexpr,
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
    for split in range(tl.program_id(1), split_at(last - 1) + 1, tl.num_programs(1)):
        first = split_start(split)
        end = tl.minimum(split_start(split + 1), last)
        if MODE == "span" or MODE == "spans":
            first = tl.maximum(first, base // KEYS * KEYS)
        top = tl.full([R], float("-inf"), tl.float32)
        norm = tl.zeros([R], tl.float32)
        acc = tl.zeros([R, BD], tl.float32)
        top, norm, acc = attend_blocks(
            q, low, high, first, end, top, norm, acc, k_ptr, v_ptr, table_ptr, pages, group,
            True, PAGE, GROUPS, D, BD, SCALE, STAGES, WIDE,
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
            top, norm, acc = merged(
                acc_ptr, state_ptr, line, exists, inside, begin, split_at(last - 1) + 1, rows * HEADS, D, BD, R
            )
            out = acc / tl.where(norm == 0.0, 1.0, norm)[:, None]
            tl.store(out_ptr + line[:, None] * D + lane[None, :], out.to(out_ptr.dtype.element_ty), mask=inside)


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
        end = split_at(base + line // HEADS) + 1
    else:
        begin = split_at(base)
        end = split_at(tl.load(stop_ptr) - 1) + 1
    top = float("-inf")
    norm = 0.0
    acc = tl.zeros([BD], tl.float32)
    for chunk in range(begin, end, CHUNK):
        for index in tl.static_range(CHUNK):
            place = line.to(tl.int64) + (chunk + index) * rows * HEADS
            one_top = tl.load(state_ptr + place * 2, mask=chunk + index < end, other=float("-inf"))
            one_norm = tl.load(state_ptr + place * 2 + 1, mask=chunk + index < end, other=0.0)
            one_acc = tl.load(acc_ptr + place * D + lane, mask=(lane < D) & (chunk + index < end), other=0.0)
            top, norm, acc = merge(top, norm, acc, one_top, one_norm, one_acc, False)
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
    row, line, exists, q = queries(q_ptr, rows, group, tile, GROUP, HEADS, D, BD, R, WIDE)
    low = tl.zeros([R], tl.int32)
    high = base + row + 1
    last = base + tl.minimum((tile * R + R - 1) // GROUP + 1, rows)
    top = tl.full([R], float("-inf"), tl.float32)
    norm = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, BD], tl.float32)
    for split in range(split_at(last - 1) + 1):
        one_top = tl.full([R], float("-inf"), tl.float32)
        one_norm = tl.zeros([R], tl.float32)
        one_acc = tl.zeros([R, BD], tl.float32)
        begin, end = split_start(split), tl.minimum(split_start(split + 1), last)
        whole = tl.maximum(begin, tl.minimum(end, base + tile * R // GROUP + 1) // KEYS * KEYS)  # all rows see these
        one_top, one_norm, one_acc = attend_blocks(
            q, low, high, begin, whole, one_top, one_norm, one_acc, k_ptr, v_ptr, table_ptr, pages, group,
            False, PAGE, GROUPS, D, BD, SCALE, STAGES, WIDE,
        )  # fmt: skip
        one_top, one_norm, one_acc = attend_blocks(
            q, low, high, whole, end, one_top, one_norm, one_acc, k_ptr, v_ptr, table_ptr, pages, group,
            True, PAGE, GROUPS, D, BD, SCALE, 1, WIDE,
        )  # fmt: skip
        top, norm, acc = merge(top, norm, acc, one_top, one_norm, one_acc, True)
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
    return (64, 4, 3) if rows <= 128 else (128, 8, 3)


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
    programs = max(1, min(splits, 48, PROGRAMS.get(tile, 320) // tiles))
    merges = mode != "tree" and ended is not None and tile == 16 and tiles <= len(ended)
    partial_kernel[(tiles, programs)](
        q, k_cache, v_cache, table, base, stop, extra, acc, state, base if ended is None else ended, out, rows,
        table.shape[0], MODE=mode, MERGES=merges, PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=block, R=tile,
        SCALE=_scale(size), STAGES=stages, **options(warps),
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
    tile, warps, stages = (32, 4, 2) if q.dtype == torch.float32 else WHOLE
    whole_kernel[(triton.cdiv(rows * per, tile) * groups,)](
        q, k_cache, v_cache, table, base, out, rows, table.shape[0],
        PAGE=page, GROUP=per, GROUPS=groups, D=size, BD=triton.next_power_of_2(size), R=tile, SCALE=_scale(size),
        STAGES=stages, **options(warps),
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
