"""Splits of attention merged in ascending order: in the program that computed them, or in a kernel of their own."""

import triton
import triton.language as tl

from specd.engine.kernels.attention_tile import split_at
from specd.engine.kernels.launch import start, trigger


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
    D: tl.constexpr, BD: tl.constexpr, R: tl.constexpr, CHUNK: tl.constexpr,
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
