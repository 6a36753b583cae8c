"""The operations of `ops.Ops` by the Triton kernels of this folder, on CUDA.

All of them are capture-safe: no host synchronisation, no shape that depends on a value on the device.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from specd.engine.kernels import accept, attention, fused, linear, linear_tma, sample, tiles
from specd.engine.kernels.lanes import as_lanes

try:
    from specd.engine.kernels import linear_gluon
except ImportError:  # a Triton without Gluon
    linear_gluon = None  # type: ignore[assignment]


def _product(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, splits: int = 1, gated: bool = False, partial: bool = False,
    in_order: bool = False,
) -> Tensor:  # fmt: skip
    x = x.contiguous()
    if linear_gluon is not None and linear_gluon.takes(x, weight):
        return linear_gluon.launch(x, weight, bias, splits=splits, gated=gated, partial=partial)
    rows, columns = len(x), len(weight) // (2 if gated else 1)
    if linear_tma.takes(x, weight):
        launch, tile = linear_tma.launch, tiles.by_descriptor(rows, columns, splits, gated)
    else:
        launch, tile = linear.launch, tiles.by_pointer(rows, columns, x.dtype, gated)
    tile = tiles.fitting(tile, x.element_size(), gated)
    return launch(x, weight, bias, tile, splits=splits, gated=gated, partial=partial, in_order=in_order)


class CudaOps:
    """Row-invariant by construction: see linear.py and attention.py."""

    name = "triton"
    row_invariant = True

    def __init__(self) -> None:
        self._places: dict[int, Tensor] = {}
        self._ended: Tensor | None = None  # attention's counts; an object's kernels all run on one stream

    def alone(self) -> AbstractContextManager[None]:
        """Nothing to keep to one thread."""
        return nullcontext()

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x [M, K], weight [N, K], bias [N] -> [M, N] in x's type."""
        return _product(x, weight, bias)

    def projection(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x [M, K], weight [N, K] -> partial sums [S, M, N] float32, for add_rms_norm or qk_norm_rope_store to add up:
        a split of K each, or one that adds them up in order where there are rows enough to fill the device."""
        return _product(
            x, weight, bias, splits=tiles.splits_for(*weight.shape), partial=True, in_order=x.shape[0] > 128
        )

    def gated(self, x: Tensor, gate_up: Tensor) -> Tensor:
        """x [M, H], gate_up [2 I, H] -> silu(gate) * up [M, I]."""
        return _product(x, gate_up, None, gated=True)

    def add_rms_norm(self, x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        """x [M, H] += delta ([M, H] or [S, M, H] float32) in place, then its RMS norm [M, H]."""
        return fused.add_rms_norm(x, delta, weight, eps)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """gate_up [M, 2 I] -> [M, I]."""
        return fused.silu_mul(gate_up)

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
        """qkv [M, (Hq + 2 G) D] or [S, M, (Hq + 2 G) D] float32, rope: cos and sin [M, D/2] -> q [M, Hq, D]."""
        return fused.qk_norm_rope_store(qkv, norms, eps, rope, slots, k_cache, v_cache, k_cache.dtype)

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
        """q [M, Hq, D], caches [slots, G, D], table [pages] int32; base also as int32 [1] on the device; mask None,
        bool [M, M], or lanes int32 [M, M] -> [M, Hq, D]."""
        lanes = None if mask is None else as_lanes(mask)
        return attention.attention(
            q, k_cache, v_cache, table, page, self._place(base, q.device), lanes, self._counts(q)
        )

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
        """q [M, Hq, D], caches [slots, G, D], table [pages] int32, spans [M, 2] int64 or None -> [M, Hq, D]; start and
        stop also as int32 [1] on the device."""
        first, last = self._place(start, q.device), self._place(stop, q.device)
        return attention.span_attention(q, k_cache, v_cache, table, page, first, last, spans, self._counts(q))

    def choose(self, logits: Tensor, positions: Tensor, params: Tensor) -> Tensor:
        """sample.choose with its parameters in one buffer, params [8] int64: 4 float64 (temperature, top_p, log min_p,
        -) and then int32 (top_k, the noise key's two words)."""
        return sample.choose(logits, positions, params[:4].view(torch.float64), params[4:].view(torch.int32))

    def accept(self, tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
        """accept.accept."""
        return accept.accept(tokens, choices, rows, parents)

    def _counts(self, like: Tensor) -> Tensor:
        if self._ended is None or self._ended.device != like.device:
            self._ended = torch.zeros(256, dtype=torch.int32, device=like.device)
        return self._ended

    def _place(self, position: int | Tensor, device: torch.device) -> Tensor:
        """A position on the device. An int's tensor is kept for the other layers of the pass."""
        if isinstance(position, Tensor):
            return position
        if position not in self._places:
            if len(self._places) > 4:
                self._places.clear()
            self._places[position] = torch.full((1,), position, dtype=torch.int32, device=device)
        return self._places[position]
