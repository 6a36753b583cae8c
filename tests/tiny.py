"""TinyQwen: random little models written to a folder in Hugging Face layout, with a byte-level tokenizer.

They load through the engine's own loader and, where a test wants an oracle, through transformers.
"""

import json
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import decoders, models, pre_tokenizers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>"]
END = 258  # <|im_end|>
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 272,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "eos_token_id": END,
    "torch_dtype": "float32",
}


def tensors(config: dict[str, Any], seed: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Random weights by Hugging Face's names; large enough that logits are far apart and attention is not uniform."""
    draw = torch.Generator().manual_seed(seed)
    hidden, heads, groups = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    size, wide = config["head_dim"], config["intermediate_size"]

    def normal(*shape: int) -> torch.Tensor:
        return (torch.randn(shape, generator=draw) * shape[-1] ** -0.5).to(dtype)

    def near_one(n: int) -> torch.Tensor:
        return (1 + 0.2 * torch.randn(n, generator=draw)).to(dtype)

    out = {"model.embed_tokens.weight": torch.randn(config["vocab_size"], hidden, generator=draw).to(dtype)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        shapes = {"q": (heads * size, hidden), "k": (groups * size, hidden), "v": (groups * size, hidden)}
        for name, shape in shapes.items():
            out[f"{at}self_attn.{name}_proj.weight"] = normal(*shape)
            if config["model_type"] == "qwen2":
                out[f"{at}self_attn.{name}_proj.bias"] = normal(shape[0])
        if config["model_type"] == "qwen3":
            out[at + "self_attn.q_norm.weight"] = near_one(size) * 2
            out[at + "self_attn.k_norm.weight"] = near_one(size) * 2
        out[at + "self_attn.o_proj.weight"] = normal(hidden, heads * size)
        out[at + "mlp.gate_proj.weight"] = normal(wide, hidden)
        out[at + "mlp.up_proj.weight"] = normal(wide, hidden)
        out[at + "mlp.down_proj.weight"] = normal(hidden, wide)
        out[at + "input_layernorm.weight"] = near_one(hidden)
        out[at + "post_attention_layernorm.weight"] = near_one(hidden)
    out["model.norm.weight"] = near_one(hidden)
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = torch.randn(config["vocab_size"], hidden, generator=draw).to(dtype)
    return out


def write_tokenizer(folder: Path, special: list[str] | None = None) -> None:
    """One token a byte (ids 0..255), then the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(models.BPE(vocab={char: n for n, char in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in special or SPECIAL])
    inner.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def write(folder: Path, seed: int = 0, *, dtype: torch.dtype = torch.float32, **overrides: Any) -> Path:
    """A model folder with random weights; overrides change config.json's keys."""
    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIG | overrides
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors(config, seed, dtype), str(folder / "model.safetensors"), {"format": "pt"})
    write_tokenizer(folder)
    return folder
