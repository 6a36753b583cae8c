"""The drafter's pass against the method written out densely in float64, for every kind of layer and key."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_dflash
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from specd.engine.config import EngineConfig
from specd.engine.load import load
from specd.engine.model import Qwen3
from specd.engine.ops import TorchOps
from specd.engine.propose.dflash import DFlashDrafter, load_dflash

MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 5, "use_sliding_window": True}
METHOD = tiny_dflash.CONFIG["dflash_config"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen3:
    folder = tiny.write(tmp_path_factory.mktemp("target"), 1)
    return load(folder, engine=EngineConfig(page_size=8, kv_tokens=8192)).model


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def rotary(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """x [n, heads, D], half-split."""
    size = x.shape[-1]
    angle = positions[:, None, None].double() * theta ** (-torch.arange(0, size, 2).double() / size)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def dense_block(
    drafter: DFlashDrafter, folder: Path, taps: Tensor, held: Tensor, anchor: int, start: int, rows: int
) -> Tensor:
    """Hidden rows by the method's formulas: taps [n, K, H] at positions held [n]."""
    c, model = drafter.config, drafter.model
    w = {name: tensor.double() for name, tensor in load_file(folder / "model.safetensors").items()}
    taps = taps.double().clone()
    for place, layer in enumerate(c.target_layer_ids):
        if layer == model.config.num_layers - 1:
            taps[:, place] = norm(taps[:, place], model.weights.norm.double())
    context = norm(taps.flatten(1) @ w["fc.weight"].T, w["hidden_norm.weight"])
    embedding = model.weights.embedding.double() * c.embedding_scale
    x = embedding[torch.tensor([anchor] + [c.mask_token_id] * (rows - 1))]
    block = torch.arange(start, start + rows)
    keys_at = torch.cat((held, block))
    for number in range(c.num_layers):
        at = f"layers.{number}."

        def project(u: Tensor, name: str, at: str = at) -> Tensor:
            bias = w.get(f"{at}self_attn.{name}_proj.bias", torch.zeros(1))
            return u @ w[f"{at}self_attn.{name}_proj.weight"].T + bias

        u = norm(x, w[at + "input_layernorm.weight"])
        q = norm(project(u, "q").view(rows, -1, c.head_dim), w[at + "self_attn.q_norm.weight"])
        both = torch.cat((context, u))
        k = norm(project(both, "k").view(len(keys_at), -1, c.head_dim), w[at + "self_attn.k_norm.weight"])
        v = project(both, "v").view(len(keys_at), -1, c.head_dim)
        q, k = rotary(q, block, c.rope_theta), rotary(k, keys_at, c.rope_theta)
        distance = block[:, None] - keys_at[None]
        window = c.windows[number]
        seen = torch.ones_like(distance, dtype=torch.bool)
        if window is not None:
            seen &= distance < window
            if not c.is_causal[number]:
                seen &= -distance < window
        if c.is_causal[number]:
            seen &= distance >= 0
        k, v = (t.repeat_interleave(c.num_heads // c.num_kv_heads, dim=1) for t in (k, v))
        scores = torch.einsum("mhd,nhd->hmn", q, k) * c.head_dim**-0.5
        mixed = torch.einsum("hmn,nhd->mhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)
        x = x + project(mixed.flatten(1), "o")
        u = norm(x, w[at + "post_attention_layernorm.weight"])
        gate, up = (u @ w[f"{at}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (functional.silu(gate) * up) @ w[at + "mlp.down_proj.weight"].T
    return norm(x, w["norm.weight"])


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"attention_bias": True},
        {"num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 16, "num_hidden_layers": 3},
        {"dflash_config": METHOD | {"input_embedding_scale": 2.5}},
        {"dflash_config": METHOD | {"target_layer_ids": [2, 0]}},  # the last layer, and an order of its own
        MIXED,
        MIXED | {"is_causal": True},
        MIXED | {"is_causal": False},
    ],
)
@pytest.mark.parametrize("held", ["all", "none", "a hole", "no beginning"])
def test_a_block_is_what_the_method_says(model: Qwen3, tmp_path: Path, keys: dict[str, Any], held: str) -> None:
    folder = tiny_dflash.write(tmp_path, 3, **keys)
    drafter = load_dflash(folder, model)
    start, rows = 37, 8
    positions = torch.arange(start)
    positions = {
        "all": positions,
        "none": positions[:0],
        "a hole": torch.cat((positions[:20], positions[34:])),
        "no beginning": positions[30:],
    }[held]
    taps = torch.randn(start, 2, 48, generator=torch.Generator().manual_seed(5))[positions]
    context = drafter.new_context()
    breaks = [0, *(n for n in range(1, len(positions)) if positions[n] != positions[n - 1] + 1), len(positions)]
    for first, last in pairwise(breaks):
        if last > first:
            drafter.ingest(context, int(positions[first]), taps[first:last])
    found = drafter.block(context, 65, start, rows)
    expected = dense_block(drafter, folder, taps, positions, 65, start, rows)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_logits_are_scaled_and_capped_as_the_config_says(model: Qwen3, tmp_path: Path) -> None:
    keys = {"output_multiplier": 0.5, "final_logit_softcapping": 3.0}
    drafter = load_dflash(tiny_dflash.write(tmp_path, dflash_config=METHOD | keys), model)
    hidden = torch.randn(5, 48) * 4
    expected = 3 * torch.tanh(hidden @ model.weights.embedding[: model.vocab_limit].T * 0.5 / 3)
    torch.testing.assert_close(drafter.logits(hidden), expected)


def test_ids_that_the_tokenizer_does_not_know_are_never_drafted(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path / "target", 1)
    weights = load_file(folder / "model.safetensors")
    embedding = weights["model.embed_tokens.weight"]
    embedding[260:] = embedding[:12] * 50  # padding rows that would win
    save_file(weights, folder / "model.safetensors")
    target = load(folder).model
    drafter = load_dflash(tiny_dflash.write(tmp_path / "drafter"), target)
    context = drafter.new_context()
    for anchor in range(20):
        drafts = drafter.logits(drafter.block(context, anchor, 0, 8)).argmax(-1)
        assert int(drafts.max()) < 260
        everything = drafter.block(context, anchor, 0, 8) @ target.weights.embedding.T
        assert int(everything.argmax(-1).max()) >= 260  # the head's own choice


def test_bfloat16_weights_are_read_as_stored(model: Qwen3, tmp_path: Path) -> None:
    folder = tiny_dflash.write(tmp_path / "a", 3, dtype=torch.bfloat16)
    wide = {name: t.float() for name, t in load_file(folder / "model.safetensors").items()}
    other = tiny_dflash.write(tmp_path / "b", 3)
    save_file(wide, other / "model.safetensors")
    taps, rows = torch.randn(9, 2, 48), []
    for place in (folder, other):
        drafter = load_dflash(place, model)
        context = drafter.new_context()
        drafter.ingest(context, 0, taps)
        rows.append(drafter.block(context, 65, 9, 8))
    assert torch.equal(*rows)


def test_context_rows_are_the_same_in_one_go_or_in_many(model: Qwen3, tmp_path: Path) -> None:
    drafter = load_dflash(tiny_dflash.write(tmp_path, 3), model)
    taps = torch.randn(300, 2, 48)
    whole, parts = drafter.new_context(), drafter.new_context()
    drafter.ingest(whole, 0, taps)
    for first in range(0, 300, 7):
        drafter.ingest(parts, first, taps[first : first + 7])
    torch.testing.assert_close(drafter.block(whole, 1, 300, 8), drafter.block(parts, 1, 300, 8))


def test_positions_far_beyond_the_first_rope_table_are_rotated_right(model: Qwen3, tmp_path: Path) -> None:
    folder = tiny_dflash.write(tmp_path, 3)
    drafter = load_dflash(folder, model)
    taps, start = torch.randn(1990, 2, 48), 1990
    context = drafter.new_context()
    drafter.ingest(context, 0, taps)
    expected = dense_block(drafter, folder, taps, torch.arange(start), 65, start, 8)
    torch.testing.assert_close(drafter.block(context, 65, start, 8).double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_number_of_key_and_value_heads_works_without_kernels(model: Qwen3, tmp_path: Path, groups: int) -> None:
    folder = tiny_dflash.write(tmp_path, 3, num_key_value_heads=groups)
    drafter = load_dflash(folder, model)
    drafter.ops = TorchOps()
    taps, context = torch.randn(9, 2, 48), drafter.new_context()
    drafter.ingest(context, 0, taps)
    expected = dense_block(drafter, folder, taps, torch.arange(9), 65, 9, 8)
    torch.testing.assert_close(drafter.block(context, 65, 9, 8).double(), expected, rtol=1e-4, atol=1e-4)
