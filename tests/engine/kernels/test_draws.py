"""Drawing and accepting in Triton's interpreter: token for token what sampling.py and choice.py do."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specd.engine.choice import accept as accept_on_host
from specd.engine.sampling import TARGET, SamplingParams, draw, noise_key
from specd.engine.sampling import counter_bits as bits_on_host

sample = pytest.importorskip("specd.engine.kernels.sample", reason="triton is not installed", exc_type=ImportError)
accepting = pytest.importorskip("specd.engine.kernels.accept", reason="triton is not installed", exc_type=ImportError)
triton = pytest.importorskip("triton", reason="triton is not installed")
tl = triton.language
CPU = torch.device("cpu")


def logits_of(rows: int, vocabulary: int = 150, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return (torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(rows)) * 3).to(dtype)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(0.8, seed=5),
        SamplingParams(0.8, top_k=5, seed=7),
        SamplingParams(1.3, top_p=0.7, seed=9),
        SamplingParams(1.1, min_p=0.1, seed=-3),
        SamplingParams(1.1, top_k=40, top_p=0.5, min_p=0.01, seed=3),
    ],
)
def test_the_tokens_are_those_of_sampling(params: SamplingParams) -> None:
    sampler = sample.Sampler(CPU)
    logits, positions = logits_of(3), torch.tensor([0, 9, 4000])
    logits[1, 99] = logits[1].max()  # a tie in bfloat16
    sampler.set(noise_key(params.seed, TARGET), params.temperature, params.top_k, params.top_p, params.min_p)
    assert torch.equal(sampler.choose(logits, positions), draw(logits.float(), positions, params))


def test_a_captured_call_follows_the_parameters_on_the_device() -> None:
    sampler, positions = sample.Sampler(CPU), torch.arange(3)
    logits = logits_of(3, dtype=torch.float32)
    for params in (SamplingParams(0.9, seed=1), SamplingParams(), SamplingParams(0.9, seed=2)):
        sampler.set(noise_key(params.seed, TARGET), params.temperature, params.top_k, params.top_p, params.min_p)
        chosen = sample.choose(logits, positions, sampler.floats, sampler.ints)
        assert torch.equal(chosen, draw(logits, positions, params))


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(1.0, top_k=3, seed=1)])
def test_a_row_that_is_not_finite_gives_no_token(params: SamplingParams) -> None:
    logits = logits_of(5)
    logits[0, 3], logits[1, 70], logits[2] = torch.nan, torch.inf, -torch.inf
    logits[3, 5] = -torch.inf  # one token that is ruled out is no error
    sampler = sample.Sampler(CPU)
    sampler.set(noise_key(params.seed, TARGET), params.temperature, params.top_k, params.top_p, params.min_p)
    chosen = sampler.choose(logits, torch.arange(5))
    assert chosen[:3].tolist() == [-1, -1, -1]
    assert torch.equal(chosen[3:], draw(logits[3:].float(), torch.arange(3, 5), params))


@triton.jit
def _bits_kernel(out_ptr, first, second, position):  # type: ignore[no-untyped-def]
    lane = tl.arange(0, 64)
    tl.store(out_ptr + lane, sample.counter_bits(first, second, position, lane))


@settings(deadline=None, max_examples=20)
@given(st.integers(-(2**63), 2**63), st.integers(0, 2**31 - 1))
def test_the_noise_has_the_bits_of_counter_bits(seed: int, position: int) -> None:
    out = torch.empty(64, dtype=torch.int32)
    words = torch.tensor(noise_key(seed, TARGET), dtype=torch.int64).int().tolist()
    _bits_kernel[(1,)](out, *words, position)
    assert torch.equal(out, bits_on_host(seed, TARGET, torch.tensor([position]), torch.arange(64)))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_the_accepted_path_is_that_of_verify(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([1, 2, 8, 16]))
    rows = data.draw(st.integers(1, width))
    is_tree = data.draw(st.booleans())
    token = st.integers(0, 2)
    tokens = data.draw(st.lists(token, min_size=width, max_size=width))
    choices = data.draw(st.lists(token, min_size=width, max_size=width))
    parents = [data.draw(st.integers(0, max(row - 1, 0))) for row in range(width)] if is_tree else None
    record = accepting.accept(
        torch.tensor(tokens), torch.tensor(choices), torch.tensor([rows], dtype=torch.int32),
        None if parents is None else torch.tensor(parents, dtype=torch.int32),
    ).tolist()  # fmt: skip
    drafted_from = None if parents is None else [row - 1 for row in parents[1:rows]]
    expected = accept_on_host(tokens[1:rows], drafted_from, choices[:rows])
    count = len(expected.path)
    assert record[:2] == [count, 1]
    assert record[2 : 3 + count] == expected.tokens
    assert record[2 + width : 2 + width + count] == [index + 1 for index in expected.path]


def test_a_row_without_a_choice_is_told_and_one_beyond_the_rows_is_not() -> None:
    tokens, rows = torch.tensor([1, 2, 3, 0]), torch.tensor([3], dtype=torch.int32)
    assert accepting.accept(tokens, torch.tensor([2, -1, 5, 5]), rows, None)[1] == 0
    assert accepting.accept(tokens, torch.tensor([2, 3, 5, -1]), rows, None)[1] == 1
