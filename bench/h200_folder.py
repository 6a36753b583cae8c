"""A model's weights as a folder in Hugging Face layout, for as long as a load is measured."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import save_file
from shapes import hugging_face

from specd.engine.model import Qwen3


@contextmanager
def written(model: Qwen3, tokenizer: Path) -> Iterator[Path]:
    """A folder that `load` reads: config.json, the tokenizer's files, and some safetensors files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in tokenizer.iterdir():
            if path.suffix in (".json", ".jinja", ".txt"):
                shutil.copy(path, folder)
        (folder / "config.json").write_text(json.dumps(_config(model)))
        names = list(hugging_face(model))
        index: dict[str, str] = {}
        for number, start in enumerate(range(0, len(names), 80)):
            state = hugging_face(model)
            if model.config.tie_embeddings:
                del state["lm_head.weight"]
            file = f"model-{number}.safetensors"
            shard = {key: state[key].contiguous().cpu().clone() for key in names[start : start + 80] if key in state}
            save_file(shard, str(folder / file))
            index |= dict.fromkeys(shard, file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
        yield folder


def _config(model: Qwen3) -> dict[str, object]:
    c = model.config
    return {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size, "num_hidden_layers": c.num_layers, "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads, "head_dim": c.head_dim, "intermediate_size": c.intermediate_size,
        "rms_norm_eps": c.rms_norm_eps, "rope_theta": c.rope_theta, "max_position_embeddings": c.max_positions,
        "tie_word_embeddings": c.tie_embeddings, "hidden_act": "silu", "eos_token_id": sorted(c.stop_ids),
    }  # fmt: skip
