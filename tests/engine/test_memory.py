"""What a model takes of a GPU's memory is counted before it is asked for, and refused with figures."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from specd.engine import OutOfMemory, load
from specd.engine.config import ModelConfig
from specd.engine.memory import GIB, MemoryPlan, drafter_plan, kv_bytes, plan

Maker = Callable[..., Path]


def qwen3(hidden: int, wide: int, tied: bool) -> ModelConfig:
    return ModelConfig(
        architecture="qwen3", vocab_size=151936, hidden_size=hidden, num_layers=36, num_heads=32, num_kv_heads=8,
        head_dim=128, intermediate_size=wide, rms_norm_eps=1e-6, rope_theta=1e6, max_positions=40960,
        tie_embeddings=tied, qkv_bias=False, qk_norm=True, stop_ids=frozenset(),
    )  # fmt: skip


QWEN3_4B, QWEN3_8B = qwen3(2560, 9728, True), qwen3(4096, 12288, False)
CONTEXT = 32768


def drafter(target: ModelConfig) -> MemoryPlan:
    """Of z-lab's DFlash drafter for it: five layers of the target's own shape, five taps."""
    layers = SimpleNamespace(**{**vars(target), "num_layers": 5})
    return drafter_plan(layers, 5)


def test_the_weights_counted_are_the_weights_loaded(tiny_folder: Maker) -> None:
    for overrides in ({}, {"tie_word_embeddings": False}):
        model = load(tiny_folder(1, **overrides)).model
        w, item = model.weights, 4
        matrices = [w.embedding, *([] if overrides == {} else [w.head])]
        matrices += [part for layer in w.layers for part in (layer.qkv, layer.o, layer.gate_up, layer.down)]
        rotary = 8 * (model.config.max_positions + 1024) * model.config.head_dim // 2
        counted = plan(model.config, item=item).weights
        assert counted == item * sum(part.numel() for part in matrices) + rotary


def test_published_sizes_are_met() -> None:
    assert plan(QWEN3_4B).weights == pytest.approx(8.04e9, rel=0.01)
    assert plan(QWEN3_8B).weights == pytest.approx(16.4e9, rel=0.01)
    assert kv_bytes(QWEN3_4B, 2) == 144 * 1024
    assert drafter(QWEN3_4B).weights == pytest.approx(1.07e9, rel=0.02)  # 537 million parameters


def test_an_8b_model_with_32k_tokens_and_a_drafter_fits_24_gib() -> None:
    assert plan(QWEN3_8B, drafters=[drafter(QWEN3_8B)]).needed(CONTEXT) < 24 * GIB
    assert plan(QWEN3_8B, drafters=[drafter(QWEN3_8B)]).tokens(24 * GIB, CONTEXT, 1 << 17) == CONTEXT


def test_a_4b_model_in_12_gib_has_the_context_that_fits_and_more_is_refused_with_figures() -> None:
    """In bfloat16 its weights and 32k tokens' keys and values alone are 12.0 GiB: with a drafter 17k tokens fit."""
    whole = plan(QWEN3_4B, drafters=[drafter(QWEN3_4B)])
    assert whole.weights + CONTEXT * kv_bytes(QWEN3_4B, 2) > 12 * GIB - whole.drafters
    fits = whole.tokens(12 * GIB, None, 1 << 17)
    assert 16_000 < fits < 20_000
    assert whole.needed(fits) <= 12 * GIB < whole.needed(fits + 1)
    with pytest.raises(OutOfMemory, match=rf"12\.0 are free: weights 7\.5, drafters 1\.0, .* at most {fits} tokens"):
        whole.tokens(12 * GIB, CONTEXT, 1 << 17)


def test_a_model_that_leaves_no_room_for_a_context_is_refused() -> None:
    with pytest.raises(OutOfMemory, match=r"GiB are needed and 12\.0 are free: weights 15\.3.*use a smaller model"):
        plan(QWEN3_8B).tokens(12 * GIB, None, 1 << 17)
    with pytest.raises(OutOfMemory, match="4096 tokens"):
        plan(QWEN3_4B).tokens(8 * GIB, None, 1 << 17)


def test_a_pool_is_never_larger_than_wanted() -> None:
    assert plan(QWEN3_4B).tokens(140 * GIB, None, 1 << 17) == 1 << 17
    assert plan(QWEN3_4B).tokens(140 * GIB, 5000, 1 << 17) == 5000
