"""Models with random weights in the shapes of real ones, made on the device: nothing is downloaded.

What they say means nothing, but a step of theirs costs what the real model's does.
"""

from dataclasses import replace

import torch
from torch import Tensor

from specd.engine.config import EngineConfig, ModelConfig
from specd.engine.model import Qwen3
from specd.engine.propose.dflash_config import DFlashConfig
from specd.engine.propose.dflash_model import DFlashDrafter
from specd.engine.propose.dflash_weights import DFlashWeights
from specd.engine.weights import LayerWeights, Weights

QWEN3_4B = ModelConfig(
    architecture="qwen3", vocab_size=151936, hidden_size=2560, num_layers=36, num_heads=32, num_kv_heads=8,
    head_dim=128, intermediate_size=9728, rms_norm_eps=1e-6, rope_theta=1e6, max_positions=40960,
    tie_embeddings=True, qkv_bias=False, qk_norm=True, stop_ids=frozenset({151645}),
)  # fmt: skip
QWEN3_8B = replace(QWEN3_4B, hidden_size=4096, intermediate_size=12288, tie_embeddings=False)
SMALL = replace(QWEN3_4B, hidden_size=64, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=16, intermediate_size=96)
SHAPES = {"4b": QWEN3_4B, "8b": QWEN3_8B, "small": SMALL}
TOKENS = 151669  # ids that Qwen3's tokenizer knows
TAPS = (1, 9, 17, 25, 33)  # of z-lab's drafter for Qwen3-4B

_TIED_ROWS = 0.02  # how far one of two near-tie rows is from the other, of its length


class _Maker:
    def __init__(self, device: torch.device, dtype: torch.dtype, seed: int) -> None:
        self._draw = torch.Generator(device).manual_seed(seed)
        self._device, self._dtype = device, dtype

    def normal(self, *shape: int, std: float | None = None) -> Tensor:
        out = torch.empty(shape, device=self._device, dtype=self._dtype)
        return out.normal_(0.0, shape[-1] ** -0.5 if std is None else std, generator=self._draw)

    def near_one(self, n: int) -> Tensor:
        return 1.0 + self.normal(n, std=0.1)

    def layer(self, hidden: int, heads: int, groups: int, size: int, wide: int) -> LayerWeights:
        return LayerWeights(
            input_norm=self.near_one(hidden),
            qkv=self.normal((heads + 2 * groups) * size, hidden),
            qkv_bias=None,
            qk_norms=(self.near_one(size), self.near_one(size)),
            o=self.normal(hidden, heads * size),
            post_norm=self.near_one(hidden),
            gate_up=self.normal(2 * wide, hidden),
            down=self.normal(hidden, wide),
        )


def random_model(
    c: ModelConfig, device: torch.device, dtype: torch.dtype, *, seed: int = 0, engine: EngineConfig | None = None
) -> Qwen3:
    """Every odd row of the head is nearly the row before it: then the best two logits are often a rounding apart, and a
    step that computes in another order is likely to choose another token."""
    make = _Maker(device, dtype, seed)
    layers = [
        make.layer(c.hidden_size, c.num_heads, c.num_kv_heads, c.head_dim, c.intermediate_size)
        for _ in range(c.num_layers)
    ]
    embedding = _with_near_ties(make, c)
    head = embedding if c.tie_embeddings else _with_near_ties(make, c)
    weights = Weights(embedding, layers, make.near_one(c.hidden_size), head)
    return Qwen3(c, weights, engine=engine, vocab_limit=TOKENS)


def _with_near_ties(make: _Maker, c: ModelConfig) -> Tensor:
    rows = make.normal(c.vocab_size, c.hidden_size, std=0.02)
    rows[1::2] = rows[::2] + _TIED_ROWS * rows[1::2]
    return rows


def random_drafter(model: Qwen3, *, layers: int = 5, block: int = 16, seed: int = 1) -> DFlashDrafter:
    """A DFlash drafter in the shape of z-lab's for that model."""
    c = model.config
    taps = TAPS if c.num_layers > TAPS[-1] else tuple(range(c.num_layers))
    config = DFlashConfig(
        hidden_size=c.hidden_size, num_layers=layers, num_heads=c.num_heads, num_kv_heads=c.num_kv_heads,
        head_dim=c.head_dim, intermediate_size=c.intermediate_size, rms_norm_eps=1e-6, rope_theta=1e6,
        max_positions=c.max_positions, attention_bias=False, block_size=block, mask_token_id=TOKENS,
        target_layer_ids=taps, windows=(None,) * layers, is_causal=(False,) * layers, embedding_scale=1.0,
        output_multiplier=1.0, softcap=None,
    )  # fmt: skip
    make = _Maker(model.device, model.dtype, seed)
    weights = DFlashWeights(
        fc=make.normal(c.hidden_size, len(taps) * c.hidden_size),
        hidden_norm=make.near_one(c.hidden_size),
        layers=[
            make.layer(c.hidden_size, c.num_heads, c.num_kv_heads, c.head_dim, c.intermediate_size)
            for _ in range(layers)
        ],
        o_biases=[None] * layers,
        norm=make.near_one(c.hidden_size),
    )
    return DFlashDrafter(config, weights, model)


def to_transformers(model: Qwen3) -> object:
    """The same weights (no copy of them) in transformers' own Qwen3ForCausalLM."""
    import transformers

    c = model.config
    config = transformers.Qwen3Config(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, num_key_value_heads=c.num_kv_heads, head_dim=c.head_dim,
        intermediate_size=c.intermediate_size, rms_norm_eps=c.rms_norm_eps, max_position_embeddings=c.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta}, tie_word_embeddings=c.tie_embeddings,
        attention_bias=False, use_sliding_window=False,
    )  # fmt: skip
    with torch.device("meta"):
        out = transformers.Qwen3ForCausalLM(config).to(model.dtype)
    state = hugging_face(model)
    out.load_state_dict(state, assign=True)
    out.model.rotary_emb = out.model.rotary_emb.__class__(config).to(model.device)  # its tables are no parameters
    return out.eval()


def hugging_face(model: Qwen3) -> dict[str, Tensor]:
    """The weights by Hugging Face's names; views of the model's own."""
    c, w = model.config, model.weights
    queries, groups, wide = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim, c.intermediate_size
    state = {"model.embed_tokens.weight": w.embedding, "model.norm.weight": w.norm, "lm_head.weight": w.head}
    for number, layer in enumerate(w.layers):
        at = f"model.layers.{number}."
        q, k, v = torch.split(layer.qkv, [queries, groups, groups])
        gate, up = torch.split(layer.gate_up, [wide, wide])
        assert layer.qk_norms is not None
        state |= {
            at + "input_layernorm.weight": layer.input_norm,
            at + "post_attention_layernorm.weight": layer.post_norm,
            at + "self_attn.q_proj.weight": q,
            at + "self_attn.k_proj.weight": k,
            at + "self_attn.v_proj.weight": v,
            at + "self_attn.o_proj.weight": layer.o,
            at + "self_attn.q_norm.weight": layer.qk_norms[0],
            at + "self_attn.k_norm.weight": layer.qk_norms[1],
            at + "mlp.gate_proj.weight": gate,
            at + "mlp.up_proj.weight": up,
            at + "mlp.down_proj.weight": layer.down,
        }
    return state
