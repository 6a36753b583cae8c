"""What a DFlash drafter is, read from its config.json: z-lab's checkpoints as they were released, and nothing else.

Keys of the method are looked up in `dflash_config` first and at top level then, as the reference does: checkpoints of
different generations keep them in different places. Formats that look alike are refused by name: their tensors would
load, and the drafts would be quietly wrong. Method and format: DFlash (arXiv 2602.06036) and z-lab's released code.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specd.engine.config import ModelConfig, is_on, positive, read_json, refuse_quantised, rope_theta
from specd.engine.errors import ModelError

SUPPORTED = "specd reads DFlash drafters (architectures: DFlashDraftModel) in safetensors"
_LOOK_ALIKES = {  # what an architecture's name, in lower case, gives away
    "dflash2": "DFlash 2 (convolutions and a candidate selector)",
    "dspark": "DSpark, or DeepSeek's DFlash: there the anchor row predicts too",
    "domino": "Domino (a recurrent projector)",
    "speculator": "a Speculators checkpoint (its own vocabulary and layer numbering)",
    "eagle": "EAGLE",
    "jetspec": "JetSpec",
    "dflare": "DFlare",
}
_OTHER_KEYS = {  # keys that other formats have, wherever they stand
    "conv_kernel_size": "DFlash 2",
    "conv_group_size": "DFlash 2",
    "selector_rank": "DFlash 2",
    "selector_top_k": "DFlash 2",
    "transformer_layer_config": "a Speculators checkpoint",
    "aux_hidden_state_layer_ids": "a Speculators checkpoint",
    "speculators_model_type": "a Speculators checkpoint",
    "sample_from_anchor": "a Speculators checkpoint",
    "projector_type": "Domino",
    "markov_rank": "DSpark",
    "use_swa": "a vLLM variant with a window of its own",
    "swa_window_size": "a vLLM variant with a window of its own",
    "causal": "a vLLM variant with a mask of its own",
}


@dataclass(frozen=True)
class DFlashConfig:
    """A drafter's sizes in elements, its own and not the target's, except hidden_size, which both share.

    block_size: rows of a block, the anchor among them. target_layer_ids: the target's layers whose outputs are its
    context, counted from 0. windows: per layer, how many positions back a row sees, itself included; None is all.
    is_causal: per layer, whether a row sees nothing after itself, in the block too.
    """

    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    rms_norm_eps: float
    rope_theta: float
    max_positions: int
    attention_bias: bool
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    windows: tuple[int | None, ...]
    is_causal: tuple[bool, ...]
    embedding_scale: float
    output_multiplier: float
    softcap: float | None


def dflash_config(folder: Path, target: ModelConfig) -> DFlashConfig:
    """The folder's config.json, for drafting for `target`. Raises ModelError that names what does not fit."""
    path = folder / "config.json"
    raw = read_json(path)
    nested = raw.get("dflash_config") or {}
    if not isinstance(nested, dict):
        raise ModelError(f"{path}: dflash_config must be an object, found {nested!r}")
    _refuse_look_alikes(path, raw, nested)

    def find(key: str) -> Any:
        return nested[key] if nested.get(key) is not None else raw.get(key)

    def whole(key: str, value: Any, least: int = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ModelError(f"{path}: {key} must be a whole number of {least} or more, found {value!r}")
        return value

    def number(key: str, default: float) -> float:
        value = default if find(key) is None else find(key)
        return positive(path, key, value)

    hidden = whole("hidden_size", raw.get("hidden_size"))
    if hidden != target.hidden_size:
        raise ModelError(
            f"{path}: hidden_size is {hidden}, the target's is {target.hidden_size}: the drafter of another model"
        )
    layers = raw.get("num_target_layers")
    if layers is not None and layers != target.num_layers:
        raise ModelError(
            f"{path}: made for a target of {layers} layers, not of {target.num_layers}: the drafter of another model"
        )
    heads = whole("num_attention_heads", raw.get("num_attention_heads"))
    kv_heads = whole("num_key_value_heads", raw.get("num_key_value_heads", heads))
    if heads % kv_heads:
        raise ModelError(f"{path}: {heads} attention heads cannot share {kv_heads} key/value heads")
    if raw.get("hidden_act", "silu") != "silu":
        raise ModelError(f"{path}: hidden_act {raw['hidden_act']!r} is not supported; DFlash drafters use silu")
    num_layers = whole("num_hidden_layers", raw.get("num_hidden_layers"))
    windows = _windows(path, raw, num_layers)
    is_causal = find("is_causal")
    if is_causal is not None and not isinstance(is_causal, bool):
        raise ModelError(f"{path}: is_causal must be true or false, found {is_causal!r:.80}")
    return DFlashConfig(
        hidden_size=hidden,
        num_layers=num_layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=whole("head_dim", raw["head_dim"]) if raw.get("head_dim") is not None else hidden // heads,
        intermediate_size=whole("intermediate_size", raw.get("intermediate_size")),
        rms_norm_eps=positive(path, "rms_norm_eps", raw.get("rms_norm_eps", 1e-6)),
        rope_theta=rope_theta(path, raw),
        max_positions=whole("max_position_embeddings", raw.get("max_position_embeddings", 32768)),
        attention_bias=is_on(path, raw, "attention_bias"),
        block_size=whole("block_size", 16 if find("block_size") is None else find("block_size"), least=2),
        mask_token_id=_mask_token(path, find("mask_token_id"), target),
        target_layer_ids=_taps(path, find("target_layer_ids"), target),
        windows=windows,
        # A config without the key means: two-way in full layers, causal in sliding ones, inside the block too.
        is_causal=tuple(window is not None if is_causal is None else bool(is_causal) for window in windows),
        embedding_scale=number("input_embedding_scale", 1.0),
        output_multiplier=number("output_multiplier", 1.0),
        softcap=number("final_logit_softcapping", 1.0) if find("final_logit_softcapping") else None,
    )


def _refuse_look_alikes(path: Path, raw: dict[str, Any], nested: dict[str, Any]) -> None:
    names = raw.get("architectures") or []
    name = str(names[0]) if isinstance(names, list) and names else ""
    for part, what in _LOOK_ALIKES.items():
        if part in name.lower():
            raise ModelError(f"{path}: {name} is {what}, another format. {SUPPORTED}.")
    for key, what in _OTHER_KEYS.items():
        if nested.get(key, raw.get(key)):
            raise ModelError(f"{path}: {key} belongs to {what}, another format than {name or 'DFlash'}. {SUPPORTED}.")
    if name != "DFlashDraftModel":
        raise ModelError(f"{path}: architecture {name or 'not named'} is not supported. {SUPPORTED}.")
    if raw.get("model_type", "qwen3") != "qwen3":
        raise ModelError(f"{path}: a drafter of model_type {raw['model_type']!r} is not supported. {SUPPORTED}.")
    refuse_quantised(path, raw, SUPPORTED)
    if (path.parent / "mask_embedding.pt").exists():
        raise ModelError(
            f"{path.parent} has a mask_embedding.pt, a vector in place of the mask token's row: not supported"
        )


def _mask_token(path: Path, value: Any, target: ModelConfig) -> int:
    if value is None:
        raise ModelError(
            f"{path} has no mask_token_id (drafters before 2026-02 lack it): download the drafter again, or add the id"
        )
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < target.vocab_size:
        raise ModelError(f"{path}: mask_token_id {value!r} is no row of the target's {target.vocab_size} embeddings")
    return value


def _taps(path: Path, value: Any, target: ModelConfig) -> tuple[int, ...]:
    if value is None:
        raise ModelError(
            f"{path} has no target_layer_ids, and guessing the layers is wrong for most drafters: "
            "download the drafter again, or add them to dflash_config"
        )
    if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
        raise ModelError(f"{path}: target_layer_ids must be a list of different layers, found {value!r}")
    for layer in value:
        if not isinstance(layer, int) or isinstance(layer, bool) or not 0 <= layer < target.num_layers:
            raise ModelError(
                f"{path}: target_layer_ids names {layer!r}; the target's layers are 0..{target.num_layers - 1}"
            )
    return tuple(value)


def _windows(path: Path, raw: dict[str, Any], num_layers: int) -> tuple[int | None, ...]:
    """Per layer the window, None where the layer is full. Hugging Face's rule: `use_sliding_window` turns it on, and
    without `layer_types` the layers from max_window_layers on slide."""
    window = raw.get("sliding_window")
    kinds = raw.get("layer_types")
    if kinds is None:
        on = window is not None and is_on(path, raw, "use_sliding_window")
        first = raw.get("max_window_layers", 28) if on else num_layers
        if not isinstance(first, int):
            raise ModelError(f"{path}: max_window_layers must be a whole number, found {first!r:.80}")
        kinds = ["full_attention" if layer < first else "sliding_attention" for layer in range(num_layers)]
    if not isinstance(kinds, list) or len(kinds) != num_layers:
        raise ModelError(f"{path}: layer_types must name each of the {num_layers} layers, found {kinds!r}")
    if strange := set(map(str, kinds)) - {"full_attention", "sliding_attention"}:
        raise ModelError(f"{path}: layer type {min(strange)!r} is not supported. {SUPPORTED}.")
    if "sliding_attention" in kinds and (
        not isinstance(window, int) or window < 1 or raw.get("use_sliding_window") is False
    ):
        raise ModelError(
            f"{path}: layer_types names sliding layers, but sliding_window is {window!r} and use_sliding_window "
            f"{raw.get('use_sliding_window')!r}: the two contradict each other"
        )
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
