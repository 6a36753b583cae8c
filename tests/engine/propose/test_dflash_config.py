"""Which folders are DFlash drafters: z-lab's checkpoints load as they are, everything else is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_dflash
import torch
from safetensors.torch import load_file, save_file

from specd.engine.errors import ModelError
from specd.engine.load import load
from specd.engine.model import Qwen3
from specd.engine.propose.dflash import load_dflash


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen3:
    return load(tiny.write(tmp_path_factory.mktemp("target"), 1)).model


METHOD = {"mask_token_id": 259, "target_layer_ids": [0, 1], "block_size": 6}


@pytest.mark.parametrize(
    "keys",
    [
        {"block_size": 6, "dflash_config": {"mask_token_id": 259, "target_layer_ids": [0, 1]}},
        {"block_size": None, "dflash_config": METHOD},
        {"block_size": 12, "dflash_config": METHOD},  # the inner one counts
        {"dflash_config": None, **METHOD},
        {"dflash_config": {"block_size": None}, **METHOD},
    ],
)
def test_keys_are_read_wherever_a_checkpoint_has_them(model: Qwen3, tmp_path: Path, keys: dict[str, Any]) -> None:
    config = load_dflash(tiny_dflash.write(tmp_path, **keys), model).config
    assert (config.block_size, config.mask_token_id, config.target_layer_ids) == (6, 259, (0, 1))


def test_a_block_has_16_rows_where_the_config_is_silent(model: Qwen3, tmp_path: Path) -> None:
    assert load_dflash(tiny_dflash.write(tmp_path, block_size=None), model).config.block_size == 16


@pytest.mark.parametrize(
    "keys",
    [
        {"rope_theta": 5e5},
        {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "default"}},
    ],
)
def test_the_drafters_own_rope_is_read_in_both_styles(model: Qwen3, tmp_path: Path, keys: dict[str, Any]) -> None:
    assert load_dflash(tiny_dflash.write(tmp_path, **keys), model).config.rope_theta == 5e5


SLIDING = {"sliding_window": 5, "use_sliding_window": True}
MIXED = {**SLIDING, "layer_types": ["sliding_attention", "full_attention"]}


@pytest.mark.parametrize(
    ("keys", "windows", "causal"),
    [
        ({}, (None, None), (False, False)),
        ({"sliding_window": 5}, (None, None), (False, False)),  # not turned on
        (MIXED, (5, None), (True, False)),
        (MIXED | {"is_causal": True}, (5, None), (True, True)),
        (MIXED | {"is_causal": False}, (5, None), (False, False)),
        (MIXED | {"use_sliding_window": None}, (5, None), (True, False)),
        (SLIDING | {"max_window_layers": 1}, (None, 5), (False, True)),
    ],
)
def test_windows_and_causality_follow_the_table(
    model: Qwen3, tmp_path: Path, keys: dict[str, Any], windows: tuple[int | None, ...], causal: tuple[bool, ...]
) -> None:
    config = load_dflash(tiny_dflash.write(tmp_path, **keys), model).config
    assert (config.windows, config.is_causal) == (windows, causal)


def inner(**keys: Any) -> dict[str, Any]:
    return {"dflash_config": {"mask_token_id": 259, "target_layer_ids": [0, 1], **keys}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"architectures": ["DFlash2DraftModel"]}, "DFlash2DraftModel is DFlash 2"),
        ({"architectures": ["Qwen3DSparkModel"]}, "Qwen3DSparkModel is DSpark"),
        ({"architectures": ["DominoDraftModel"]}, "DominoDraftModel is Domino"),
        ({"architectures": ["DFlashSpeculator"]}, "DFlashSpeculator is a Speculators checkpoint"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "is EAGLE"),
        ({"architectures": ["Qwen3ForCausalLM"]}, "Qwen3ForCausalLM is not supported"),
        ({"architectures": None}, "not named"),
        ({"transformer_layer_config": {"hidden_size": 48}}, "transformer_layer_config belongs to a Speculators"),
        (inner(selector_rank=16), "selector_rank belongs to DFlash 2"),
        (inner(conv_kernel_size=2), "conv_kernel_size belongs to DFlash 2"),
        (inner(projector_type="domino"), "projector_type belongs to Domino"),
        ({"model_type": "llama"}, "model_type 'llama'"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised"),
        ({"dflash_config": {"mask_token_id": 259}}, "no target_layer_ids"),
        (inner(target_layer_ids=[0, 3]), "layers are 0..2"),
        (inner(target_layer_ids=[1, 1]), "different layers"),
        (inner(mask_token_id=None), "no mask_token_id"),
        (inner(mask_token_id=272), "mask_token_id 272"),
        ({"block_size": 1}, "block_size must be"),
        ({"hidden_size": 64}, "hidden_size is 64, the target's is 48"),
        ({"num_target_layers": 36}, "target of 36 layers"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "'yarn'"),
        ({"rope_scaling": "yarn"}, "rope_scaling must be null or one object for all layers, found 'yarn'"),
        ({"rope_parameters": [1]}, "rope_parameters must be null or one object"),
        ({"quantization_config": "awq"}, "quantization_config must be an object or null"),
        ({"rms_norm_eps": "x"}, "rms_norm_eps must be a positive number, found 'x'"),
        ({"rope_theta": "x"}, "rope_theta must be a positive number, found 'x'"),
        ({"output_multiplier": "x"}, "output_multiplier must be a positive number"),
        ({"attention_bias": "no"}, "attention_bias must be true or false"),
        ({"is_causal": "no"}, "is_causal must be true or false"),
        (SLIDING | {"max_window_layers": "1"}, "max_window_layers must be a whole number"),
        ({"layer_types": ["sliding_attention"] * 2, "sliding_window": None}, "contradict"),
        (MIXED | {"use_sliding_window": False}, "contradict"),
        ({"layer_types": ["full_attention"]}, "each of the 2 layers"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "linear_attention"),
    ],
)
def test_what_is_no_drafter_of_this_model_is_refused_by_name(
    model: Qwen3, tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    tiny_dflash.write(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | keys
    (tmp_path / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if value is not None})
    )
    with pytest.raises(ModelError, match=words):
        load_dflash(tmp_path, model)


@pytest.mark.parametrize("key", ["rms_norm_eps", "rope_theta"])
def test_a_number_that_is_null_is_named(model: Qwen3, tmp_path: Path, key: str) -> None:
    config = json.loads((tiny_dflash.write(tmp_path) / "config.json").read_text()) | {key: None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=f"{key} must be a positive number, found None"):
        load_dflash(tmp_path, model)


def test_a_null_in_place_of_a_quantisation_is_none(model: Qwen3, tmp_path: Path) -> None:
    config = json.loads((tiny_dflash.write(tmp_path) / "config.json").read_text()) | {"quantization_config": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load_dflash(tmp_path, model).config.num_layers == 2


def test_an_fc_of_another_number_of_taps_is_refused(model: Qwen3, tmp_path: Path) -> None:
    tiny_dflash.write(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | inner(target_layer_ids=[1])
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"fc.weight has shape \(48, 96\), config.json says \(48, 48\)"):
        load_dflash(tmp_path, model)


def rewrite(folder: Path, **change: Any) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors = {change.get("prefix", "") + name: tensor.clone() for name, tensor in tensors.items()}
    save_file(tensors | change.get("more", {}), path)


@pytest.mark.parametrize(
    "name", ["markov_head.weight", "embed_tokens.weight", "layers.0.self_attn.sinks", "layers.2.x"]
)
def test_a_tensor_of_another_format_is_refused_by_name(model: Qwen3, tmp_path: Path, name: str) -> None:
    rewrite(tiny_dflash.write(tmp_path), more={name: torch.zeros(3)})
    with pytest.raises(ModelError, match=name):
        load_dflash(tmp_path, model)


def test_a_mask_embedding_is_refused(model: Qwen3, tmp_path: Path) -> None:
    (tiny_dflash.write(tmp_path) / "mask_embedding.pt").write_bytes(b"")
    with pytest.raises(ModelError, match=r"mask_embedding\.pt"):
        load_dflash(tmp_path, model)


def test_a_prefix_rotary_buffers_and_shards_change_nothing(model: Qwen3, tmp_path: Path) -> None:
    plain = load_dflash(tiny_dflash.write(tmp_path / "plain"), model)
    folder = tiny_dflash.write(tmp_path / "other")
    rewrite(folder, prefix="model.", more={"model.rotary_emb.inv_freq": torch.ones(12)})
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, members in shards.items():
        save_file({name: tensors[name].clone() for name in members}, folder / file)
    index = {name: file for file, members in shards.items() for name in members}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    other = load_dflash(folder, model)
    taps = torch.randn(9, 2, 48)
    contexts = [drafter.new_context() for drafter in (plain, other)]
    for drafter, context in zip((plain, other), contexts, strict=True):
        drafter.ingest(context, 0, taps)
    assert torch.equal(plain.block(contexts[0], 7, 9, 8), other.block(contexts[1], 7, 9, 8))


def test_a_missing_tensor_and_a_missing_file_are_named(model: Qwen3, tmp_path: Path) -> None:
    tiny_dflash.write(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: t.clone() for name, t in tensors.items() if name != "norm.weight"}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"norm\.weight"):
        load_dflash(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_dflash(tmp_path, model)
    with pytest.raises(ModelError, match="no such model folder"):
        load_dflash(tmp_path / "nowhere", model)
