"""What a model is, read from a Hugging Face config.json, and what the engine was told to do with it.

Supported: dense Qwen3 (`qwen3`) and Qwen2 / Qwen2.5 (`qwen2`: bias on q, k and v, no norm on q and k). Anything else is
refused by name: guessing an architecture gives fluent nonsense.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specd.engine.errors import ModelError

SUPPORTED = "specd runs dense Qwen3 and Qwen2.5 models in bfloat16, float16 or float32 safetensors"
_ARCHITECTURES = {"qwen3": "Qwen3ForCausalLM", "qwen2": "Qwen2ForCausalLM"}
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size")


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
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot read {path}: {error}; download the model again, or name another folder") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return value


def positive(path: Path, key: str, value: Any) -> float:
    """A number above 0 of a config.json, or a ModelError that names the key."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if 0 < float(value) < math.inf:
                return float(value)
        except OverflowError:
            pass
    raise ModelError(f"{path}: {key} must be a positive number, found {value!r:.80}")


def is_on(path: Path, raw: dict[str, Any], key: str) -> bool:
    """Whether a switch of a config.json is on, null and absent being off; a ModelError for what is neither."""
    value = raw.get(key)
    if value is not None and not isinstance(value, bool):
        raise ModelError(f"{path}: {key} must be true or false, found {value!r:.80}")
    return bool(value)


def refuse_quantised(path: Path, raw: dict[str, Any], supported: str) -> None:
    """Raises ModelError where a config.json says that the weights are quantised; null says that they are not."""
    found = raw.get("quantization_config")
    if found is None:
        return
    if not isinstance(found, dict):
        raise ModelError(f"{path}: quantization_config must be an object or null, found {found!r:.80}")
    method = found.get("quant_method", "unknown")
    raise ModelError(f"{path}: the weights are quantised ({method}), which is not supported. {supported}.")


def rope_theta(path: Path, raw: dict[str, Any]) -> float:
    """The rotary base of a config.json of either style. Raises ModelError for scaled positions."""
    theta = raw.get("rope_theta", 10000.0)
    for key in ("rope_scaling", "rope_parameters"):
        rope = raw.get(key)
        if rope is None:
            continue
        if not isinstance(rope, dict) or any(isinstance(value, dict) for value in rope.values()):
            raise ModelError(f"{path}: {key} must be null or one object for all layers, found {rope!r:.80}")
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            raise ModelError(f"{path}: rope scaling {kind!r} is not supported; remove it to use the native context.")
        theta = rope.get("rope_theta", theta)
    return positive(path, "rope_theta", theta)


def model_config(folder: Path) -> ModelConfig:
    """The folder's config.json (and generation_config.json for the stop ids). Raises ModelError."""
    raw = read_json(folder / "config.json")
    path = folder / "config.json"
    kind = raw.get("model_type")
    if kind not in ("qwen3", "qwen2"):
        raise ModelError(f"{path}: model_type {kind!r} is not supported. {SUPPORTED}.")
    names = raw.get("architectures") or [_ARCHITECTURES[kind]]
    if names != [_ARCHITECTURES[kind]]:
        raise ModelError(f"{path}: architectures {names!r:.80} of a {kind} are not supported. {SUPPORTED}.")
    for key in _EXPERTS:
        if raw.get(key):
            raise ModelError(f"{path}: {key} is {raw[key]!r:.80}: mixtures of experts are not supported. {SUPPORTED}.")
    refuse_quantised(path, raw, SUPPORTED)
    if is_on(path, raw, "use_sliding_window"):
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
    if kind == "qwen3" and is_on(path, raw, "attention_bias"):
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
        rms_norm_eps=positive(path, "rms_norm_eps", raw.get("rms_norm_eps", 1e-6)),
        rope_theta=rope_theta(path, raw),
        max_positions=need("max_position_embeddings") if "max_position_embeddings" in raw else 32768,
        tie_embeddings=is_on(path, raw, "tie_word_embeddings"),
        qkv_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        stop_ids=_stop_ids(raw, folder),
    )


def _stop_ids(raw: dict[str, Any], folder: Path) -> frozenset[int]:
    found: set[int] = set()
    sources = {folder / "config.json": raw}
    if (folder / "generation_config.json").exists():
        sources[folder / "generation_config.json"] = read_json(folder / "generation_config.json")
    for path, source in sources.items():
        value = source.get("eos_token_id")
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in ids):
            raise ModelError(f"{path}: eos_token_id must be a token id or a list of them, found {value!r:.80}")
        found.update(ids)
    return frozenset(found)
