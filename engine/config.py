"""What a model is, read from a Hugging Face config.json, and what the engine was told to do with it.

Supported: dense Qwen3 (`qwen3`) and Qwen2 / Qwen2.5 (`qwen2`: bias on q, k and v, no norm on q and k). Anything else is
refused by name: guessing an architecture gives fluent nonsense.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specd.engine.errors import ModelError

SUPPORTED = "specd runs dense Qwen3 and Qwen2.5 models in bfloat16, float16 or float32 safetensors"


@dataclass(frozen=True)
class ModelConfig:
    """Sizes in elements; rope_theta is the rotary base; stop_ids are the ids that end a generation."""

    architecture: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    rms_norm_eps: float
    rope_theta: float
    max_positions: int
    tie_embeddings: bool
    qkv_bias: bool
    qk_norm: bool
    stop_ids: frozenset[int]

    @property
    def most_kv_tokens(self) -> int:
        """Tokens of the page pool where nobody asks for fewer: four contexts, at most 2^17."""
        return min(4 * self.max_positions, 1 << 17)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values a token takes in float32; half of it in a 16-bit type."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * 4


@dataclass(frozen=True)
class EngineConfig:
    """page_size: tokens of a KV page. prefill_chunk: tokens of one prefill forward, between which a cancel is seen.
    kv_tokens: tokens the page pool holds, for all caches together; None takes four contexts, at most 2^17, and on a GPU
    no more than fit beside the weights. `load` takes chunks of 512 tokens on a GPU where nobody says otherwise."""

    page_size: int = 64
    prefill_chunk: int = 256
    kv_tokens: int | None = None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a model folder, or a ModelError that names it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path.parent} has no {path.name}: name a folder with a model in Hugging Face layout"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path}: {error}; download the model again, or name another folder") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return value


def model_config(folder: Path) -> ModelConfig:
    """The folder's config.json (and generation_config.json for the stop ids). Raises ModelError."""
    raw = read_json(folder / "config.json")
    path = folder / "config.json"
    kind = raw.get("model_type")
    if kind not in ("qwen3", "qwen2"):
        raise ModelError(f"{path}: model_type {kind!r} is not supported. {SUPPORTED}.")
    if "quantization_config" in raw:
        method = raw["quantization_config"].get("quant_method", "unknown")
        raise ModelError(f"{path}: the weights are quantised ({method}), which is not supported. {SUPPORTED}.")
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    if rope_type != "default":
        raise ModelError(f"{path}: rope scaling {rope_type!r} is not supported; remove it to use the native context.")
    if raw.get("use_sliding_window"):
        raise ModelError(f"{path}: sliding-window attention in the target model is not supported. {SUPPORTED}.")

    def need(key: str) -> int:
        value = raw.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ModelError(f"{path}: {key} must be a positive whole number, found {value!r}")
        return value

    heads = need("num_attention_heads")
    kv_heads = need("num_key_value_heads") if "num_key_value_heads" in raw else heads
    if heads % kv_heads:
        raise ModelError(f"{path}: {heads} attention heads cannot share {kv_heads} key/value heads")
    if raw.get("hidden_act", "silu") != "silu":
        raise ModelError(f"{path}: hidden_act {raw['hidden_act']!r} is not supported; Qwen models use silu")
    if kind == "qwen3" and raw.get("attention_bias"):
        raise ModelError(f"{path}: Qwen3 with attention_bias is not supported. {SUPPORTED}.")
    return ModelConfig(
        architecture=str(kind),
        vocab_size=need("vocab_size"),
        hidden_size=need("hidden_size"),
        num_layers=need("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=need("head_dim") if raw.get("head_dim") is not None else need("hidden_size") // heads,
        intermediate_size=need("intermediate_size"),
        rms_norm_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta", raw.get("rope_theta", 10000.0))),
        max_positions=need("max_position_embeddings") if "max_position_embeddings" in raw else 32768,
        tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
        qkv_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        stop_ids=_stop_ids(raw, folder),
    )


def _stop_ids(raw: dict[str, Any], folder: Path) -> frozenset[int]:
    found: set[int] = set()
    sources = [raw]
    if (folder / "generation_config.json").exists():
        sources.append(read_json(folder / "generation_config.json"))
    for source in sources:
        value = source.get("eos_token_id")
        found.update(value if isinstance(value, list) else [value] if isinstance(value, int) else [])
    return frozenset(found)
