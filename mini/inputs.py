"""What the scripts of this folder need before they begin: each check ends one with a line that says what to do."""

from pathlib import Path


def need(*paths: Path) -> None:
    """These files or folders are there."""
    for path in paths:
        if not path.exists():
            raise SystemExit(f"{path} is missing; mini/README.md says what makes it")


def need_same_tokenizer(model: Path, data: Path) -> None:
    """The folder `data` holds the model folder's own tokenizer: ids of another mean other words."""
    mine, theirs = data / "tokenizer.json", model / "tokenizer.json"
    need(mine, theirs)
    if mine.read_bytes() != theirs.read_bytes():
        raise SystemExit(f"{mine} is not the tokenizer of {model}: copy {theirs} there")


def need_device(name: str) -> None:
    """A CUDA device, where `name` is "cuda"."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device is seen here; --device cpu runs on the CPU (training there: --tiny)")
