"""The DFlash drafter's two passes: context rows from the target's taps, and a block of drafts from the context.

A small stack of Qwen3-like layers. Every committed position gives one feature vector, made of several of the target's
layers; each drafter layer turns it into a key and a value. A block is the newest token (the anchor) and B-1 mask
tokens; one pass fills the masks in, row i with the token at its own position. Embedding and head are the target's.
Method: DFlash (arXiv 2602.06036); format and arithmetic: z-lab's released checkpoints and code.
"""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from specd.engine import ops as operations
from specd.engine.kv_cache import LONGEST_READ, KVCache, PagePool
from specd.engine.load import capture, resolve
from specd.engine.model import Qwen3
from specd.engine.propose.dflash_config import DFlashConfig, dflash_config
from specd.engine.propose.dflash_context import DFlashContext
from specd.engine.propose.dflash_weights import DFlashWeights, read_weights
from specd.engine.weights import TensorFolder

if TYPE_CHECKING:
    from specd.engine.propose.dflash_step import DFlashStep

log = logging.getLogger(__name__)

_SPARE_PAGES = 32  # for the blocks of jobs under way: a block stands after its context


class DFlashDrafter:
    """A loaded drafter and the target it drafts for; shared by all jobs. The state of a job is a DFlashContext."""

    def __init__(self, config: DFlashConfig, weights: DFlashWeights, model: Qwen3) -> None:
        self.config, self.weights, self.model = config, weights, model
        self.device, self.dtype = weights.norm.device, weights.norm.dtype
        self.ops = operations.for_device(self.device, self.dtype)
        self._rope = operations.rope_tables(config.rope_theta, config.head_dim, 1024, self.device)
        self._pool: PagePool | None = None
        self.steps: DFlashStep | None = None  # passes of fixed shape, where the device runs them faster

    @property
    def pool(self) -> PagePool:
        """The page pool of all contexts, for as many tokens as the target's; made on first use."""
        if self._pool is None:
            target = self.model.pool
            kind = torch.float32 if self.device.type == "cpu" else self.dtype
            self._pool = PagePool(self.config, target.pages + _SPARE_PAGES, target.page_size, self.device, kind)
        return self._pool

    def new_context(self) -> DFlashContext:
        """An empty context on the drafter's pool."""
        return DFlashContext(KVCache(self.pool, self.config.max_positions + self.config.block_size))

    @torch.inference_mode()
    def features(self, taps: Tensor) -> Tensor:
        """taps [n, K, H], the target's layers in the order of target_layer_ids -> [n, H], what every layer's context
        keys and values are made of."""
        taps = taps.to(self.dtype)
        top = self.model.config.num_layers - 1
        if top in self.config.target_layer_ids:  # the reference reads that layer's output after the final norm
            place = self.config.target_layer_ids.index(top)
            taps = taps.clone()
            norm = self.model.weights.norm.to(self.dtype)
            taps[:, place] = operations.rms_norm(taps[:, place], norm, self.model.config.rms_norm_eps)
        joined = self.ops.projection(taps.reshape(taps.shape[0], -1), self.weights.fc)
        nothing = taps.new_zeros(taps.shape[0], self.weights.fc.shape[0])
        return self.ops.add_rms_norm(nothing, joined, self.weights.hidden_norm, self.config.rms_norm_eps)

    @torch.inference_mode()
    def ingest(self, context: DFlashContext, position: int, taps: Tensor) -> None:
        """Puts positions position..position+n-1 into the context: taps [n, K, H]. Whatever it held from there on is
        forgotten first. Raises OutOfMemory; the context then ends before `position`."""
        c = self.config
        taps = taps[: max(c.max_positions - position, 0)]
        n = taps.shape[0]
        if n == 0:
            return
        if self.steps is not None and n <= LONGEST_READ:
            self.steps.take_in(context, position, taps)
            return
        with context.append(position, n) as slots:
            self.write_context(taps, self._rope_rows(position, n), slots, context.cache.pool)

    def write_context(self, taps: Tensor, rope: tuple[Tensor, Tensor], slots: Tensor, pool: PagePool) -> None:
        """Context keys and values of taps [n, K, H] at the positions of rope ([n, D/2] each), into cache rows slots."""
        c = self.config
        features = self.features(taps)
        queries = c.num_heads * c.head_dim
        for layer, (k_cache, v_cache) in zip(self.weights.layers, pool.layers, strict=True):
            bias = None if layer.qkv_bias is None else layer.qkv_bias[queries:]
            kv = self.ops.projection(features, layer.qkv[queries:], bias)  # the block's own k and v weights
            self.ops.qk_norm_rope_store(kv, layer.qk_norms, c.rms_norm_eps, rope, slots, k_cache, v_cache)

    @torch.inference_mode()
    def block(self, context: DFlashContext, anchor: int, start: int, rows: int) -> Tensor:
        """One pass over [anchor, mask, ...] at positions start..start+rows-1 -> [rows, H] after the final norm; row 0
        is the anchor's and predicts nothing. The context must end at or before start and is left as it was."""
        tokens = torch.full((rows,), self.config.mask_token_id, device=self.device)
        tokens[0] = anchor
        spans, stop = self._spans(context, start, rows), context.rows + rows
        with context.scratch(rows) as slots:
            cache = context.cache
            return self.fill_in(tokens, self._rope_rows(start, rows), slots, cache.pool, cache.table, spans, stop)

    def fill_in(
        self,
        tokens: Tensor,
        rope: tuple[Tensor, Tensor],
        slots: Tensor,
        pool: PagePool,
        table: Tensor,
        spans: list[tuple[int | Tensor, Tensor | None]],
        stop: int | Tensor,
    ) -> Tensor:
        """The pass of `block`: tokens [rows], their rope rows and cache rows, and per layer what `ops.span_attention`
        takes as start and spans -> [rows, H]."""
        c, ops = self.config, self.ops
        x = self.model.embed(tokens).to(self.dtype)
        if c.embedding_scale != 1.0:
            x = x * c.embedding_scale
        delta: Tensor | None = None
        for number, (layer, (first, visible)) in enumerate(zip(self.weights.layers, spans, strict=True)):
            k_cache, v_cache = pool.layers[number]
            normed = ops.add_rms_norm(x, delta, layer.input_norm, c.rms_norm_eps)
            qkv = ops.projection(normed, layer.qkv, layer.qkv_bias)
            q = ops.qk_norm_rope_store(qkv, layer.qk_norms, c.rms_norm_eps, rope, slots, k_cache, v_cache)
            mixed = ops.span_attention(q, k_cache, v_cache, table, pool.page_size, first, stop, visible)
            delta = ops.projection(mixed.view(len(mixed), -1), layer.o, self.weights.o_biases[number])
            normed = ops.add_rms_norm(x, delta, layer.post_norm, c.rms_norm_eps)
            delta = ops.projection(ops.gated(normed, layer.gate_up), layer.down)
        return ops.add_rms_norm(x, delta, self.weights.norm, c.rms_norm_eps)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[n, H] -> [n, vocab_limit] float32 by the target's head, without the ids that the tokenizer does not know."""
        logits = self.model.logits(hidden.to(self.model.dtype)) * self.config.output_multiplier
        cap = self.config.softcap
        return logits if cap is None else torch.tanh(logits / cap) * cap

    @torch.inference_mode()
    def scores(self, hidden: Tensor) -> Tensor:
        """What `logits` has its largest value of a row at; in the model's own type where nothing is done to them."""
        if self.config.output_multiplier != 1.0 or self.config.softcap is not None:
            return self.logits(hidden)
        return self.model.head(hidden.to(self.model.dtype))

    def _spans(self, context: DFlashContext, start: int, rows: int) -> list[tuple[int | Tensor, Tensor | None]]:
        """Per layer the first cache row that any of the block sees, and what each sees of those from there on."""
        found: dict[tuple[int | None, bool], tuple[int | Tensor, Tensor | None]] = {}
        base = context.rows

        def span(position: int, window: int | None, causal: bool) -> tuple[int, int]:
            first = 0 if window is None else position - window + 1
            last = position if causal else start + rows - 1 if window is None else position + window - 1
            low = base + first - start if first > start else context.place(max(first, 0))
            return low, base + min(last - start + 1, rows)

        for kind in zip(self.config.windows, self.config.is_causal, strict=True):
            if kind not in found:
                limits = [span(position, *kind) for position in range(start, start + rows)]
                everything = kind == (None, False)
                visible = None if everything else torch.tensor(limits, device=self.device)
                found[kind] = (limits[0][0], visible)
        return [found[kind] for kind in zip(self.config.windows, self.config.is_causal, strict=True)]

    def _rope_rows(self, position: int, n: int) -> tuple[Tensor, Tensor]:
        """cos and sin [n, D / 2] of positions position..position+n-1."""
        cosine, sine = self.rope(position + n)
        return cosine[position : position + n], sine[position : position + n]

    def rope(self, positions: int) -> tuple[Tensor, Tensor]:
        """The rotary tables, cos and sin [P, D/2] float32, of so many positions or more."""
        if positions > self._rope[0].shape[0]:
            c = self.config
            self._rope = operations.rope_tables(c.rope_theta, c.head_dim, 2 * positions, self.device)
        return self._rope


def load_dflash(name: str | Path, model: Qwen3) -> DFlashDrafter:
    """A drafter from a folder or hub name, for `model`, on its device. Raises ModelError that says what is wrong."""
    folder = resolve(name)
    config = dflash_config(folder, model.config)
    with ExitStack() as stack:
        weights = read_weights(TensorFolder(folder, stack), config, model)
    capture(model, config.target_layer_ids)
    drafter = DFlashDrafter(config, weights, model)
    capture_drafter(drafter)
    return drafter


def capture_drafter(drafter: DFlashDrafter) -> None:
    """Has the drafter run its passes as CUDA graphs, where its target does."""
    from specd.engine.propose import dflash_step  # it knows the drafter

    if drafter.model.steps is not None and drafter.device.type == "cuda":
        try:
            dflash_step.capture(drafter)
        except RuntimeError as error:  # drafts are a help, never a reason not to start
            log.warning("the DFlash drafter runs without graphs, more slowly: %s", error)
