"""The small operations between matrix products, a kernel each: add + RMS norm; q/k-norm + rotary + cache write.

Both take what they follow as split-K partials too ([S, M, N] float32), and add those up in the order of the splits.
Everything between reading and writing is float32; each program works on rows alone, with one layout for any M.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from specd.engine.kernels.launch import options, start, trigger


@triton.jit
def _summed(pointers, mask, stride, PARTS: tl.constexpr):
    """Partials 0..PARTS-1 (`stride` elements apart), added up in order in float32."""
    total = 0.0 + tl.load(pointers, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(1, PARTS):
        total += tl.load(pointers + part * stride, mask=mask, other=0.0).to(tl.float32)
    return total


@triton.jit(do_not_specialize=["rows"])
def add_rms_norm_kernel(
    x_ptr, delta_ptr, weight_ptr, out_ptr, rows, eps,
    H: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One row: x += the sum of PARTS deltas, rounded to x's type; out = x / rms(x) * weight."""
    trigger(PDL)
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < H
    weight = tl.load(weight_ptr + lane, mask=inside, other=0.0).to(tl.float32)
    start(PDL)
    place = row * H + lane
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 0:
        x += _summed(delta_ptr + place, inside, rows.to(tl.int64) * H, PARTS)
        rounded = x.to(x_ptr.dtype.element_ty)
        tl.store(x_ptr + place, rounded, mask=inside)
        x = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / H + eps)
    tl.store(out_ptr + place, (x * scale * weight).to(out_ptr.dtype.element_ty), mask=inside)


def add_rms_norm(x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
    """x [M, H] += delta ([M, H], or [S, M, H] float32 partials) in place -> its RMS norm [M, H]."""
    rows, size = x.shape
    out = torch.empty_like(x)
    parts = 0 if delta is None else delta.shape[0] if delta.dim() == 3 else 1
    block = triton.next_power_of_2(size)
    add_rms_norm_kernel[(rows,)](
        x, x if delta is None else delta, weight, out, rows, eps,
        H=size, BLOCK=block, PARTS=parts, **options(min(32, max(1, block // 128))),
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def qk_norm_rope_store_kernel(
    qkv_ptr, q_norm_ptr, k_norm_ptr, cos_ptr, sin_ptr, slots_ptr, q_ptr, k_cache_ptr, v_cache_ptr, rows, eps,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
    NORM: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """BLOCK heads of one row, of the HEADS + 2 GROUPS in qkv; each as its two halves [BLOCK, HALF]."""
    trigger(PDL)
    row = tl.program_id(0)
    head = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[:, None]
    lane = tl.arange(0, HALF)[None, :]
    is_q = head < HEADS
    is_k = (head >= HEADS) & (head < HEADS + GROUPS)
    is_v = (head >= HEADS + GROUPS) & (head < HEADS + 2 * GROUPS)
    inside = head < HEADS + 2 * GROUPS
    start(PDL)
    width: tl.constexpr = (HEADS + 2 * GROUPS) * 2 * HALF
    place = qkv_ptr + row * width + head * (2 * HALF) + lane
    stride = rows.to(tl.int64) * width
    a = _summed(place, inside, stride, PARTS)
    b = _summed(place + HALF, inside, stride, PARTS)
    v_a, v_b = a, b
    if NORM:
        scale = tl.rsqrt(tl.sum(a * a + b * b, axis=1) / (2 * HALF) + eps)[:, None]
        q_a = tl.load(q_norm_ptr + lane).to(tl.float32)
        q_b = tl.load(q_norm_ptr + HALF + lane).to(tl.float32)
        k_a = tl.load(k_norm_ptr + lane).to(tl.float32)
        k_b = tl.load(k_norm_ptr + HALF + lane).to(tl.float32)
        a = a * scale * tl.where(is_q, q_a, k_a)
        b = b * scale * tl.where(is_q, q_b, k_b)
    cosine = tl.load(cos_ptr + row * HALF + lane).to(tl.float32)
    sine = tl.load(sin_ptr + row * HALF + lane).to(tl.float32)
    turned_a = a * cosine - b * sine
    turned_b = b * cosine + a * sine
    q_type: tl.constexpr = q_ptr.dtype.element_ty
    kv_type: tl.constexpr = k_cache_ptr.dtype.element_ty
    q_place = q_ptr + (row * HEADS + head) * (2 * HALF) + lane
    tl.store(q_place, turned_a.to(q_type), mask=is_q)
    tl.store(q_place + HALF, turned_b.to(q_type), mask=is_q)
    slot = tl.load(slots_ptr + row) * (GROUPS * 2 * HALF)
    k_place = k_cache_ptr + slot + (head - HEADS) * (2 * HALF) + lane
    tl.store(k_place, turned_a.to(kv_type), mask=is_k)
    tl.store(k_place + HALF, turned_b.to(kv_type), mask=is_k)
    v_place = v_cache_ptr + slot + (head - HEADS - GROUPS) * (2 * HALF) + lane
    tl.store(v_place, v_a.to(kv_type), mask=is_v)
    tl.store(v_place + HALF, v_b.to(kv_type), mask=is_v)


def qk_norm_rope_store(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    rope: tuple[Tensor, Tensor],
    slots: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """As ops.Ops.qk_norm_rope_store; qkv [M, (Hq + 2 G) D] or float32 partials [S, M, (Hq + 2 G) D]; q in `dtype`."""
    rows, width = qkv.shape[-2:]
    groups, size = k_cache.shape[-2:]
    heads = width // size - 2 * groups
    q = torch.empty(rows, heads, size, dtype=dtype, device=qkv.device)
    block = 8  # the same for any number of rows: the norm's sum runs over its layout
    q_norm, k_norm = norms if norms is not None else (qkv, qkv)
    qk_norm_rope_store_kernel[(rows, triton.cdiv(heads + 2 * groups, block))](
        qkv, q_norm, k_norm, rope[0], rope[1], slots, q, k_cache, v_cache, rows, eps,
        HEADS=heads, GROUPS=groups, HALF=size // 2, BLOCK=block, PARTS=qkv.shape[0] if qkv.dim() == 3 else 1,
        NORM=norms is not None, **options(4),
    )  # fmt: skip
    return q


@triton.jit
def silu_mul_kernel(
    gate_up_ptr, out_ptr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr, WIDE: tl.constexpr
):
    """BLOCK columns of one row."""
    trigger(PDL)
    row = tl.program_id(0)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < WIDTH
    start(PDL)
    gate = tl.load(gate_up_ptr + row * 2 * WIDTH + lane, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * 2 * WIDTH + WIDTH + lane, mask=inside, other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * WIDTH + lane, out.to(out_ptr.dtype.element_ty), mask=inside)


def silu_mul(gate_up: Tensor) -> Tensor:
    """gate_up [M, 2 I] -> silu(gate) * up [M, I]."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty(rows, width, dtype=gate_up.dtype, device=gate_up.device)
    silu_mul_kernel[(rows, triton.cdiv(width, 1024))](gate_up, out, WIDTH=width, BLOCK=1024, **options(4))
    return out
