"""The bundled model: a small Qwen3 for mechanical code edits, its DFlash drafter, and the scripts that made both.

Importing this package costs nothing: no torch, no numpy. The scripts are `python -m specd.mini.NAME` (see
MODEL_CARD.md).
"""

from importlib.resources import files
from pathlib import Path

__all__ = ["dflash_path", "weights_path"]


def weights_path() -> Path:
    """Folder of the bundled model: config.json, model.safetensors, tokenizer.json, specd.json, ..."""
    return Path(str(files(__name__))) / "weights"


def dflash_path() -> Path:
    """Folder of the bundled model's DFlash drafter, in z-lab's format."""
    return weights_path() / "dflash"
