"""The DFlash drafter for training: many blocks at once, each against its own part of one packed context.

DFlash (z-lab, arXiv:2602.06036), first generation: one context vector per position from several target layers, the
same for
all drafter layers; a block of BLOCK rows (the newest token, then masks) that see the context before them and each
other both
ways; row i predicts the token at its own position. Tensor names and config are those of the released checkpoints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specd.mini.model import Layer, ModelConfig, matrix, project, rms_norm, rotate, vector
from specd.mini.tokenizer import MASK

BLOCK = 16
_TILE = 128  # rows and columns of a tile of the block mask

MaskFunction = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class DrafterConfig:
    target: ModelConfig
    layers: int = 3
    heads: int = 8
    kv_heads: int = 4
    mlp: int = 768
    taps: tuple[int, ...] = (1, 3, 5, 6)  # outputs of these target layers

    def to_hf(self) -> dict[str, Any]:
        t = self.target
        own = {
            "architectures": ["DFlashDraftModel"], "block_size": BLOCK, "num_target_layers": t.layers,
            "dflash_config": {"mask_token_id": MASK, "target_layer_ids": list(self.taps)},
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
            "intermediate_size": self.mlp, "layer_types": ["full_attention"] * self.layers,
            "max_window_layers": self.layers,
        }  # fmt: skip
        return t.to_hf() | own


class DrafterLayer(Layer):
    """A layer whose keys and values come from the context and from the block."""

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        context: Tensor,
        block_rope: tuple[Tensor, Tensor],
        context_rope: tuple[Tensor, Tensor],
        mask: Any,
    ) -> Tensor:
        """x [R, hidden], context [T, hidden]; mask [1, 1, R, T + R] or a flex block mask."""
        rows, tokens, d = x.shape[0], context.shape[0], self.head_dim
        wide, narrow = self.heads * d, self.kv_heads * d
        q, k, v = project(rms_norm(x, self.norm1), self.q, self.k, self.v).split((wide, narrow, narrow), -1)  # type: ignore[no-untyped-call]
        context_k, context_v = project(context, self.k, self.v).split((narrow, narrow), -1)  # type: ignore[no-untyped-call]
        q = rotate(rms_norm(q.view(rows, -1, d), self.q_norm), *block_rope)
        k = rotate(rms_norm(k.view(rows, -1, d), self.k_norm), *block_rope)
        context_k = rotate(rms_norm(context_k.view(tokens, -1, d), self.k_norm), *context_rope)
        keys, values = torch.cat((context_k, k)), torch.cat((context_v.view(tokens, -1, d), v.view(rows, -1, d)))
        q, keys, values = (y.transpose(0, 1)[None] for y in (q, keys, values))
        out = attend(q, keys, values, mask)[0].transpose(0, 1)
        return self.feed_forward(x + project(out.reshape(rows, -1), self.o))


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Any) -> Tensor:
    if isinstance(mask, Tensor):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    from torch.nn.attention.flex_attention import flex_attention

    out: Any = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
    return out  # type: ignore[no-any-return]


class Drafter(nn.Module):
    frequencies: Tensor

    def __init__(self, config: DrafterConfig):
        super().__init__()
        self.config = config
        t, hidden = config.target, config.target.hidden
        self.fc = matrix(hidden, hidden * len(config.taps))
        self.hidden_norm, self.norm = vector(hidden), vector(hidden)
        self.layers = nn.ModuleList(
            DrafterLayer(hidden, config.heads, config.kv_heads, t.head_dim, config.mlp) for _ in range(config.layers)
        )
        self.register_buffer(
            "frequencies", t.rope_theta ** (-torch.arange(0, t.head_dim, 2).float() / t.head_dim), persistent=False
        )

    def context(self, taps: Tensor) -> Tensor:
        """[T, taps x hidden] -> [T, hidden], shared by all layers."""
        return rms_norm(project(taps, self.fc), self.hidden_norm)

    def _rope(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[:, None].float() * self.frequencies
        return angles.cos()[:, None], angles.sin()[:, None]

    def forward(self, x: Tensor, taps: Tensor, block_positions: Tensor, positions: Tensor, mask: Any) -> Tensor:
        """x [R, hidden] embeddings of the blocks -> [R, hidden], ready for the target's head."""
        context = self.context(taps)
        ropes = self._rope(block_positions), self._rope(positions)
        for layer in self.layers:
            x = layer(x, context, *ropes, mask)
        return rms_norm(x, self.norm)

    def tensors(self) -> dict[str, nn.Parameter]:
        """The weights under the names of the released checkpoints."""
        named = {"fc.weight": self.fc, "hidden_norm.weight": self.hidden_norm, "norm.weight": self.norm}
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            named |= layer.tensors(f"layers.{i}")
        return named


class BlockMask:
    """One mask function over static buffers: a block sees its document's tokens before its anchor, and itself."""

    def __init__(self, tokens: int, blocks: int, device: torch.device):
        self.tokens, self.rows = tokens, blocks * BLOCK
        self.anchor = torch.zeros(self.rows, dtype=torch.int32, device=device)
        self.start = torch.zeros(self.rows, dtype=torch.int32, device=device)
        self._row_numbers = torch.arange(self.rows, device=device)

        def sees(b: Any, h: Any, q: Any, k: Any) -> Any:
            in_context = (k < self.anchor[q]) & (k >= self.start[q])
            return in_context | ((k >= tokens) & ((k - tokens) // BLOCK == q // BLOCK))

        self.sees: MaskFunction = sees

    def set(self, anchors: Tensor, starts: Tensor) -> None:
        """Sorted anchors [blocks] and where their documents start [blocks], as positions of the pack."""
        self.anchor.copy_(anchors.repeat_interleave(BLOCK))
        self.start.copy_(starts.repeat_interleave(BLOCK))

    def dense(self) -> Tensor:
        k = torch.arange(self.tokens + self.rows, device=self.anchor.device)
        mask: Tensor = self.sees(0, 0, self._row_numbers[:, None], k[None])
        return mask[None, None]

    def flex(self) -> Any:
        """The tiles that hold something: from the first document's start to the last anchor, then the blocks' own."""
        from torch.nn.attention.flex_attention import BlockMask as FlexMask

        across, down = (self.tokens + self.rows) // _TILE, self.rows // _TILE
        last = (self.anchor.view(down, _TILE).amax(1) - 1).clamp(min=0) // _TILE
        first = self.start.view(down, _TILE).amin(1) // _TILE
        count = last - first + 1
        j = torch.arange(across, device=count.device)[None]
        own = self.tokens // _TILE + torch.arange(down, device=count.device)[:, None]
        tiles = torch.where(j < count[:, None], first[:, None] + j, torch.where(j == count[:, None], own, 0)).int()
        return FlexMask.from_kv_blocks(
            (count + 1).int()[None, None],
            tiles[None, None],
            BLOCK_SIZE=_TILE,
            mask_mod=self.sees,
            seq_lengths=(self.rows, self.tokens + self.rows),
        )


def sample_blocks(
    rows: Tensor, labels: Tensor, positions: Tensor, blocks: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Uniform anchors over a pack's answer tokens: anchors [blocks] sorted, document starts [blocks], labels [blocks,
    BLOCK - 1].

    An anchor is an answer token; its labels are the answer tokens after it, -100 past the answer's end.
    """
    count = (labels != -100).sum()
    i = (torch.rand(blocks, device=rows.device, generator=generator) * count).long().sort()[0]
    anchors = rows[i] + 1
    ahead = torch.arange(1, BLOCK, device=rows.device)[None]
    j = (i[:, None] + ahead).clamp(max=len(rows) - 1)
    is_same = (rows[j] == rows[i][:, None] + ahead) & (i[:, None] + ahead < count)
    return anchors, anchors - positions[anchors.clamp(max=len(positions) - 1)], torch.where(is_same, labels[j], -100)
