"""The mean of models of one shape, weight by weight: of a model and of what a short last leg made of it, for example.

    python -m specd.mini.average MODEL OTHER... --out OUT

Legs that end at a low rate lie in one basin, and the middle of a basin answers more items right than its edges ("model
soups", arXiv:2203.05482). OUT gets the first model's tokenizer and configuration.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from specd.mini.checkpoint import save_tensors, tensors_of


def mean(models: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Tensors by name, summed in float32. Raises ValueError where names, shapes or types differ."""

    def shapes(model: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
        return {name: (tensor.shape, tensor.dtype) for name, tensor in model.items()}

    if any(shapes(model) != shapes(models[0]) for model in models):
        raise ValueError("only models of the same shape and type have a mean")
    return {
        name: torch.stack([model[name].float() for model in models]).mean(0).to(tensor.dtype)
        for name, tensor in models[0].items()
    }


def average(folders: Sequence[Path], out: Path) -> None:
    """Writes the mean of the models in `folders` to `out`, a new folder or the first one's."""
    tensors = mean([tensors_of(folder) for folder in folders])
    out.mkdir(parents=True, exist_ok=True)
    for file in folders[0].glob("*.json"):
        if out.resolve() != folders[0].resolve():
            shutil.copy(file, out / file.name)
    save_tensors(tensors, out / "model.safetensors")


def main() -> None:
    p = argparse.ArgumentParser(
        prog="python -m specd.mini.average", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("models", nargs="+", type=Path, help="model folders of one shape; a drafter's folder will do too")
    p.add_argument("--out", type=Path, required=True, help="folder for the mean")
    args = p.parse_args()
    if len(args.models) < 2:
        p.error("a mean takes two models or more")
    try:
        average(args.models, args.out)
    except (OSError, ValueError) as error:
        p.exit(1, f"{p.prog}: {error}\n")


if __name__ == "__main__":
    main()
