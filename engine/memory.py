"""What a model takes of an accelerator's memory, counted from the configs before any of it is asked for.

The page pool gets what the weights, the drafters, the steps' own memory and the runtime leave, and never more than was
wanted. Where that is too little the load is refused, with the figures, instead of failing half-way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from specd.engine.config import ModelConfig
from specd.engine.errors import OutOfMemory
from specd.engine.kv_cache import LONGEST_READ, LONGEST_STEP, Sizes

GIB = 2**30
_RUNTIME = 512 << 20  # CUDA's context, loaded kernels, what the allocators round up to
_SPLIT = 256  # keys of one partial result of attention
_LEAST = 4096  # tokens of context below which a model is of no use for edits


class Layers(Sizes, Protocol):
    """The part of a config that a stack's weights depend on."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    @property
    def intermediate_size(self) -> int: ...


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes. per_token: keys and values of a position, the drafters' included. steps: what a prefill chunk and the
    widest step have in hand at once, beside steps_per_token for each token of context."""

    weights: int
    drafters: int
    per_token: int
    steps: int
    steps_per_token: int
    runtime: int = _RUNTIME

    def needed(self, tokens: int) -> int:
        """Bytes with a page pool of so many tokens."""
        fixed = self.weights + self.drafters + self.steps + self.runtime
        return fixed + tokens * (self.per_token + self.steps_per_token)

    def fitting(self, available: int) -> int:
        """Tokens that a page pool can have in so many bytes; 0 or less where not even the rest fits."""
        return (available - self.needed(0)) // (self.per_token + self.steps_per_token)

    def tokens(self, available: int, wanted: int | None, most: int) -> int:
        """The page pool's size: `wanted`, or what fits of `most`. Raises OutOfMemory with the figures."""
        fits = self.fitting(available)
        least = wanted or min(most, _LEAST)
        if fits >= least:
            return wanted or min(most, fits)
        drafters = f", drafters {self.drafters / GIB:.1f}" if self.drafters else ""
        rest = (self.steps + self.runtime + least * self.steps_per_token) / GIB
        hint = f"ask for at most {fits} tokens (kv_tokens), or " if fits >= _LEAST else ""
        raise OutOfMemory(
            f"{self.needed(least) / GIB:.1f} GiB are needed and {available / GIB:.1f} are free: weights "
            f"{self.weights / GIB:.1f}{drafters}, keys and values of {least} tokens "
            f"{least * self.per_token / GIB:.1f}, steps {rest:.1f}; {hint}use a smaller model"
        )


def plan(config: ModelConfig, *, item: int = 2, chunk: int = 1024, drafters: Sequence["MemoryPlan"] = ()) -> MemoryPlan:
    """The plan of a target in a type of `item` bytes that prefills `chunk` rows at once, with its drafters' plans."""
    c = config
    embedding = c.vocab_size * c.hidden_size * (1 if c.tie_embeddings else 2)
    rotary = 8 * (c.max_positions + LONGEST_READ) * c.head_dim // 2
    rows = max(chunk, LONGEST_STEP)
    queries = c.num_heads * c.head_dim
    row = 2 * c.intermediate_size + 2 * queries + 2 * c.num_kv_heads * c.head_dim + 8 * c.hidden_size
    logits = LONGEST_STEP * c.vocab_size * (item + 4)
    return MemoryPlan(
        weights=item * (embedding + stack_elements(c)) + rotary,
        drafters=sum(other.weights for other in drafters),
        per_token=kv_bytes(c, item) + sum(other.per_token for other in drafters),
        steps=rows * row * 4 + logits + sum(other.steps for other in drafters),
        steps_per_token=LONGEST_STEP * queries * 4 // _SPLIT,
    )


def drafter_plan(config: Layers, taps: int, *, item: int = 2) -> MemoryPlan:
    """Of a DFlash drafter: it has neither embedding nor head, but a matrix for the taps."""
    weights = item * (stack_elements(config) + taps * config.hidden_size**2)
    return MemoryPlan(weights, 0, kv_bytes(config, item), LONGEST_STEP * taps * config.hidden_size * item, 0, 0)


def kv_bytes(config: Sizes, item: int) -> int:
    """Keys and values of one position."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * item


def stack_elements(config: Layers) -> int:
    """Weights of all layers, norms left out."""
    c = config
    attention = (2 * c.num_heads + 2 * c.num_kv_heads) * c.head_dim * c.hidden_size
    return c.num_layers * (attention + 3 * c.intermediate_size * c.hidden_size)
