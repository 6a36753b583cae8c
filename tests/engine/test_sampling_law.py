"""Drawn tokens follow the softmax, positions know nothing of each other; and each check fails on a planted fault.

Every figure is fixed by its seeds: a test passes always or never. A right sampler's p-value is uniform, so a bound of
1e-3 leaves no doubt on one side; the planted faults are larger than what 1e-6 needs on the other.
"""

from collections.abc import Callable

import pytest
import torch
from law import counted, p_value
from torch import Tensor

from specd.engine import SamplingParams
from specd.engine.sampling import ACCEPT, DRAFT, RESIDUAL, TARGET, counter_bits, draw, gumbel, probabilities, uniform

LAWS = {
    "softmax": SamplingParams(1.0),
    "hot": SamplingParams(2.0),
    "cold": SamplingParams(0.4),
    "top-k": SamplingParams(1.0, top_k=5),
    "top-p": SamplingParams(1.0, top_p=0.8),
    "min-p": SamplingParams(0.8, min_p=0.1),
    "all": SamplingParams(0.9, top_k=8, top_p=0.95, min_p=0.02),
}
LOGITS = torch.randn(1, 12, generator=torch.Generator().manual_seed(5)) * 0.8


def over_positions(logits: Tensor, params: SamplingParams, seeds: int = 40, rows: int = 1000) -> Tensor:
    """Draws of one row of logits: many positions of each of many seeds."""
    many = logits.expand(rows, -1)
    positions = torch.arange(rows)
    drawn = [
        draw(many, positions, SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p, seed))
        for seed in range(seeds)
    ]
    return torch.cat(drawn)


@pytest.mark.parametrize("name", LAWS)
def test_the_sampled_law_is_the_softmax_and_a_planted_bias_is_seen(name: str) -> None:
    params = LAWS[name]
    law = probabilities(LOGITS, params)[0]
    by_hand = (LOGITS[0].double() / params.temperature).softmax(dim=0).masked_fill(law == 0, 0.0)
    assert torch.allclose(law.double(), by_hand / by_hand.sum(), atol=1e-6)
    assert p_value(counted(over_positions(LOGITS, params), 12), law) > 1e-3
    biased = LOGITS.clone()
    biased[0, LOGITS.argmax()] += 0.15 * params.temperature  # exp(0.15): its weight 16 % too high
    assert p_value(counted(over_positions(biased, params), 12), law) < 1e-6


def test_the_law_holds_over_seeds_at_one_position_too() -> None:
    law = probabilities(LOGITS, SamplingParams(1.0))[0]
    drawn = [draw(LOGITS, torch.tensor([77]), SamplingParams(1.0, seed=seed)) for seed in range(3000)]
    assert p_value(counted(torch.cat(drawn), 12), law) > 1e-3
    biased = LOGITS.clone()
    biased[0, 3] += 0.4
    drawn = [draw(biased, torch.tensor([77]), SamplingParams(1.0, seed=seed)) for seed in range(3000)]
    assert p_value(counted(torch.cat(drawn), 12), law) < 1e-6


Pairs = Callable[[Tensor], tuple[Tensor, Tensor]]


def joint_p_value(first: Tensor, second: Tensor, law: Tensor) -> float:
    """Whether pairs of draws come from the product of their laws."""
    n = len(law)
    return p_value(counted(first * n + second, n * n), (law[:, None] * law[None, :]).flatten())


@pytest.mark.parametrize("apart", [1, 2, 64, 4096])
def test_positions_are_independent(apart: int) -> None:
    params = SamplingParams(1.0, seed=apart)
    law = probabilities(LOGITS, params)[0]
    rows = 30000
    positions = torch.arange(rows)
    many = LOGITS.expand(rows, -1)
    first, second = draw(many, positions, params), draw(many, positions + apart, params)
    assert joint_p_value(first, second, law) > 1e-3
    # planted: one position in 20 draws what its neighbour drew
    repeated = torch.where(positions % 20 == 0, first, second)
    assert joint_p_value(first, repeated, law) < 1e-6


@pytest.mark.parametrize("other", [DRAFT, ACCEPT, RESIDUAL])
def test_streams_and_seeds_are_independent(other: int) -> None:
    rows = 30000
    positions, many = torch.arange(rows), LOGITS.expand(rows, -1)
    law = probabilities(LOGITS, SamplingParams(1.0))[0]
    first = draw(many, positions, SamplingParams(1.0, seed=9), stream=TARGET)
    assert joint_p_value(first, draw(many, positions, SamplingParams(1.0, seed=9), stream=other), law) > 1e-3
    for seed in (10, -9, 9 + 2**32, 9 + (0x9E3779B9 * other)):
        assert joint_p_value(first, draw(many, positions, SamplingParams(1.0, seed=seed)), law) > 1e-3


def test_the_words_are_uniform_in_every_bit_and_pair_of_neighbours() -> None:
    positions, tokens = torch.arange(512)[:, None], torch.arange(2048)[None, :]
    words = counter_bits(3, TARGET, positions, tokens)
    flat = torch.full((256,), 1 / 256)
    for shift in (0, 8, 16, 24):
        byte = (words >> shift) & 0xFF
        assert p_value(counted(byte, 256), flat) > 1e-3
        # neighbours: the next token, the next position, both
        for a, b in ((byte[:, :-1], byte[:, 1:]), (byte[:-1], byte[1:]), (byte[:-1, :-1], byte[1:, 1:])):
            pairs = (a // 16) * 16 + b // 16
            assert p_value(counted(pairs, 256), flat) > 1e-3
            assert p_value(counted((a ^ b) & 0xFF, 256), flat) > 1e-3


def winners(bits: Tensor) -> Tensor:
    """[rows] ids of the largest noise, all logits being equal."""
    return gumbel(bits).argmax(dim=1)


@pytest.mark.parametrize(("kept_bits", "is_fine"), [(32, True), (12, False)])
def test_among_150_000_equal_tokens_each_wins_equally_often(kept_bits: int, is_fine: bool) -> None:
    """Noise from too few bits has ties at its top, and ties go to low ids."""
    vocab, buckets = 151_669, 16
    ids = torch.arange(vocab)[None, :]
    won = torch.cat(
        [
            winners(
                counter_bits(1, TARGET, torch.arange(at, at + 20)[:, None], ids) >> (32 - kept_bits) << (32 - kept_bits)
            )
            for at in range(0, 600, 20)
        ]
    )
    found = p_value(counted(won * buckets // vocab, buckets), torch.full((buckets,), 1 / buckets))
    assert found > 1e-3 if is_fine else found < 1e-6


def test_the_upper_tail_of_the_noise_is_as_heavy_as_a_gumbel_laws() -> None:
    draws, least, most = 2**24, 9.0, 17.0
    noise = torch.cat(
        [
            gumbel(counter_bits(5, TARGET, torch.arange(at, at + 16)[:, None], torch.arange(2**16)[None, :])).flatten()
            for at in range(0, 256, 16)
        ]
    )
    edges = torch.arange(least, most)
    above = torch.tensor([int((noise > edge).sum()) for edge in edges.tolist()])
    counts = torch.cat((above[:-1] - above[1:], above[-1:], draws - above[:1]))
    over = -torch.expm1(-torch.exp(-edges.double()))
    law = torch.cat((over[:-1] - over[1:], over[-1:], 1 - over[:1]))
    assert p_value(counts, law) > 1e-3
    assert float(noise.max()) > 14.0


def test_uniform_numbers_are_never_0_or_1() -> None:
    edge = uniform(torch.tensor([0, -1], dtype=torch.int32))
    assert edge.tolist() == [2.0**-33, 1 - 2.0**-33]
