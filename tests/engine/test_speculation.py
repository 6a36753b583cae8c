"""Speculation changes nothing: every proposer, draft length and shape of draft, down to ties of one bit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from drafters import ENGINE, NEVER, PARAMS, PROMPT, PROPOSERS, AtMost, Build, a_little_off, make
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scripted import VOCAB, Scripted, ScriptedTree, assert_fresh, run, tokens_of
from torch import Tensor

from specd.engine import Loaded, SamplingParams, generate, load

Maker = Callable[..., Path]
LENGTHS = (0, 1, 3, 7, 15, 31)


@pytest.fixture(scope="module", params=["native", "torch"])
def loaded(tiny_folder: Maker, request: pytest.FixtureRequest) -> Loaded:
    return make(tiny_folder(51), request.param)


@pytest.fixture(scope="module")
def near(loaded: Loaded, tiny_folder: Maker) -> Loaded:
    return make(a_little_off(tiny_folder(51)), loaded.model.ops.name)


@pytest.mark.parametrize("sampling", PARAMS.values(), ids=PARAMS)
@pytest.mark.parametrize("build", PROPOSERS.values(), ids=PROPOSERS)
def test_the_output_is_plain_decodings_for_every_proposer_and_draft_length(
    loaded: Loaded, near: Loaded, build: Build, sampling: SamplingParams
) -> None:
    job = partial(generate, loaded.model, PROMPT, sampling=sampling, stop_ids=NEVER)
    plain = tokens_of(job(max_tokens=60))
    for k in LENGTHS:
        cache = loaded.model.new_cache()
        proposer = build(loaded, near, plain, sampling)
        count = 60 if loaded.model.ops.name == "native" else k + 6  # the definitions in torch are slow
        tokens, stats = run(job(speculative=AtMost(proposer, k), cache=cache, max_tokens=count))
        assert tokens == plain[:count]
        assert_fresh(loaded.model, cache, PROMPT + tokens[:-1])
        cache.free()
        assert (stats.drafted > 0) == (k > 0)
        if k == 31 and proposer.name not in ("suffix", "edit", "edit-tree", "dflash", "dflash-tree"):
            assert stats.accepted > 5  # some drafts were right: the drafts are a test of something


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 40), st.booleans())
def test_any_pattern_of_acceptance_gives_the_same_output_and_is_counted_right(
    loaded: Loaded, pattern: list[int], k: int, budget: int, sampled: bool
) -> None:
    sampling = PARAMS["sampled" if sampled else "greedy"]
    job = partial(generate, loaded.model, PROMPT, sampling=sampling, stop_ids=NEVER)
    plain = tokens_of(job(max_tokens=budget))
    script = Scripted(PROMPT + plain, lambda step: pattern[step % len(pattern)])
    cache = loaded.model.new_cache()
    tokens, stats = run(job(max_tokens=budget, speculative=AtMost(script, k), cache=cache))
    assert tokens == plain
    assert_fresh(loaded.model, cache, (PROMPT + plain)[:-1])
    cache.free()
    left, step, accepted, steps = budget, 0, 0, 0
    while left:
        drafted = min(k, left - 1)
        held = min(drafted, pattern[step % len(pattern)]) if drafted else 0
        step += drafted > 0
        left, accepted, steps = left - held - 1, accepted + held, steps + 1
    assert (stats.accepted, stats.steps, stats.tokens) == (accepted, steps, budget)


class Reordered:
    """Operations whose products of several rows add up in another order than those of one row: a bit may differ."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if len(x) == 1:
            return self._inner.linear(x, weight, bias)  # type: ignore[no-any-return]
        half = x.shape[1] // 2
        left, right = x[:, :half].contiguous(), x[:, half:].contiguous()
        out = self._inner.linear(left, weight[:, :half].contiguous()) + self._inner.linear(
            right, weight[:, half:].contiguous()
        )
        return out if bias is None else out + bias  # type: ignore[no-any-return]


def with_twins(folder: Path, seed: int) -> Path:
    """Every second vocabulary row of the head is the one before it but for single last bits, while their embeddings
    have nothing in common: which of the two a step emits is a matter of one bit, and then all that follows."""
    head = (tensors := load_file(folder / "model.safetensors"))["lm_head.weight"]
    draw = torch.Generator().manual_seed(seed)
    twin = head[0::2].clone()
    direction = torch.where(torch.rand(twin.shape, generator=draw) < 0.5, torch.inf, -torch.inf)
    moved = torch.rand(twin.shape, generator=draw) < 0.3
    head[1::2] = torch.where(moved, torch.nextafter(twin, direction), twin)
    save_file(tensors, str(folder / "model.safetensors"), {"format": "pt"})
    return folder


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("ops", ["native", "torch"])
def test_near_ties_are_decided_alike_by_one_row_and_by_many(tiny_folder: Maker, ops: str, shape: str) -> None:
    seen_by_the_fixture = 0
    for seed in range(3 if ops == "native" else 1):
        model = make(with_twins(tiny_folder(seed, tie_word_embeddings=False), seed), ops).model
        job = partial(generate, model, PROMPT, max_tokens=30, stop_ids=NEVER)

        def script(plain: list[int], pattern: int = seed) -> Scripted:
            truth = PROMPT + plain + [0] * 40
            return Scripted(truth, lambda step: step % 6) if shape == "chain" else ScriptedTree(truth, pattern, 0.9)

        plain = tokens_of(job())
        assert len({token // 2 for token in plain}) > 8
        assert tokens_of(job(speculative=script(plain))) == plain
        model.ops = Reordered(model.ops)
        plain = tokens_of(job())
        with pytest.MonkeyPatch.context() as patch:  # this script goes on where the truth is left
            patch.setattr(Scripted, "ahead", lambda self, seq: self.truth[len(seq) :])
            seen_by_the_fixture += tokens_of(job(speculative=script(plain))) != plain
    assert seen_by_the_fixture > 0  # one bit between one row and many, and the outputs part


def test_the_vocabularys_padding_is_never_drawn(tiny_folder: Maker) -> None:
    model = load(tiny_folder(52), engine=ENGINE).model
    assert (model.vocab_limit, model.config.vocab_size) == (VOCAB, tiny.CONFIG["vocab_size"])
    model.weights.embedding[VOCAB:] *= 50
    hidden = model.forward(torch.tensor(PROMPT), torch.arange(len(PROMPT)), model.new_cache()).last
    assert (hidden @ model.weights.head.T).argmax(dim=-1).max() >= VOCAB  # the padding would win
    for params in (SamplingParams(), SamplingParams(5.0), SamplingParams(1.0, top_k=3), SamplingParams(1.0, top_p=0.5)):
        options = {"sampling": params, "max_tokens": 40, "stop_ids": NEVER, "logprobs": True}
        assert max(tokens_of(generate(model, PROMPT, **options))) < VOCAB  # type: ignore[arg-type]
