"""Saving and reading: the model folder that specd serves, and the state that training resumes from."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from specd.mini.model import MiniModel, ModelConfig
from specd.mini.tokenizer import tokenizer_config


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as bfloat16 safetensors."""
    stored = {k: v.detach().to(torch.bfloat16).contiguous().cpu() for k, v in tensors.items()}
    save_file(stored, str(path), metadata={"format": "pt"})


def save_model(model: MiniModel, tokenizer: Path, folder: Path) -> None:
    """The folder of a served model: weights, configs, tokenizer, and which prompt form it reads."""
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(model.tensors(), folder / "model.safetensors")
    if tokenizer.resolve() != (folder / "tokenizer.json").resolve():
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
    parts = {
        "config.json": model.config.to_hf(),
        "tokenizer_config.json": tokenizer_config(model.config.context),
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0, "do_sample": False},
        "specd.json": {"prompt": "region"},
    }
    for name, content in parts.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")


def load_model(folder: Path, device: torch.device | str, dtype: torch.dtype = torch.bfloat16) -> MiniModel:
    """A saved model folder, its weights in float32 and activations in `dtype`."""
    config = ModelConfig.from_hf(json.loads((folder / "config.json").read_text()))
    model = MiniModel(config, dtype)
    model.load({k: v.float() for k, v in load_file(str(folder / "model.safetensors")).items()})
    return model.to(device)


def save_state(path: Path, model: nn.Module, optimizer: dict[str, Any], **facts: Any) -> None:
    """All that a later leg needs, written whole or not at all."""
    part = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer, **facts}, part)
    part.replace(path)


def load_state(path: Path, device: torch.device) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return state


def split_file(path: Path, folder: Path, most: int = 15 * 2**20) -> list[Path]:
    """Copy a file in pieces of at most `most` bytes (`cat NAME.0 NAME.1 ... > NAME` puts it together)."""
    data = path.read_bytes()
    pieces = []
    for i in range(0, len(data), most):
        piece = folder / f"{path.name}.{i // most}"
        piece.write_bytes(data[i : i + most])
        pieces.append(piece)
    return pieces


def tensors_of(folder: Path) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = load_file(str(folder / "model.safetensors"))
    return tensors
