"""Drawing a token per row on the device, as sampling.py defines it.

The parameters lie in two small device buffers, so that a captured graph serves every request. Greedy: the largest
logit, the lowest id at a tie. Else: temperature, then top-k, min-p and top-p by a border searched bit by bit (no sort),
then argmax(logit / T + Gumbel noise) with the very noise bits of `sampling.counter_bits`; its logarithms only in
blocks that hold a token which can win (see sampling._argmax_noisy).
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.launch import INTERPRETED, constant, options, start, trigger

_BLOCK = 64 if INTERPRETED else 4096  # logits a program
_SEARCH = 512 if INTERPRETED else 8192  # logits of one turn of a search through a whole row
_INFINITE = constant(0x7F800000)  # the bits of float32 infinity
_FAR = constant(0x7FFFFFFF)


@triton.jit
def _mix(x):
    x = (x ^ ((x >> 16) & 0xFFFF)) * -2048144789
    x = (x ^ ((x >> 13) & 0x7FFFF)) * -1028477387
    return x ^ ((x >> 16) & 0xFFFF)


@triton.jit
def counter_bits(first, second, position, token):
    """sampling.counter_bits with the noise key's two words as int32."""
    row = _mix(position * -1640531535 + first)
    inner = _mix(token * -2048144777 + row)
    return _mix(inner + _mix(row + second))


@triton.jit
def _gumbel(bits):
    """float32 of Gumbel noise in float64. 1 - u is exact there, so log(1 - u) is log1p(-u)."""
    u = ((bits.to(tl.int64) & 0xFFFFFFFF).to(tl.float64) + 0.5) * 2.3283064365386963e-10
    return (-tl.log(-tl.log(1.0 - u))).to(tl.float32)


@triton.jit
def _distance(logits, top, temperature):
    """(logit - top) / T, at most 0, and its magnitude's bits: an int32 that rises as the logit falls."""
    scaled = tl.div_rn(logits - top, temperature + tl.zeros_like(logits))
    return scaled, tl.abs(scaled).to(tl.int32, bitcast=True)


@triton.jit
def scan_kernel(
    logits_ptr, tops_ptr, ids_ptr, V: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The largest logit of one block of one row (NaN if the block holds NaN) and its lowest id."""
    trigger(PDL)
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    ids = block * BLOCK + tl.arange(0, BLOCK)
    start(PDL)
    logits = tl.load(logits_ptr + row * V + ids, mask=ids < V, other=float("-inf")).to(tl.float32)
    broken = tl.max((logits != logits).to(tl.int32), axis=0)
    top = tl.max(logits, axis=0)
    best = tl.min(tl.where(logits == top, ids, _FAR), axis=0)
    tl.store(tops_ptr + row * BLOCKS + block, tl.where(broken > 0, float("nan"), top))
    tl.store(ids_ptr + row * BLOCKS + block, best)


@triton.jit
def _top_k_border(logits_ptr, row, top, temperature, count, V: tl.constexpr, BLOCK: tl.constexpr):
    """The distance of the count-th largest logit of the row."""
    border = 0
    bit = 1 << 30
    while bit > 0:  # the smallest border that at least `count` logits do not exceed: its bits from the highest down
        seen = tl.zeros([BLOCK], tl.int32)
        for begin in range(0, V, BLOCK):
            ids = begin + tl.arange(0, BLOCK)
            logits = tl.load(logits_ptr + row * V + ids, mask=ids < V, other=float("-inf")).to(tl.float32)
            _, distance = _distance(logits, top, temperature)
            seen += ((distance < border + bit) & (ids < V)).to(tl.int32)
        border = tl.where(tl.sum(seen, axis=0) < count, border + bit, border)
        bit = bit >> 1
    return border


@triton.jit
def _weight_before(logits_ptr, row, top, temperature, reach, border, V: tl.constexpr, BLOCK: tl.constexpr):
    """The weight of the row's logits nearer than `reach` and up to `border`, in whole numbers: 2^40 at distance 0."""
    weight = tl.zeros([BLOCK], tl.int64)
    for begin in range(0, V, BLOCK):
        ids = begin + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + row * V + ids, mask=ids < V, other=float("-inf")).to(tl.float32)
        scaled, distance = _distance(logits, top, temperature)
        one = (tl.exp(scaled) * 1099511627776.0).to(tl.int64)
        weight += tl.where((distance < reach) & (distance <= border), one, 0)
    return tl.sum(weight, axis=0).to(tl.float64)


@triton.jit
def _top_p_border(logits_ptr, row, top, temperature, share, border, V: tl.constexpr, BLOCK: tl.constexpr):
    """The largest distance that the logits nearer than it, of those up to `border`, leave less than `share` of the
    weight before: its bits from the highest down."""
    total = share * _weight_before(logits_ptr, row, top, temperature, _FAR, border, V, BLOCK)
    found = 0
    bit = 1 << 30
    while bit > 0:
        before = _weight_before(logits_ptr, row, top, temperature, found + bit, border, V, BLOCK)
        found = tl.where(before < total, found + bit, found)
        bit = bit >> 1
    return tl.minimum(found, border)


@triton.jit
def border_kernel(
    logits_ptr, positions_ptr, tops_ptr, ids_ptr, floats_ptr, ints_ptr, choice_ptr, row_ptr, edge_ptr,
    V: tl.constexpr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One row: the greedy choice, or what the draw needs: row [M, 2] float32 (largest logit; what the likeliest token
    reaches with its noise) and edge [M] int32 (the largest distance that stays in; -1 where the logits are broken)."""
    trigger(PDL)
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, WIDTH)
    start(PDL)
    tops = tl.load(tops_ptr + row * BLOCKS + lane, mask=lane < BLOCKS, other=float("-inf"))
    ids = tl.load(ids_ptr + row * BLOCKS + lane, mask=lane < BLOCKS, other=_FAR)
    top = tl.max(tops, axis=0)
    is_broken = (tl.max((tops != tops).to(tl.int32), axis=0) > 0) | (tl.abs(top) == float("inf"))
    best = tl.min(tl.where(tops == top, ids, _FAR), axis=0)
    tl.store(choice_ptr + row, tl.where(is_broken, -1, best).to(tl.int64))
    temperature = tl.load(floats_ptr).to(tl.float32)
    if temperature >= 1e-5:
        edge = _INFINITE
        if is_broken:
            edge = -1
        else:
            count = tl.load(ints_ptr)
            if (count > 0) & (count < V):
                edge = _top_k_border(logits_ptr, row, top, temperature, count, V, BLOCK)
            edge = tl.minimum(edge, tl.abs(tl.load(floats_ptr + 2).to(tl.float32)).to(tl.int32, bitcast=True))
            share = tl.load(floats_ptr + 1)
            if share < 1.0:
                edge = _top_p_border(logits_ptr, row, top, temperature, share, edge, V, BLOCK)
        first, second = tl.load(ints_ptr + 1), tl.load(ints_ptr + 2)
        bits = counter_bits(first, second, tl.load(positions_ptr + row).to(tl.int32), best)
        tl.store(row_ptr + row * 2, top)
        tl.store(row_ptr + row * 2 + 1, _gumbel(bits))
        tl.store(edge_ptr + row, edge)


@triton.jit
def draw_kernel(
    logits_ptr, positions_ptr, floats_ptr, ints_ptr, row_ptr, edge_ptr, tops_ptr, ids_ptr,
    V: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The largest of (logit - top) / T + noise of one block of one row, and its lowest id. Nothing where greedy."""
    trigger(PDL)
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    ids = block * BLOCK + tl.arange(0, BLOCK)
    start(PDL)
    temperature = tl.load(floats_ptr).to(tl.float32)
    if temperature >= 1e-5:
        first, second = tl.load(ints_ptr + 1), tl.load(ints_ptr + 2)
        logits = tl.load(logits_ptr + row * V + ids, mask=ids < V, other=float("-inf")).to(tl.float32)
        scaled, distance = _distance(logits, tl.load(row_ptr + row * 2), temperature)
        bits = counter_bits(first, second, tl.load(positions_ptr + row).to(tl.int32), ids)
        limit = tl.exp(scaled - tl.load(row_ptr + row * 2 + 1)) * 1.001  # the margin is far above any rounding
        able = ((bits >= 0) & (bits.to(tl.float32) <= limit * 4294967296.0)) | (limit >= 0.5)
        able = able & (distance <= tl.load(edge_ptr + row)) & (ids < V)
        top = float("-inf")
        best = _FAR
        if tl.max(able.to(tl.int32), axis=0) > 0:
            noisy = tl.where(able, scaled + _gumbel(bits), float("-inf"))
            top = tl.max(noisy, axis=0)
            best = tl.min(tl.where(noisy == top, ids, _FAR), axis=0)
        tl.store(tops_ptr + row * BLOCKS + block, top)
        tl.store(ids_ptr + row * BLOCKS + block, best)


@triton.jit
def pick_kernel(
    tops_ptr, ids_ptr, floats_ptr, edge_ptr, choice_ptr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One row's draw from its blocks'. Nothing where greedy."""
    trigger(PDL)
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, WIDTH)
    start(PDL)
    if tl.load(floats_ptr).to(tl.float32) >= 1e-5:
        tops = tl.load(tops_ptr + row * BLOCKS + lane, mask=lane < BLOCKS, other=float("-inf"))
        ids = tl.load(ids_ptr + row * BLOCKS + lane, mask=lane < BLOCKS, other=_FAR)
        best = tl.min(tl.where(tops == tl.max(tops, axis=0), ids, _FAR), axis=0)
        tl.store(choice_ptr + row, tl.where(tl.load(edge_ptr + row) < 0, -1, best).to(tl.int64))


def choose(logits: Tensor, positions: Tensor, floats: Tensor, ints: Tensor) -> Tensor:
    """logits [M, V] of any float type, positions [M] int64 (of the tokens to be drawn) -> [M] int64; -1 where a row
    holds NaN or +inf, or nothing but -inf. floats (float64) and ints (int32) as `Sampler` has them, or longer."""
    rows, size = logits.shape
    device = logits.device
    blocks = triton.cdiv(size, _BLOCK)
    width = max(2, triton.next_power_of_2(blocks))
    tops = torch.empty(rows, blocks, dtype=torch.float32, device=device)
    ids = torch.empty(rows, blocks, dtype=torch.int32, device=device)
    choice = torch.empty(rows, dtype=torch.int64, device=device)
    info = torch.empty(rows, 2, dtype=torch.float32, device=device)
    edge = torch.empty(rows, dtype=torch.int32, device=device)
    scan_kernel[(rows, blocks)](logits, tops, ids, V=size, BLOCKS=blocks, BLOCK=_BLOCK, **options(4))
    border_kernel[(rows,)](
        logits, positions, tops, ids, floats, ints, choice, info, edge,
        V=size, BLOCKS=blocks, WIDTH=width, BLOCK=_SEARCH, **options(16),
    )  # fmt: skip
    draw_kernel[(rows, blocks)](
        logits, positions, floats, ints, info, edge, tops, ids,
        V=size, BLOCKS=blocks, BLOCK=_BLOCK, **options(4),
    )  # fmt: skip
    pick_kernel[(rows,)](tops, ids, floats, edge, choice, BLOCKS=blocks, WIDTH=width, **options(1))
    return choice


def _word(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


class Sampler:
    """Draws with parameters that lie on the device: floats [3] float64 (temperature, top_p, log min_p) and ints [3]
    int32 (top_k, the noise key's two words). A graph that has captured `choose` follows every later `set`."""

    def __init__(self, device: torch.device) -> None:
        pinned = device.type == "cuda"
        self._host = (
            torch.zeros(3, dtype=torch.float64, pin_memory=pinned),
            torch.zeros(3, dtype=torch.int32, pin_memory=pinned),
        )
        self.floats, self.ints = (part.to(device) for part in self._host)
        self.set((0, 0))

    def set(
        self, key: tuple[int, int], temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
    ) -> None:
        """From the next `choose` on this stream; key: the noise key's two 32-bit words, the rest as in SamplingParams.
        Waits for an earlier change to have reached the device."""
        if self.floats.is_cuda:
            torch.cuda.current_stream().synchronize()  # the pinned words are about to change
        log_min_p = math.log(min_p) if min_p > 0.0 else -math.inf
        floats, ints = self._host
        floats.copy_(torch.tensor([temperature, top_p, log_min_p], dtype=torch.float64))
        ints.copy_(torch.tensor([min(top_k, 2**31 - 1), _word(key[0]), _word(key[1])], dtype=torch.int32))
        self.floats.copy_(floats, non_blocking=True)
        self.ints.copy_(ints, non_blocking=True)

    def choose(self, logits: Tensor, positions: Tensor) -> Tensor:
        """See the function `choose`."""
        return choose(logits, positions, self.floats, self.ints)
