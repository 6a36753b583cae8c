"""One token per row, as a function of (logits, seed, position) and of nothing else.

The noise is Gumbel noise from a counter: a hash of (seed, absolute position, token id). The token at a position is
argmax(logits / T + noise) over the tokens that top-k, top-p and min-p leave: a draw from the softmax (the Gumbel-max
trick), and the same draw whether the position is computed alone or as one row of a verify step. So speculation that
accepts a draft exactly when it equals this token changes no output at all (drafter-invariant speculative decoding,
Daliri, Musco and Suresh, arXiv 2408.07978).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from specd.engine.errors import NonFiniteLogits

_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class SamplingParams:
    """temperature 0 is greedy. top_k 0, top_p 1 and min_p 0 are off. seed: any whole number."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise ValueError(f"temperature must lie in 0..100, found {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k must not be negative, found {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must lie in (0, 1], found {self.top_p}")
        if not 0.0 <= self.min_p <= 1.0:
            raise ValueError(f"min_p must lie in 0..1, found {self.min_p}")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words (in int64) that spreads every bit: the finaliser of MurmurHash3."""
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & _MASK
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & _MASK
    return x ^ (x >> 16)


def counter_bits(seed: int, stream: int, positions: Tensor, tokens: Tensor) -> Tensor:
    """32 random bits for every (position, token): positions [M, 1], tokens [1, V] or [M, n] int64 -> int64.

    `stream` separates uses of one seed: the target's noise, a proposer's, a residual's.
    """
    key = _mix(
        torch.tensor([(seed ^ (seed >> 32)) & _MASK], device=positions.device) + 0x9E3779B9 * (stream + 1) & _MASK
    )
    row = _mix((positions * 0x9E3779B1 + key) & _MASK)
    return _mix((_mix((tokens * 0x85EBCA77 + row) & _MASK) + row) & _MASK)


def gumbel(bits: Tensor) -> Tensor:
    """Standard Gumbel noise, float32, from 32 random bits; its upper tail comes from bits near 0, where a float32
    uniform is finest."""
    uniform = (bits.double() + 0.5) * 2.0**-32
    return (-torch.log(-torch.log1p(-uniform))).float()


def adjusted(logits: Tensor, params: SamplingParams) -> Tensor:
    """[M, V] float32 logits / T with -inf where top-k, min-p or top-p exclude a token, in that order.

    Ties at a border stay in; the most likely token always stays. temperature must not be 0.
    """
    scaled = logits / params.temperature
    if params.top_k and params.top_k < scaled.shape[-1]:
        border = scaled.topk(params.top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < border, -torch.inf)
    if params.min_p > 0.0:
        border = scaled.max(dim=-1, keepdim=True).values + torch.log(torch.tensor(params.min_p))
        scaled = scaled.masked_fill(scaled < border, -torch.inf)
    if params.top_p < 1.0:
        ordered, _ = scaled.sort(dim=-1, descending=True)
        before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
        kept = (before < params.top_p).sum(dim=-1, keepdim=True).clamp(min=1)
        scaled = scaled.masked_fill(scaled < ordered.gather(-1, kept - 1), -torch.inf)
    return scaled


def check_finite(logits: Tensor) -> None:
    """Raises NonFiniteLogits if a row holds NaN or +inf, or nothing but -inf."""
    top = logits.max(dim=-1).values
    if not bool(torch.isfinite(top).all()):
        raise NonFiniteLogits("the model produced NaN or infinite logits: try float32, or check the weights")


@torch.inference_mode()
def sample(logits: Tensor, positions: Tensor, params: SamplingParams, *, stream: int = 0) -> Tensor:
    """logits [M, V] float32, positions [M] int64 (of the tokens to be drawn) -> [M] int64. Ties go to the lowest id."""
    check_finite(logits)
    if params.greedy:
        return logits.argmax(dim=-1)
    scaled = adjusted(logits, params)
    if params.top_k:  # noise for the few that are left
        count = int((scaled > -torch.inf).sum(dim=-1).max())
        values, ids = scaled.topk(count, dim=-1)
        ids, order = ids.sort(dim=-1)  # ascending ids, so that a tie goes to the lowest
        values = values.gather(-1, order)
        noise = gumbel(counter_bits(params.seed, stream, positions[:, None], ids))
        return ids.gather(-1, (values + noise).argmax(dim=-1, keepdim=True))[:, 0]
    ids = torch.arange(scaled.shape[-1], device=scaled.device)[None, :]
    return (scaled + gumbel(counter_bits(params.seed, stream, positions[:, None], ids))).argmax(dim=-1)
