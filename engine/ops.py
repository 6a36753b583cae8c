"""The model's few operations: what each computes, in torch, and which kernel runs it on a device.

`TorchOps` is the definition: it runs on any device and is every kernel's test oracle. `for_device` picks the kernels.
All of them keep one promise: a row's result does not depend on how many rows are computed with it ("row-invariant"),
so a verify step of k+1 rows gives the bits of k+1 decode steps. TorchOps keeps it on a CPU by computing in tiles of
`_TILE` rows and `_SPLIT` keys, whatever the number of rows; on another device it relies on the library.
"""

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from specd.engine import choice, native_ops
from specd.engine.kernels.lanes import as_mask

_TILE = 16  # rows of one library product
_SPLIT = 64  # keys of one partial attention


class Ops(Protocol):
    """M rows, H hidden, I intermediate, Hq query heads, G key/value heads, D head size; caches are [slots, G, D]."""

    name: str
    row_invariant: bool  # whether the promise holds on the device in hand

    def alone(self) -> AbstractContextManager[None]:
        """Around a step: torch's own operations keep to the calling thread where the kernels have threads of their own.
        Threads that torch leaves spinning after each of its loops would take the cores from the kernels' threads."""

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x [M, K], weight [N, K], bias [N] -> [M, N]."""

    def projection(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """`linear` for `add_rms_norm` and `qk_norm_rope_store` to take: [M, N], or parts of a sum [S, M, N] float32."""

    def gated(self, x: Tensor, gate_up: Tensor) -> Tensor:
        """x [M, H], gate_up [2 I, H] -> silu(gate) * up [M, I]."""

    def add_rms_norm(self, x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        """x [M, H] += delta [M, H] in place; -> x / sqrt(mean(x^2) + eps) * weight, statistics in float32."""

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """gate_up [M, 2 I] -> silu(gate) * up [M, I]."""

    def qk_norm_rope_store(
        self,
        qkv: Tensor,
        norms: tuple[Tensor, Tensor] | None,
        eps: float,
        rope: tuple[Tensor, Tensor],
        slots: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
    ) -> Tensor:
        """Splits qkv [M, (Hq + 2 G) D]; norms (q, k: [D]) and rotates q and k by rope (cos, sin: [M, D/2] float32);
        writes k and v to the cache rows slots [M] int64; -> q [M, Hq, D]."""

    def attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        base: int | Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """Scaled dot-product attention over a paged cache -> [M, Hq, D], contiguous.

        Row m sees the `base` positions before the block and, in the block, the rows up to itself (mask None), those
        that mask [M, M] bool names, or those that lanes [M, M] int32 list: row m's in ascending order, -1 behind them.
        Position p lies in cache row table[p // page] * page + p % page. base is an int32 [1] on the device where the
        step is a fixed one (static_step.py).
        """

    def span_attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        start: int | Tensor,
        stop: int | Tensor,
        spans: Tensor | None,
    ) -> Tensor:
        """Two-way attention, for drafts: row m of q [M, Hq, D] sees all cache places start..stop-1 (spans None) or, of
        those, spans[m, 0]..spans[m, 1]-1 ([M, 2] int64) -> [M, Hq, D], contiguous. Places, and start and stop on the
        device, as in `attention`. The promise on rows does not cover it: a block of drafts always has the same rows,
        and no output depends on it."""


@runtime_checkable
class StaticOps(Ops, Protocol):
    """Operations of a step of fixed shape: nothing waits for the device, and no size depends on values there."""

    def choose(self, logits: Tensor, positions: Tensor, params: Tensor) -> Tensor:
        """logits [M, V] of any float type, positions [M] int64 of the tokens to choose, params as `choice.packed` lays
        them out -> [M] int64: what `sampling.sample` gives, and -1 where the row's largest logit is not finite."""

    def accept(self, tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
        """The exact rule over a block of W rows, the first `rows` ([1] int32) of which count: see `choice.accepted`."""


def rope_tables(theta: float, size: int, positions: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin [positions, size / 2] float32 of the half-split rotary embedding (RoFormer, as Llama arranges it)."""
    frequency = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size)
    angle = torch.arange(positions, dtype=torch.float32)[:, None] * frequency
    return angle.cos().to(device), angle.sin().to(device)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., n] over its last axis, statistics in float32, in x's dtype."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    """x [M, heads, D] rotated by cos, sin [M, D/2], in x's dtype."""
    cosine, sine = (table[:, None, :].to(x.dtype) for table in rope)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class TorchOps:
    """The definitions, in torch, on any device and in any float type."""

    name = "torch"

    def __init__(self, row_invariant: bool = True) -> None:
        self.row_invariant = row_invariant

    def alone(self) -> AbstractContextManager[None]:
        return nullcontext()

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if x.device.type != "cpu":
            return functional.linear(x, weight, bias)
        weight = weight.to(x.dtype)
        rows = x.shape[0]
        padded = functional.pad(x, (0, 0, 0, -rows % _TILE))
        tiles = [functional.linear(tile, weight, bias) for tile in torch.split(padded, _TILE)]
        return torch.cat(tiles)[:rows]

    def projection(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.linear(x, weight, bias)

    def gated(self, x: Tensor, gate_up: Tensor) -> Tensor:
        return self.silu_mul(self.linear(x, gate_up))

    def add_rms_norm(self, x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        if delta is not None:
            x += delta
        return rms_norm(x, weight, eps)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return functional.silu(gate) * up

    def qk_norm_rope_store(
        self,
        qkv: Tensor,
        norms: tuple[Tensor, Tensor] | None,
        eps: float,
        rope: tuple[Tensor, Tensor],
        slots: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
    ) -> Tensor:
        groups, size = k_cache.shape[-2:]
        rows = qkv.view(qkv.shape[0], -1, size)
        q, k, v = torch.split(rows, [rows.shape[1] - 2 * groups, groups, groups], dim=1)
        if norms is not None:
            q, k = rms_norm(q, norms[0], eps), rms_norm(k, norms[1], eps)
        k_cache[slots] = rotate(k, rope).to(k_cache.dtype)
        v_cache[slots] = v.to(v_cache.dtype)
        return rotate(q, rope)

    def attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        base: int | Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        rows, heads, size = q.shape
        groups = k_cache.shape[-2]
        base = int(base)
        total = base + rows
        visible = torch.ones(rows, total, dtype=torch.bool, device=q.device)
        visible[:, base:] = visible[:, base:].tril() if mask is None else as_mask(mask)
        # Each row's visible keys, moved to the front in order: place j of the list is depth j, in a tree as in a chain.
        order = torch.where(visible, torch.arange(total, device=q.device), total).sort(dim=1).values
        order = functional.pad(order, (0, -total % _SPLIT), value=total)
        seen = order < total
        place = order.clamp(max=total - 1)
        slots = table.long()[place // page] * page + place % page  # [M, n]
        out = q.new_empty(rows, heads, size)
        for row in range(rows):  # one row at a time: no product's shape depends on the number of rows
            keys, values = k_cache[slots[row]].float(), v_cache[slots[row]].float()  # [n, G, D]
            values = values.masked_fill(~seen[row][:, None, None], 0.0)  # 0 times what nobody wrote may be no number
            query = q[row].float().view(groups, heads // groups, size) * size**-0.5
            scores = torch.einsum("grd,ngd->grn", query, keys).masked_fill(~seen[row], -torch.inf)
            weights = (scores - scores.max(dim=-1, keepdim=True).values).exp()
            # Partial sums over fixed splits of keys, then added up in order: an empty split adds an exact zero.
            parts = weights.view(groups, heads // groups, -1, _SPLIT)  # [G, r, splits, _SPLIT]
            partial = torch.einsum("grsk,skgd->sgrd", parts, values.view(-1, _SPLIT, groups, size))
            norm = parts.sum(-1).cumsum(-1)[..., -1:]
            out[row] = (partial.cumsum(0)[-1] / norm).reshape(heads, size).to(q.dtype)
        return out

    def span_attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        start: int | Tensor,
        stop: int | Tensor,
        spans: Tensor | None,
    ) -> Tensor:
        rows, heads, size = q.shape
        groups = k_cache.shape[-2]
        place = torch.arange(int(start), int(stop), device=q.device)
        slots = table.long()[place // page] * page + place % page
        keys, values = k_cache[slots].float(), v_cache[slots].float()  # [n, G, D]
        query = q.float().view(rows, groups, heads // groups, size) * size**-0.5
        scores = torch.einsum("mgrd,ngd->grmn", query, keys)
        if spans is not None:
            scores = scores.masked_fill((place < spans[:, :1]) | (place >= spans[:, 1:]), -torch.inf)
        mixed = torch.einsum("grmn,ngd->mgrd", scores.softmax(dim=-1), values)
        return mixed.reshape(rows, heads, size).to(q.dtype).contiguous()

    def choose(self, logits: Tensor, positions: Tensor, params: Tensor) -> Tensor:
        return choice.choose(logits, positions, params)

    def accept(self, tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
        return choice.accepted(tokens, choices, rows, parents)


def for_device(device: torch.device, dtype: torch.dtype) -> Ops:
    """The fastest operations for the device and the activations' type."""
    if device.type == "cuda" and dtype == torch.bfloat16 and _has_cuda_kernels():
        from specd.engine.kernels.cuda import CudaOps  # imports triton: seconds, and on a GPU only

        return CudaOps()
    if device.type == "cpu" and dtype == torch.float32:
        kernels = native_ops.load()
        if kernels is not None:
            return kernels
    return TorchOps(row_invariant=device.type == "cpu")


def _has_cuda_kernels() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("triton", "specd.engine.kernels.cuda"))
