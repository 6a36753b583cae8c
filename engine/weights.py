"""Reads a model folder's safetensors into fused weights: one matrix for q, k and v, one for gate and up.

Only safetensors are read: a pickle can run code. Names and shapes are Hugging Face's for Qwen2 and Qwen3.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from specd.engine.config import ModelConfig, read_json
from specd.engine.errors import ModelError

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class LayerWeights:
    """H hidden, Hq query heads, G key/value heads of size D, I intermediate."""

    input_norm: Tensor  # [H]
    qkv: Tensor  # [(Hq + 2 G) D, H]
    qkv_bias: Tensor | None  # [(Hq + 2 G) D]
    qk_norms: tuple[Tensor, Tensor] | None  # [D], [D]
    o: Tensor  # [H, Hq D]
    post_norm: Tensor  # [H]
    gate_up: Tensor  # [2 I, H]
    down: Tensor  # [H, I]


@dataclass(frozen=True)
class Weights:
    embedding: Tensor  # [V, H]
    layers: list[LayerWeights]
    norm: Tensor  # [H]
    head: Tensor  # [V, H]; the embedding itself where they are tied


class TensorFolder:
    """The tensors of a folder's *.safetensors, single or sharded, by name. Raises ModelError with the file's name."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        index = folder / "model.safetensors.index.json"
        if index.exists():
            names = sorted(set(read_json(index).get("weight_map", {}).values()))
        else:
            names = ["model.safetensors"]
        self._home: dict[str, tuple[Any, Path]] = {}
        for name in names:
            path = folder / name
            if not path.exists():
                hint = "" if index.exists() else " (only safetensors are read: convert other formats first)"
                raise ModelError(f"{folder} has no {name}{hint}")
            try:
                handle = stack.enter_context(safe_open(str(path), framework="pt", device="cpu"))
            except (SafetensorError, OSError) as error:
                raise ModelError(f"{path} is broken or cut short ({error}); download it again") from None
            for key in handle.keys():  # noqa: SIM118 - not a dict
                self._home[key] = (handle, path)

    def __contains__(self, name: str) -> bool:
        return name in self._home

    def names(self) -> frozenset[str]:
        return frozenset(self._home)

    def get(self, name: str, *shape: int) -> Tensor:
        """The tensor, of this very shape."""
        if name not in self._home:
            raise ModelError(f"{self.folder} has no tensor {name}: the weights do not belong to its config.json")
        handle, path = self._home[name]
        try:
            tensor: Tensor = handle.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path} is broken or cut short ({error}); download it again") from None
        if tuple(tensor.shape) != shape:
            raise ModelError(f"{path}: {name} has shape {tuple(tensor.shape)}, config.json says {shape}")
        if tensor.dtype not in (torch.bfloat16, torch.float16, torch.float32):
            raise ModelError(f"{path}: {name} is {tensor.dtype}; only bfloat16, float16 and float32 weights are read")
        return tensor


def load_weights(
    folder: Path,
    config: ModelConfig,
    *,
    device: torch.device,
    dtype: torch.dtype,
    keep_bfloat16: bool = False,
    progress: Progress | None = None,
) -> Weights:
    """All weights on `device`. Vectors (norms, biases) are in `dtype`; matrices too, but bfloat16 ones stay as stored
    where keep_bfloat16 says that the device's kernels widen them on the fly."""
    c = config
    heads = c.num_heads * c.head_dim
    groups = c.num_kv_heads * c.head_dim

    def vector(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype, copy=True)

    def matrix(*parts: Tensor) -> Tensor:
        if device.type != "cpu":  # joined there: its memory is the faster one
            parts = tuple(part.to(device) for part in parts)
        # a copy, never the mapped file: that may be cut short or written over while the model runs
        fused = torch.cat(parts) if len(parts) > 1 or device.type == "cpu" else parts[0]
        stays = keep_bfloat16 and fused.dtype == torch.bfloat16
        return fused.to(device=device, dtype=fused.dtype if stays else dtype).contiguous()

    with ExitStack() as stack:
        files = TensorFolder(folder, stack)
        layers = []
        for number in range(c.num_layers):
            if progress:
                progress(number / c.num_layers, f"loading layer {number + 1} of {c.num_layers}")
            at = f"model.layers.{number}."
            parts = (("q_proj", heads), ("k_proj", groups), ("v_proj", groups))
            layers.append(
                LayerWeights(
                    input_norm=vector(files.get(at + "input_layernorm.weight", c.hidden_size)),
                    qkv=matrix(*(files.get(f"{at}self_attn.{n}.weight", size, c.hidden_size) for n, size in parts)),
                    qkv_bias=vector(torch.cat([files.get(f"{at}self_attn.{n}.bias", size) for n, size in parts]))
                    if c.qkv_bias
                    else None,
                    qk_norms=(
                        vector(files.get(at + "self_attn.q_norm.weight", c.head_dim)),
                        vector(files.get(at + "self_attn.k_norm.weight", c.head_dim)),
                    )
                    if c.qk_norm
                    else None,
                    o=matrix(files.get(at + "self_attn.o_proj.weight", c.hidden_size, heads)),
                    post_norm=vector(files.get(at + "post_attention_layernorm.weight", c.hidden_size)),
                    gate_up=matrix(
                        files.get(at + "mlp.gate_proj.weight", c.intermediate_size, c.hidden_size),
                        files.get(at + "mlp.up_proj.weight", c.intermediate_size, c.hidden_size),
                    ),
                    down=matrix(files.get(at + "mlp.down_proj.weight", c.hidden_size, c.intermediate_size)),
                )
            )
        embedding = matrix(files.get("model.embed_tokens.weight", c.vocab_size, c.hidden_size))
        head = embedding
        if not c.tie_embeddings:
            head = matrix(files.get("lm_head.weight", c.vocab_size, c.hidden_size))
        return Weights(embedding, layers, vector(files.get("model.norm.weight", c.hidden_size)), head)
