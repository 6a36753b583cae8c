"""One token per row, as a function of (logits, seed, position) and of nothing else.

The noise is Gumbel noise from a counter: a hash of (seed, stream, absolute position, token id). The token at a position
is argmax(logits / T + noise) over the tokens that top-k, min-p and top-p leave: a draw from their softmax (the
Gumbel-max trick), and the same draw whether the position is computed alone or as one row of a verify step. So
speculation that accepts a draft exactly when it equals this token changes no output at all (drafter-invariant
speculative decoding, Daliri, Musco and Suresh, arXiv 2408.07978). Drafts are no matter of this file.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Literal

import torch
from torch import Tensor

from specd.engine.errors import NonFiniteLogits

NOT_FINITE = "the model produced NaN or infinite logits: try float32, or check the weights"
AcceptRule = Literal["exact", "rejection"]

# Uses of one seed whose noise never meets: the target's own tokens, drafts sampled for the rejection rule, that rule's
# acceptances, and what it draws in the place of a rejected draft.
TARGET, DRAFT, ACCEPT, RESIDUAL = range(4)

_COLDEST = 1e-5  # a lower temperature is greedy: logits / T would overflow float32
_WEIGHT_BITS = 40  # of the whole numbers in which top-p adds up probabilities


_FIELDS = (
    ("temperature", Real, "a number in 0..100"),
    ("top_k", Integral, "a whole number, 0 or more"),
    ("top_p", Real, "a number in (0, 1]"),
    ("min_p", Real, "a number in 0..1"),
    ("seed", Integral, "a whole number"),
)


@dataclass(frozen=True)
class SamplingParams:
    """temperature below 1e-5 is greedy. top_k 0, top_p 1 and min_p 0 are off. seed: any whole number."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind, what in _FIELDS:
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError(f"{name} must be {what}, found {value!r}")
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
        return self.temperature < _COLDEST


@lru_cache(maxsize=64)
def noise_key(seed: int, stream: int) -> tuple[int, int]:
    """Two 32-bit words for a seed (any whole number, its sign included) and a stream."""
    digest = hashlib.blake2b(f"{stream}:{seed}".encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def signed(value: int) -> int:
    """A 32-bit word as the signed number that int32 arithmetic, which wraps around, takes it for."""
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words (int32) that spreads every bit: the finaliser of MurmurHash3."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * signed(0x85EBCA6B)
    x = (x ^ ((x >> 13) & 0x7FFFF)) * signed(0xC2B2AE35)
    return x ^ ((x >> 16) & 0xFFFF)


def counter_bits(seed: int, stream: int, positions: Tensor, tokens: Tensor) -> Tensor:
    """32 random bits (int32, all of its values) for every (position, token): positions and tokens below 2^31 broadcast.

    At one position no two tokens have the same bits; two positions of a seed have unrelated ones.
    """
    return keyed_bits(noise_key(seed, stream), positions, tokens)


def keyed_bits(key: tuple[int, int], positions: Tensor, tokens: Tensor) -> Tensor:
    """`counter_bits` by the two words of a `noise_key`."""
    first, second = key
    row = _mix(positions.int() * signed(0x9E3779B1) + signed(first))
    inner = _mix(tokens.int() * signed(0x85EBCA77) + row)
    return _mix(inner + _mix(row + signed(second)))


def uniform(bits: Tensor) -> Tensor:
    """Float64 in the open interval (0, 1) from 32 random bits, read as an unsigned word."""
    return ((bits.long() & 0xFFFFFFFF).double() + 0.5) * 2.0**-32


def gumbel(bits: Tensor) -> Tensor:
    """Standard Gumbel noise, float32, from 32 random bits. All of them count: its upper tail, which decides among many
    tokens, comes from words near 0, where neighbouring values lie far closer than a vocabulary's draws."""
    return (-torch.log(-torch.log1p(-uniform(bits)))).float()


def adjusted(logits: Tensor, params: SamplingParams) -> Tensor:
    """[M, V] float32 (logits - the row's largest) / T, and -inf where top-k, min-p or top-p exclude a token.

    In that order, each on what the one before left; ties at a border stay in, so the likeliest token always does.
    Every row's result is its own: top-p adds up in whole numbers, whose sum no order changes. Not for greedy params.
    """
    scaled = (logits - logits.amax(dim=-1, keepdim=True)) / params.temperature
    if params.top_k and params.top_k < scaled.shape[-1]:
        border = scaled.topk(params.top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < border, -torch.inf)
    if params.min_p > 0.0:
        scaled = scaled.masked_fill(scaled < math.log(params.min_p), -torch.inf)
    if params.top_p < 1.0:
        ordered = _descending(scaled)
        weights = (ordered.double().exp() * 2.0**_WEIGHT_BITS).long()
        sums = weights.cumsum(dim=-1)
        nucleus = ((sums - weights).double() < params.top_p * sums[:, -1:].double()).sum(dim=-1, keepdim=True)
        scaled = scaled.masked_fill(scaled < ordered.gather(-1, nucleus.clamp(min=1) - 1), -torch.inf)
    return scaled


def _descending(scaled: Tensor) -> Tensor:
    """The rows in descending order; on a CPU only as far as any value counts in top-p's sums, which is far cheaper."""
    if scaled.device.type != "cpu":
        return scaled.sort(dim=-1, descending=True).values
    count = int((scaled > -(_WEIGHT_BITS + 1) * math.log(2.0)).sum(dim=-1).max())
    return scaled.topk(max(count, 1), dim=-1).values


def probabilities(logits: Tensor, params: SamplingParams) -> Tensor:
    """[M, V] float32: the law that `draw` draws each row from. One-hot (at the lowest id of a tie) where greedy."""
    if params.greedy:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(dim=-1, keepdim=True), 1.0)
    return adjusted(logits, params).softmax(dim=-1)


def check_finite(logits: Tensor) -> None:
    """Raises NonFiniteLogits if a row holds NaN or +inf, or nothing but -inf."""
    top = logits.amax(dim=-1)
    if not bool(torch.isfinite(top).all()):
        raise NonFiniteLogits(NOT_FINITE)


@torch.inference_mode()
def draw(logits: Tensor, positions: Tensor, params: SamplingParams, *, stream: int = TARGET) -> Tensor:
    """`sample` without its check: on an accelerator nothing waits for the device. NaN logits give some token."""
    return draw_keyed(logits, positions, params, noise_key(params.seed, stream))


def draw_keyed(logits: Tensor, positions: Tensor, params: SamplingParams, key: tuple[int, int]) -> Tensor:
    """`draw` by the two words of a `noise_key` in place of the seed and the stream."""
    if params.greedy:
        return logits.argmax(dim=-1)
    scaled = adjusted(logits, params)
    ids = torch.arange(scaled.shape[-1], dtype=torch.int32, device=scaled.device)[None, :]
    bits = keyed_bits(key, positions[:, None], ids)
    if scaled.device.type == "cpu":
        return _argmax_noisy(scaled, bits)
    return (scaled + gumbel(bits)).argmax(dim=-1)


def _argmax_noisy(scaled: Tensor, bits: Tensor) -> Tensor:
    """argmax(scaled + gumbel(bits)) per row: the logarithms, most of the cost, only of tokens that can win.

    Noise of g or more takes a uniform number below e^-g, and the winner's noise is at least what the likeliest token
    reaches less the winner's own logit. A word that is not negative is a uniform number below 1/2.
    """
    likeliest = scaled.argmax(dim=-1, keepdim=True)
    reached = scaled.gather(-1, likeliest) + gumbel(bits.gather(-1, likeliest))
    limit = (scaled - reached).exp() * 1.001  # the margin is far above any rounding
    able = ((bits >= 0) & (bits <= limit * 2.0**32)) | (limit >= 0.5)
    rows, ids = able.nonzero(as_tuple=True)
    noisy = torch.full_like(scaled, -torch.inf)
    noisy[rows, ids] = scaled[rows, ids] + gumbel(bits[rows, ids])
    return noisy.argmax(dim=-1)


@torch.inference_mode()
def sample(logits: Tensor, positions: Tensor, params: SamplingParams, *, stream: int = TARGET) -> Tensor:
    """logits [M, V] float32, positions [M] int64 (of the tokens to be drawn) -> [M] int64. Ties go to the lowest id.

    stream: one of TARGET, DRAFT, ACCEPT, RESIDUAL. Raises NonFiniteLogits.
    """
    check_finite(logits)
    return draw(logits, positions, params, stream=stream)
