"""Random little DFlash drafters for the models of tiny.py, written to a folder as z-lab writes its checkpoints."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

CONFIG: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "block_size": 8,
    "dflash_config": {"mask_token_id": 259, "target_layer_ids": [0, 1]},
    "num_target_layers": 3,
    "vocab_size": 272,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "intermediate_size": 80,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": True,
}


def tensors(config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Random weights by the checkpoints' names."""
    draw = torch.Generator().manual_seed(seed)
    hidden, wide, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    groups = config["num_key_value_heads"] * size
    widths = {"q": config["num_attention_heads"] * size, "k": groups, "v": groups}
    layers = config.get("target_layer_ids") or config["dflash_config"]["target_layer_ids"]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw) * shape[-1] ** -0.5

    def near_one(n: int) -> torch.Tensor:
        return 1 + 0.2 * torch.randn(n, generator=draw)

    out = {"fc.weight": normal(hidden, len(layers) * hidden)}
    out |= {"hidden_norm.weight": near_one(hidden), "norm.weight": near_one(hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"layers.{layer}."
        for name, width in widths.items():
            out[f"{at}self_attn.{name}_proj.weight"] = normal(width, hidden)
        out[at + "self_attn.o_proj.weight"] = normal(hidden, widths["q"])
        if config["attention_bias"]:
            for name, width in {**widths, "o": hidden}.items():
                out[f"{at}self_attn.{name}_proj.bias"] = torch.randn(width, generator=draw)
        out[at + "self_attn.q_norm.weight"] = near_one(size) * 2
        out[at + "self_attn.k_norm.weight"] = near_one(size) * 2
        out[at + "mlp.gate_proj.weight"] = normal(wide, hidden)
        out[at + "mlp.up_proj.weight"] = normal(wide, hidden)
        out[at + "mlp.down_proj.weight"] = normal(hidden, wide)
        out[at + "input_layernorm.weight"] = near_one(hidden)
        out[at + "post_attention_layernorm.weight"] = near_one(hidden)
    return out


def write(folder: Path, seed: int = 0, *, dtype: torch.dtype = torch.float32, **overrides: Any) -> Path:
    """A drafter's folder; overrides change config.json's keys, and None takes a key away."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {key: value for key, value in (CONFIG | overrides).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    weights = {name: tensor.to(dtype) for name, tensor in tensors(CONFIG | config, seed).items()}
    save_file(weights, str(folder / "model.safetensors"), {"format": "pt"})
    return folder
