"""Qwen3 for training: packed documents without padding, Hugging Face tensor names, everything that a CUDA graph can
hold.

Documents of a pack see only themselves: variable-length flash attention on CUDA, a dense mask elsewhere. Serving has
its own model (`specd.engine`); tests check that both, and transformers' Qwen3, give the same logits.
Architecture: Qwen3 (Yang et al. 2025, arXiv:2505.09388): pre-norm, grouped-query attention with QK-norm, RoPE, SwiGLU.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class ModelConfig:
    vocabulary: int = 8192
    layers: int = 8
    hidden: int = 384
    heads: int = 6
    kv_heads: int = 6
    head_dim: int = 64
    mlp: int = 768
    rope_theta: float = 1e6
    context: int = 8192

    def to_hf(self) -> dict[str, Any]:
        """What config.json holds."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.mlp, "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim, "max_position_embeddings": self.context,
            "rope_theta": self.rope_theta, "rope_scaling": None, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0, "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 2,
            "pad_token_id": 0,
            "initializer_range": 0.02, "use_sliding_window": False, "sliding_window": None,
            "max_window_layers": self.layers,
            "use_cache": True, "torch_dtype": "bfloat16",
        }  # fmt: skip

    @staticmethod
    def from_hf(c: dict[str, Any]) -> "ModelConfig":
        return ModelConfig(
            c["vocab_size"], c["num_hidden_layers"], c["hidden_size"], c["num_attention_heads"],
            c["num_key_value_heads"],
            c["head_dim"], c["intermediate_size"], float(c["rope_theta"]), c["max_position_embeddings"],
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _same_document(tokens: int, bounds: Tensor) -> Tensor:
    """[T, T] bool: the key is of the query's document and not after it."""
    document = torch.bucketize(torch.arange(tokens, device=bounds.device), bounds[1:].long(), right=True)
    return (document[:, None] == document[None]) & torch.ones(
        tokens, tokens, dtype=torch.bool, device=bounds.device
    ).tril()


@torch.library.custom_op("specd_mini::attention", mutates_args=())
def attention(q: Tensor, k: Tensor, v: Tensor, bounds: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """q [T, heads, D], k and v [T, kv_heads, D], bounds [documents + 1] int32 -> output like q, log-sum-exp."""
    scale = float(q.shape[-1]) ** -0.5
    if q.is_cuda:
        r = torch.ops.aten._flash_attention_forward(
            q, k, v, bounds, bounds, longest, longest, 0.0, True, False, scale=scale
        )
        return r[0], r[1]
    mask = _same_document(q.shape[0], bounds)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)[0].transpose(0, 1)
    return out.contiguous(), q.new_zeros(q.shape[1], q.shape[2], dtype=torch.float32)


@attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, bounds: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(q), q.new_empty(q.shape[1], q.shape[0], dtype=torch.float32)


@torch.library.custom_op("specd_mini::attention_backward", mutates_args=())
def attention_backward(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, bounds: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    scale = float(q.shape[-1]) ** -0.5
    if q.is_cuda:
        seed, offset = torch.zeros(2, dtype=torch.uint64, device=q.device), torch.empty(0, device=q.device)
        dq, dk, dv = torch.ops.aten._flash_attention_backward(
            g.contiguous(), q, k, v, out, lse, bounds, bounds, longest, longest, 0.0, True, seed, offset, scale=scale
        )
        return dq, dk, dv
    tokens, repeat = q.shape[0], q.shape[1] // k.shape[1]
    query, key, value, grad = (
        x.float().transpose(0, 1) for x in (q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), g)
    )
    p = ((query @ key.mT) * scale).masked_fill(~_same_document(tokens, bounds), -1e30).softmax(-1)
    dp = grad @ value.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale

    def fold(x: Tensor) -> Tensor:
        return x.transpose(0, 1).reshape(tokens, -1, repeat, x.shape[-1]).sum(2)

    dq = (ds @ key).transpose(0, 1).contiguous().to(q.dtype)
    return dq, fold(ds.mT @ query).to(k.dtype), fold(p.mT @ grad).to(v.dtype)


@attention_backward.register_fake
def _(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, bounds: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, bounds, ctx.longest = inputs
    ctx.save_for_backward(q, k, v, bounds, *output)


def _backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v, bounds, out, lse = ctx.saved_tensors
    return (*attention_backward(g, q, k, v, out, lse, bounds, ctx.longest), None, None)


attention.register_autograd(_backward, setup_context=_keep)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * weight).to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE on the two halves of the last axis; x [T, heads, D], cos and sin [T, 1, D / 2]."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def project(x: Tensor, *weights: Tensor) -> Tensor:
    """x times the weights stacked, in x's type (the weights themselves stay float32)."""
    w = weights[0] if len(weights) == 1 else torch.cat(weights)
    return F.linear(x, w.to(x.dtype))


def matrix(rows: int, columns: int, std: float | None = None) -> nn.Parameter:
    std = columns**-0.5 if std is None else std
    return nn.Parameter(torch.randn(rows, columns) * std)


def vector(size: int, value: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.full((size,), value))


# attribute of a layer -> its name in a checkpoint
LAYER_NAMES = {
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
    "norm1": "input_layernorm", "norm2": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm",
}  # fmt: skip


class Layer(nn.Module):
    """The weights of one decoder layer; QK-norm starts at 1.3, the two output matrices at zero."""

    def __init__(self, hidden: int, heads: int, kv_heads: int, head_dim: int, mlp: int):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q, self.k, self.v = (matrix(n * head_dim, hidden) for n in (heads, kv_heads, kv_heads))
        self.o = matrix(hidden, heads * head_dim, 0)
        self.gate, self.up, self.down = matrix(mlp, hidden), matrix(mlp, hidden), matrix(hidden, mlp, 0)
        self.norm1, self.norm2 = vector(hidden), vector(hidden)
        self.q_norm, self.k_norm = vector(head_dim, 1.3), vector(head_dim, 1.3)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, bounds: Tensor, longest: int) -> Tensor:
        n, d = x.shape[0], self.head_dim
        widths = (self.heads * d, self.kv_heads * d, self.kv_heads * d)
        q, k, v = project(rms_norm(x, self.norm1), self.q, self.k, self.v).split(widths, -1)  # type: ignore[no-untyped-call]
        q = rotate(rms_norm(q.view(n, self.heads, d), self.q_norm), cos, sin)
        k = rotate(rms_norm(k.view(n, self.kv_heads, d), self.k_norm), cos, sin)
        out, _ = attention(q.contiguous(), k.contiguous(), v.reshape(n, self.kv_heads, d).contiguous(), bounds, longest)
        return self.feed_forward(x + project(out.reshape(n, -1), self.o))

    def feed_forward(self, x: Tensor) -> Tensor:
        gate, up = project(rms_norm(x, self.norm2), self.gate, self.up).chunk(2, -1)
        return x + project(F.silu(gate) * up, self.down)

    def tensors(self, prefix: str) -> dict[str, nn.Parameter]:
        return {f"{prefix}.{name}.weight": getattr(self, attribute) for attribute, name in LAYER_NAMES.items()}


class MiniModel(nn.Module):
    """Qwen3 with tied embeddings. Activations have `dtype`, weights are float32."""

    frequencies: Tensor

    def __init__(self, config: ModelConfig, dtype: torch.dtype = torch.bfloat16):
        super().__init__()
        self.config, self.dtype = config, dtype
        c = config
        self.embedding = matrix(c.vocabulary, c.hidden, 0.02)
        self.norm = vector(c.hidden)
        self.layers = nn.ModuleList(Layer(c.hidden, c.heads, c.kv_heads, c.head_dim, c.mlp) for _ in range(c.layers))
        self.register_buffer(
            "frequencies", c.rope_theta ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim), persistent=False
        )

    def forward(
        self, tokens: Tensor, positions: Tensor, bounds: Tensor, longest: int, taps: tuple[int, ...] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """tokens, positions [T]; bounds [documents + 1] -> outputs [T, hidden] of the last layer and of `taps`."""
        angles = positions[:, None].float() * self.frequencies
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        x = F.embedding(tokens, self.embedding).to(self.dtype)
        kept = []
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, bounds, longest)
            if i in taps:
                kept.append(x)
        return x, kept

    def logits(self, x: Tensor) -> Tensor:
        return project(rms_norm(x, self.norm), self.embedding)

    def tensors(self) -> dict[str, nn.Parameter]:
        """The weights under their Hugging Face names."""
        named = {"model.embed_tokens.weight": self.embedding, "model.norm.weight": self.norm}
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            named |= layer.tensors(f"model.layers.{i}")
        return named

    def load(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.tensors().items():
                parameter.copy_(tensors[name])


class _Rows(torch.autograd.Function):
    """x[rows] for distinct rows (padding may repeat row 0, with zero gradient): the backward is a plain copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = x.shape
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g.new_zeros(ctx.shape).index_copy_(0, ctx.saved_tensors[0], g), None


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    out: Tensor = _Rows.apply(x, rows)  # type: ignore[no-untyped-call]
    return out


def weighted_loss(x: Tensor, labels: Tensor, weights: Tensor, embedding: Tensor, norm: Tensor) -> Tensor:
    """Sum of weight x cross-entropy over rows whose label is not -100; x [rows, hidden] is the last layer's output."""
    logits = project(rms_norm(x, norm), embedding).float()
    return (F.cross_entropy(logits, labels, ignore_index=-100, reduction="none") * weights).sum()
