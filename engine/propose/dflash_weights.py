"""Reads a DFlash drafter's model.safetensors: 11 tensors a layer and 3 besides, no embedding and no head.

A `model.` prefix is accepted and rotary buffers are ignored; any other tensor means another format, and is refused.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from specd.engine import ops as operations
from specd.engine.errors import ModelError
from specd.engine.model import Qwen3
from specd.engine.propose.dflash_config import DFlashConfig
from specd.engine.weights import LayerWeights, TensorFolder


@dataclass(frozen=True)
class DFlashWeights:
    """H hidden, K taps. o_biases: per layer [H], None where the checkpoint has none."""

    fc: Tensor  # [H, K H]
    hidden_norm: Tensor  # [H]
    layers: list[LayerWeights]
    o_biases: list[Tensor | None]
    norm: Tensor  # [H]


def read_weights(files: TensorFolder, c: DFlashConfig, model: Qwen3) -> DFlashWeights:
    """All weights on the model's device, in its type, bfloat16 matrices as stored where its kernels widen them."""
    # float16 overflows on the outlier activations that taps carry: a float16 target's drafter runs in bfloat16.
    dtype = torch.bfloat16 if model.dtype == torch.float16 else model.dtype
    ops = operations.for_device(model.device, dtype)
    prefix = "model." if "model.fc.weight" in files else ""
    used: set[str] = set()

    def get(tensor: str, *shape: int) -> Tensor:
        used.add(prefix + tensor)
        return files.get(prefix + tensor, *shape)

    def vector(*parts: Tensor) -> Tensor:
        return torch.cat(parts).to(device=model.device, dtype=dtype)

    def matrix(*parts: Tensor) -> Tensor:
        fused = torch.cat(parts)
        stays = ops.name == "native" and fused.dtype == torch.bfloat16
        return fused.to(device=model.device, dtype=fused.dtype if stays else dtype).contiguous()

    hidden, taps = c.hidden_size, len(c.target_layer_ids)
    sizes = {"q": c.num_heads * c.head_dim, "k": c.num_kv_heads * c.head_dim, "v": c.num_kv_heads * c.head_dim}
    layers: list[LayerWeights] = []
    o_biases: list[Tensor | None] = []
    for number in range(c.num_layers):
        own = f"layers.{number}."
        attention = own + "self_attn."
        biases = [get(f"{attention}{n}_proj.bias", size) for n, size in sizes.items()] if c.attention_bias else None
        layers.append(
            LayerWeights(
                input_norm=vector(get(own + "input_layernorm.weight", hidden)),
                qkv=matrix(*(get(f"{attention}{n}_proj.weight", size, hidden) for n, size in sizes.items())),
                qkv_bias=None if biases is None else vector(*biases),
                qk_norms=(
                    vector(get(attention + "q_norm.weight", c.head_dim)),
                    vector(get(attention + "k_norm.weight", c.head_dim)),
                ),
                o=matrix(get(attention + "o_proj.weight", hidden, sizes["q"])),
                post_norm=vector(get(own + "post_attention_layernorm.weight", hidden)),
                gate_up=matrix(
                    *(get(f"{own}mlp.{n}_proj.weight", c.intermediate_size, hidden) for n in ("gate", "up"))
                ),
                down=matrix(get(own + "mlp.down_proj.weight", hidden, c.intermediate_size)),
            )
        )
        o_biases.append(vector(get(attention + "o_proj.bias", hidden)) if c.attention_bias else None)
    weights = DFlashWeights(
        fc=matrix(get("fc.weight", hidden, taps * hidden)),
        hidden_norm=vector(get("hidden_norm.weight", hidden)),
        layers=layers,
        o_biases=o_biases,
        norm=vector(get("norm.weight", hidden)),
    )
    _refuse_unknown(files, used)
    return weights


def _refuse_unknown(files: TensorFolder, used: set[str]) -> None:
    unknown = sorted(name for name in files.names() - used if "rotary_emb" not in name)
    if unknown:
        raise ModelError(
            f"{files.folder} holds tensors that a DFlash drafter does not have ({', '.join(unknown[:3])}"
            f"{', ...' if len(unknown) > 3 else ''}): it is another format"
        )
