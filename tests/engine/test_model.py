"""The forward pass against transformers' own, on random little models, and the loader's refusals."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from specd.engine import ModelError, load
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3

os.environ["HF_HUB_OFFLINE"] = "1"
Maker = Callable[..., Path]

SHAPES: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tie_word_embeddings": False},
    "one-group": {"num_key_value_heads": 1},
    "no-groups": {"num_key_value_heads": 4},
    "odd-head": {"head_dim": 20},
    "theta": {"rope_theta": 5000.0},
    "rope-parameters": {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "head_dim": 12},
}


@pytest.fixture(params=list(SHAPES))
def folder(request: pytest.FixtureRequest, tiny_folder: Maker) -> Path:
    return tiny_folder(3, **SHAPES[request.param])


def run(model: Qwen3, cache: KVCache, ids: list[int]) -> torch.Tensor:
    positions = torch.arange(cache.length, cache.length + len(ids))
    return model.logits(model.forward(torch.tensor(ids), positions, cache).last)


def oracle(folder: Path, ids: list[int]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True)
    return out.logits[0], [state[0] for state in out.hidden_states]


def test_logits_equal_transformers(folder: Path) -> None:
    loaded = load(folder)
    ids = torch.randint(0, 256, (70,), generator=torch.Generator().manual_seed(1)).tolist()
    expected, states = oracle(folder, ids)
    expected = expected[:, : loaded.model.vocab_limit]
    model, cache = loaded.model, loaded.model.new_cache()

    whole = run(model, cache, ids)
    torch.testing.assert_close(whole, expected, atol=1e-4, rtol=1e-4)
    one_by_one = torch.cat([run(model, fresh, [token]) for fresh in [model.new_cache()] for token in ids])
    assert torch.equal(one_by_one, whole)

    cache.truncate(40)
    run(model, cache, [5, 6, 7])  # other tokens, then back
    cache.truncate(40)
    assert torch.equal(run(model, cache, ids[40:]), whole[40:])

    taps = model.forward(torch.tensor(ids), torch.arange(len(ids)), model.new_cache(), taps=(0, 1)).taps
    assert taps is not None
    torch.testing.assert_close(taps, torch.stack([states[1], states[2]], dim=1), atol=1e-4, rtol=1e-4)


def test_the_last_layer_can_be_tapped_before_the_final_norm(tiny_folder: Maker) -> None:
    model = load(tiny_folder(4)).model
    hidden = model.forward(torch.tensor([1, 2, 3]), torch.arange(3), model.new_cache(), taps=(2,))
    assert hidden.taps is not None
    from specd.engine.ops import rms_norm

    normed = rms_norm(hidden.taps[:, 0], model.weights.norm, model.config.rms_norm_eps)
    torch.testing.assert_close(normed, hidden.last, atol=1e-5, rtol=1e-5)


def test_bfloat16_runs_close_to_float32(tiny_folder: Maker) -> None:
    folder = tiny_folder(5)
    ids = list(range(20, 60))
    wide, narrow = load(folder).model, load(folder, dtype="bfloat16").model
    a, b = run(wide, wide.new_cache(), ids), run(narrow, narrow.new_cache(), ids)
    assert narrow.dtype == torch.bfloat16
    assert (a - b).norm() / a.norm() < 0.05


def test_sharded_weights_load_like_a_single_file(tiny_folder: Maker, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_folder(6)
    ids = [1, 2, 3, 4]
    model = load(folder).model
    expected = run(model, model.new_cache(), ids)
    tensors = load_file(str(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, str(folder / file))
    index = {"weight_map": {key: file for file, keys in shards.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    sharded = load(folder).model
    assert torch.equal(run(sharded, sharded.new_cache(), ids), expected)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match="model-00002-of-00002"):
        load(folder)


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model_type": "llama"}, "model_type 'llama' is not supported"),
        ({"model_type": "qwen3_moe"}, "model_type 'qwen3_moe' is not supported"),
        ({"model_type": "qwen3_5"}, "dense Qwen3 and Qwen2.5"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised \\(awq\\)"),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, "rope scaling 'yarn'"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"num_hidden_layers": "three"}, "num_hidden_layers must be a positive whole number"),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"hidden_size": 64}, "has shape"),
        ({"num_hidden_layers": 4}, "no tensor model.layers.3"),
        ({"num_hidden_layers": 2}, r"has a tensor model\.layers\.2\.\S+, but its config.json says num_hidden_layers 2"),
        (
            {"model_type": "qwen2", "architectures": None},
            r"has a tensor model\.layers\.0\.\S+_norm.weight, which is no part",
        ),
        ({"architectures": ["Qwen3MoeForCausalLM"]}, "Qwen3MoeForCausalLM"),
        ({"architectures": "Qwen3ForCausalLM"}, "architectures 'Qwen3ForCausalLM'"),
        ({"num_experts": 8}, "num_experts is 8: mixtures of experts"),
        ({"moe_intermediate_size": 32}, "moe_intermediate_size is 32"),
        ({"quantization_config": "awq"}, "quantization_config must be an object or null, found 'awq'"),
        ({"quantization_config": {}}, "quantised \\(unknown\\)"),
        ({"rope_scaling": "yarn"}, "rope_scaling must be null or one object for all layers, found 'yarn'"),
        ({"rope_parameters": [1]}, "rope_parameters must be null or one object"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "rope_parameters must be null or one object"),
        ({"rope_parameters": {"rope_theta": "x"}}, "rope_theta must be a positive number, found 'x'"),
        ({"rms_norm_eps": None}, "rms_norm_eps must be a positive number, found None"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps must be a positive number, found 'small'"),
        ({"rope_theta": None}, "rope_theta must be a positive number, found None"),
        ({"rope_theta": "1e6"}, "rope_theta must be a positive number, found '1e6'"),
        ({"rope_theta": float("nan")}, "rope_theta must be a positive number, found nan"),
        ({"rope_theta": 10**400}, "rope_theta must be a positive number"),
        ({"eos_token_id": "x"}, "eos_token_id must be a token id or a list of them, found 'x'"),
        ({"eos_token_id": [258, None]}, "eos_token_id must be"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings must be true or false, found 'false'"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(tiny_folder: Maker, changes: dict[str, Any], says: str) -> None:
    folder = tiny_folder(7)
    edit_config(folder, **changes)
    with pytest.raises(ModelError, match=says):
        load(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"quantization_config": None},
        {"rope_scaling": None, "rope_parameters": None},
        {"architectures": None},
        {"eos_token_id": None},
        {"eos_token_id": [258, 256]},
        {"num_experts": 0},
    ],
)
def test_what_says_nothing_is_read_as_nothing(tiny_folder: Maker, changes: dict[str, Any]) -> None:
    folder = tiny_folder(7)
    edit_config(folder, **changes)
    assert load(folder).model.config.rope_theta == 1e6


def test_tensors_beside_the_layers_are_no_reason_to_refuse(tiny_folder: Maker) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_folder(7)
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    tensors["model.rotary_emb.inv_freq"] = torch.ones(8)
    save_file(tensors, path)
    assert load(folder).model.config.num_layers == 3


def test_a_generation_config_of_another_kind_is_named(tiny_folder: Maker) -> None:
    folder = tiny_folder(7)
    (folder / "generation_config.json").write_text('{"eos_token_id": "x"}')
    with pytest.raises(ModelError, match=r"generation_config\.json: eos_token_id"):
        load(folder)


@pytest.mark.parametrize("name", ["~nobody-of-this-name/model", "~nobody-of-this-name", "x" * 5000])
def test_a_name_that_is_no_path_is_no_such_folder(name: str) -> None:
    with pytest.raises(ModelError, match="no such model folder"):
        load(name)


def test_broken_folders_are_refused_by_name(tiny_folder: Maker, tmp_path: Path) -> None:
    folder = tiny_folder(8)
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="broken or cut short"):
        load(folder)
    weights.write_bytes(b"")
    with pytest.raises(ModelError, match="broken or cut short"):
        load(folder)
    weights.unlink()
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        load(folder)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match=r"tokenizer\.json is broken"):
        load(folder)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(ModelError, match="cannot read"):
        load(folder)
    (folder / "config.json").write_text("not json")
    with pytest.raises(ModelError, match="cannot read"):
        load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match=r"no config\.json"):
        load(folder)
    with pytest.raises(ModelError, match="no such model folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="is a file"):
        load(folder / "tokenizer_config.json")


def test_a_hub_name_without_a_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="go online once, or name a local folder"):
        load("Qwen/Qwen3-4B")
