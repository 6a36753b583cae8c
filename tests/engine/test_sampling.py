"""What a drawn token may depend on, and which tokens can be drawn."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from specd.engine import NonFiniteLogits, SamplingParams
from specd.engine.sampling import (
    ACCEPT,
    DRAFT,
    RESIDUAL,
    TARGET,
    _argmax_noisy,
    adjusted,
    counter_bits,
    draw,
    gumbel,
    noise_key,
    probabilities,
    sample,
    uniform,
)

PARAMS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 1e-7, 1e-5, 0.01, 0.3, 0.8, 1.0, 1.7, 100.0]),
    top_k=st.sampled_from([0, 1, 2, 5, 1000]),
    top_p=st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.999999, 1.0]),
    min_p=st.sampled_from([0.0, 1e-6, 0.1, 0.7, 1.0]),
    seed=st.integers(-(2**70), 2**70),
)


@st.composite
def logit_rows(draw_: st.DrawFn, low: int = 1, high: int = 6) -> Tensor:
    """[M, V] float32 of some scale, with ties and -inf among them."""
    rows, vocab = draw_(st.integers(low, high)), draw_(st.integers(1, 40))
    made = torch.Generator().manual_seed(draw_(st.integers(0, 2**32)))
    logits = torch.randn(rows, vocab, generator=made) * draw_(st.sampled_from([0.01, 1.0, 5.0, 40.0]))
    if draw_(st.booleans()):
        logits = logits.round()
    if draw_(st.booleans()):
        banned = torch.rand(rows, vocab, generator=made) < 0.4
        banned.scatter_(1, logits.argmax(dim=1, keepdim=True), False)
        logits = logits.masked_fill(banned, -math.inf)
    return logits


@given(logit_rows(low=2), PARAMS, st.data())
def test_a_row_is_drawn_alike_alone_and_among_any_others(
    logits: Tensor, params: SamplingParams, data: st.DataObject
) -> None:
    place = st.integers(0, 10**6)
    positions = torch.tensor(data.draw(st.lists(place, min_size=len(logits), max_size=len(logits))))
    together = sample(logits, positions, params)
    alone = [int(sample(logits[i : i + 1], positions[i : i + 1], params)) for i in range(len(logits))]
    assert together.tolist() == alone
    order = torch.tensor(data.draw(st.permutations(range(len(logits)))))
    assert sample(logits[order], positions[order], params).tolist() == [alone[i] for i in order.tolist()]


def allowed(row: list[float], params: SamplingParams) -> set[int]:
    """The definition, a token at a time: top-k, then min-p, then top-p, ties at a border kept."""
    left = {token: logit for token, logit in enumerate(row) if logit > -math.inf}
    top = max(left.values())
    if params.greedy:
        return {min(token for token, logit in left.items() if logit == top)}
    if params.top_k:
        border = sorted(left.values(), reverse=True)[: params.top_k][-1]
        left = {token: logit for token, logit in left.items() if logit >= border}
    left = {token: math.exp((logit - top) / params.temperature) for token, logit in left.items()}
    left = {token: weight for token, weight in left.items() if weight >= params.min_p}
    if params.top_p >= 1.0:  # off, not a sum that rounds to 1 too early
        return set(left)
    total, before, border = sum(left.values()), 0.0, 1.0
    for weight in sorted(left.values(), reverse=True):
        if before >= params.top_p * total:
            break
        before, border = before + weight, weight
    return {token for token, weight in left.items() if weight >= border}


@settings(deadline=None, max_examples=400)
@given(logit_rows(high=1), PARAMS)
@example(torch.tensor([[7.7050, -1.4671, -10.8939]]), SamplingParams(temperature=0.3))
def test_top_k_min_p_and_top_p_leave_what_their_definition_leaves(logits: Tensor, params: SamplingParams) -> None:
    row = logits[0].tolist()
    found = set((probabilities(logits, params)[0] > 0).nonzero()[:, 0].tolist())
    # float32 against the definition's float64: tokens so near a border that rounding decides, and such as round to 0
    k, p, m = params.top_k, params.top_p, params.min_p
    less = allowed(row, SamplingParams(params.temperature, k, max(1e-9, p * (1 - 1e-5)), min(1.0, m * (1 + 1e-4))))
    more = allowed(row, SamplingParams(params.temperature, k, min(1.0, p * (1 + 1e-5)), m * (1 - 1e-4)))
    if not params.greedy:
        less = {token for token in less if (row[token] - max(row)) / params.temperature > -80}
    assert less <= found <= more
    assert int(logits.argmax()) in found
    drawn = draw(logits.expand(50, -1), torch.arange(50), params)
    assert set(drawn.tolist()) <= found


@given(logit_rows(), st.integers(0, 2**40))
def test_temperature_near_zero_is_greedy_and_ties_go_to_the_lowest_id(logits: Tensor, seed: int) -> None:
    first_best = [row.tolist().index(float(row.max())) for row in logits]
    positions = torch.arange(len(logits))
    for temperature in (0.0, 1e-40, 9.9e-6):
        assert sample(logits, positions, SamplingParams(temperature, seed=seed)).tolist() == first_best
    # just above, it is drawn, and no logit overflows
    cold = sample(logits * 1e30, positions, SamplingParams(1e-5, seed=seed))
    assert logits.gather(1, cold[:, None]).isfinite().all()
    assert (logits.gather(1, cold[:, None])[:, 0] == logits.amax(dim=1)).all()


@given(st.integers(2, 30), st.integers(0, 29), st.integers(1, 2**31 - 1))
def test_equal_scores_go_to_the_lowest_id_in_sampling_too(vocab: int, first: int, word: int) -> None:
    first %= vocab
    scaled = torch.full((1, vocab), -1.0)
    bits = torch.full((1, vocab), -1, dtype=torch.int32)  # the word with the least noise
    scaled[0, first:] = 0.0
    bits[0, first:] = word
    assert int(_argmax_noisy(scaled, bits)) == first


@settings(max_examples=300)
@given(logit_rows(), PARAMS.filter(lambda params: not params.greedy), st.integers(0, 10**6), st.sampled_from(range(4)))
def test_leaving_out_noise_that_cannot_win_changes_nothing(
    logits: Tensor, params: SamplingParams, position: int, stream: int
) -> None:
    positions = torch.arange(position, position + len(logits))
    ids = torch.arange(logits.shape[1])[None, :]
    noise = gumbel(counter_bits(params.seed, stream, positions[:, None], ids))
    by_definition = (adjusted(logits, params) + noise).argmax(dim=1)
    assert torch.equal(draw(logits, positions, params, stream=stream), by_definition)


@given(logit_rows(), PARAMS)
def test_the_law_sums_to_one_and_is_one_hot_where_greedy(logits: Tensor, params: SamplingParams) -> None:
    law = probabilities(logits, params)
    assert torch.allclose(law.sum(dim=1), torch.ones(len(logits)))
    if params.greedy:
        assert ((law == 0) | (law == 1)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(0.8, top_k=3, top_p=0.9)])
def test_nan_and_infinite_logits_are_an_error(bad: float, params: SamplingParams) -> None:
    logits = torch.zeros(3, 8)
    logits[1, 5] = bad
    with pytest.raises(NonFiniteLogits):
        sample(logits, torch.arange(3), params)
    with pytest.raises(NonFiniteLogits):
        sample(torch.full((1, 8), -math.inf), torch.arange(1), params)
    draw(logits, torch.arange(3), params)  # a draft model's are no error: some token comes out


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"temperature": -0.1}, "temperature"), ({"temperature": math.nan}, "temperature"),
        ({"temperature": 101.0}, "temperature"), ({"top_k": -1}, "top_k"), ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"), ({"top_p": math.nan}, "top_p"), ({"min_p": -0.1}, "min_p"),
        ({"min_p": 1.1}, "min_p"),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused_by_name(bad: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SamplingParams(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"top_k": 1.5}, "top_k must be a whole number, 0 or more, found 1.5"),
        ({"top_k": True}, "top_k must be a whole number, 0 or more, found True"),
        ({"seed": 1.5}, "seed must be a whole number, found 1.5"),
        ({"seed": None}, "seed must be a whole number, found None"),
        ({"temperature": "1"}, "temperature must be a number in 0..100, found '1'"),
        ({"temperature": True}, "temperature must be a number in 0..100, found True"),
        ({"top_p": torch.tensor(0.5)}, r"top_p must be a number in \(0, 1\], found tensor"),
        ({"min_p": "a"}, "min_p must be a number in 0..1, found 'a'"),
    ],
)
def test_parameters_of_a_wrong_type_are_refused_by_name(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SamplingParams(**bad)


def test_numbers_of_any_kind_are_parameters() -> None:
    params = SamplingParams(temperature=1, top_k=np.int64(3), top_p=np.float32(0.5), seed=2**70)  # type: ignore[arg-type]
    logits = torch.randn(2, 9)
    assert torch.equal(probabilities(logits, params), probabilities(logits, SamplingParams(1.0, 3, 0.5)))


def murmur(x: int) -> int:
    x = ((x ^ x >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ x >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return x ^ x >> 16


@given(st.integers(), st.sampled_from(range(4)), st.integers(0, 2**31 - 1), st.integers(0, 2**21))
def test_the_hash_is_the_one_that_every_kernel_must_have(seed: int, stream: int, position: int, token: int) -> None:
    first, second = noise_key(seed, stream)
    row = murmur((position * 0x9E3779B1 + first) & 0xFFFFFFFF)
    other = murmur((row + second) & 0xFFFFFFFF)
    word = murmur((murmur((token * 0x85EBCA77 + row) & 0xFFFFFFFF) + other) & 0xFFFFFFFF)
    bits = counter_bits(seed, stream, torch.tensor(position), torch.tensor(token))
    assert int(bits) & 0xFFFFFFFF == word
    assert float(uniform(bits)) == (word + 0.5) / 2**32
    assert float(gumbel(bits)) == pytest.approx(-math.log(-math.log1p(-(word + 0.5) / 2**32)), rel=1e-6, abs=1e-7)


def test_the_noise_of_a_seed_never_changes_between_releases() -> None:
    positions, tokens = torch.tensor([[0], [1], [4095]]), torch.tensor([[0, 1, 151668]])
    words = counter_bits(42, TARGET, positions, tokens).long() & 0xFFFFFFFF
    assert words.tolist() == GOLDEN


GOLDEN = [
    [560160953, 1570304322, 3056709900],
    [3896174758, 1896159704, 1859608116],
    [3526929344, 3044948811, 74861373],
]


def test_seeds_of_any_size_and_sign_and_all_streams_have_keys_of_their_own() -> None:
    seeds = [*range(-300, 300), 2**32, 2**32 + 1, -(2**32), 2**63, 2**64, 2**64 + 1, 10**40, 0x9E3779B9]
    keys = {noise_key(seed, stream) for seed in seeds for stream in (TARGET, DRAFT, ACCEPT, RESIDUAL)}
    assert len(keys) == 4 * len(set(seeds))


def test_all_32_bits_count_up_to_the_noise_of_22() -> None:
    words = torch.tensor([0, 1, 2, 3, 1000, 1001, 2**31 - 1, -(2**30), -2, -1], dtype=torch.int32)  # rising, unsigned
    noise = gumbel(words)
    assert (noise[:-1] > noise[1:]).all()
    assert noise[0] == pytest.approx(33 * math.log(2.0), abs=1e-4)
    assert noise[-1] == pytest.approx(-math.log(33 * math.log(2.0)), abs=1e-4)
