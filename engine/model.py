"""Qwen3 and Qwen2.5: one forward pass for any number of rows, be it a prefill, a decode step or a verify step.

It knows tensors and a cache; it knows nothing of text, sampling or drafts. Architecture as in Qwen3's technical report
(arXiv 2505.09388): pre-norm, grouped-query attention with RMS norm on q and k (Qwen2.5: bias on q, k, v instead),
rotary positions, SwiGLU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from specd.engine import ops as operations
from specd.engine.config import EngineConfig, ModelConfig
from specd.engine.errors import ContextOverflow
from specd.engine.kv_cache import KVCache, PagePool
from specd.engine.weights import Weights

if TYPE_CHECKING:
    from specd.engine.propose.draft_chain import DraftChain
    from specd.engine.static_step import StaticStep


@dataclass(frozen=True)
class Hidden:
    """last: [M, H] after the final norm. taps: [M, T, H], the outputs of the T chosen layers, None where none were."""

    last: Tensor
    taps: Tensor | None


class Qwen3:
    """A loaded model. `vocab_limit` is the number of ids that the tokenizer knows: rows beyond are padding."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        *,
        engine: EngineConfig | None = None,
        vocab_limit: int | None = None,
    ) -> None:
        self.config = config
        self.engine = engine or EngineConfig()
        self.weights = weights
        self.device = weights.norm.device
        self.dtype = weights.norm.dtype
        self.vocab_limit = min(vocab_limit or config.vocab_size, config.vocab_size)
        self.ops = operations.for_device(self.device, self.dtype)
        self._head = weights.head[: self.vocab_limit]
        self._rope = operations.rope_tables(config.rope_theta, config.head_dim, 1024, self.device)
        self._pool: PagePool | None = None
        self.steps: StaticStep | None = None  # steps of fixed shape, where the device runs them faster
        self.chain: DraftChain | None = None  # ... and chains of drafts, where the model makes some

    @property
    def is_capturable(self) -> bool:
        """Whether its passes can be CUDA graphs: it has the kernels in which nothing waits for the device."""
        return self.device.type == "cuda" and self.ops.name != "torch"

    @property
    def pool(self) -> PagePool:
        """The page pool of all this model's caches, made on first use."""
        if self._pool is None:
            tokens = self.engine.kv_tokens or self.config.most_kv_tokens
            pages = -(-tokens // self.engine.page_size)
            kv_dtype = torch.float32 if self.device.type == "cpu" else self.dtype
            self._pool = PagePool(self.config, pages, self.engine.page_size, self.device, kv_dtype)
        return self._pool

    def new_cache(self) -> KVCache:
        """An empty cache on the model's pool."""
        return KVCache(self.pool, self.config.max_positions)

    @torch.inference_mode()
    def forward(
        self, tokens: Tensor, positions: Tensor, cache: KVCache, mask: Tensor | None = None, taps: Sequence[int] = ()
    ) -> Hidden:
        """Runs M rows after the cache's length, and appends their keys and values to it.

        tokens, positions: [M] int64. mask: None where the rows are a chain, else [M, M] bool: row i sees row j (itself
        included). taps: layers whose output to return, counted from 0. If it raises, the cache's length has not moved.
        """
        base, rows = cache.length, tokens.shape[0]
        slots = cache.reserve(rows)
        tapped = self.new_taps(rows, taps)
        last = self.layers(tokens, self._rope_rows(positions), cache.pool, slots, cache.table, base, mask, taps, tapped)
        cache.advance(rows)
        return Hidden(last, tapped)

    def layers(
        self,
        tokens: Tensor,
        rope: tuple[Tensor, Tensor],
        pool: PagePool,
        slots: Tensor,
        table: Tensor,
        base: int | Tensor,
        mask: Tensor | None,
        taps: Sequence[int] = (),
        tapped: Tensor | None = None,
    ) -> Tensor:
        """The pass itself: tokens [M], rope: cos and sin [M, D/2] of their positions, the others as `ops.attention`
        takes them -> [M, H] after the final norm. What the layers `taps` give goes into tapped [M, T, H]."""
        c, ops = self.config, self.ops
        x = functional.embedding(tokens, self.weights.embedding).to(self.dtype)
        delta: Tensor | None = None
        for number, (layer, (k_cache, v_cache)) in enumerate(zip(self.weights.layers, pool.layers, strict=True)):
            normed = ops.add_rms_norm(x, delta, layer.input_norm, c.rms_norm_eps)
            if tapped is not None and number - 1 in taps:
                tapped[:, taps.index(number - 1)] = x
            qkv = ops.projection(normed, layer.qkv, layer.qkv_bias)
            q = ops.qk_norm_rope_store(qkv, layer.qk_norms, c.rms_norm_eps, rope, slots, k_cache, v_cache)
            mixed = ops.attention(q, k_cache, v_cache, table, pool.page_size, base, mask)
            delta = ops.projection(mixed.view(len(mixed), -1), layer.o)
            normed = ops.add_rms_norm(x, delta, layer.post_norm, c.rms_norm_eps)
            delta = ops.projection(ops.gated(normed, layer.gate_up), layer.down)
        last = ops.add_rms_norm(x, delta, self.weights.norm, c.rms_norm_eps)
        if tapped is not None and c.num_layers - 1 in taps:
            tapped[:, taps.index(c.num_layers - 1)] = x
        return last

    def new_taps(self, rows: int, taps: Sequence[int]) -> Tensor | None:
        """[rows, T, H] for what the layers `taps` give; None where there are none."""
        if not taps:
            return None
        return torch.empty(rows, len(taps), self.config.hidden_size, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def logits(self, last: Tensor) -> Tensor:
        """[M, H] -> [M, vocab_limit] float32."""
        return self.head(last).float()

    def head(self, last: Tensor) -> Tensor:
        """`logits` in the model's own type, which holds all that there is to them."""
        return self.ops.linear(last, self._head)

    @torch.inference_mode()
    def embed(self, tokens: Tensor) -> Tensor:
        """[M] -> [M, H], rows of the embedding matrix."""
        return functional.embedding(tokens, self.weights.embedding).to(self.dtype)

    def _rope_rows(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        top = int(positions.max()) + 1 if positions.device.type == "cpu" else self.config.max_positions
        if top > self.config.max_positions:
            raise ContextOverflow(f"position {top - 1} lies beyond the model's context of {self.config.max_positions}")
        if top > self._rope[0].shape[0]:
            self.rope(min(2 * top, self.config.max_positions))
        return self._rope[0][positions], self._rope[1][positions]

    def rope(self, positions: int) -> tuple[Tensor, Tensor]:
        """The rotary tables, cos and sin [P, D/2] float32, of so many positions or more."""
        if positions > self._rope[0].shape[0]:
            self._rope = operations.rope_tables(self.config.rope_theta, self.config.head_dim, positions, self.device)
        return self._rope
