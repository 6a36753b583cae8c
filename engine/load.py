"""From a model's folder or hub name to something that generates: config, tokenizer and weights on a device."""

import logging
from dataclasses import dataclass
from pathlib import Path

import torch

from specd.engine.config import EngineConfig, model_config
from specd.engine.errors import ModelError, OutOfMemory
from specd.engine.kernels import cpu
from specd.engine.model import Qwen3
from specd.engine.tokenizer import Tokenizer
from specd.engine.weights import Progress, load_weights

log = logging.getLogger(__name__)

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Loaded:
    """stop_ids: ids that end an answer: the config's, and the chat template's end mark where the tokenizer has one."""

    model: Qwen3
    tokenizer: Tokenizer
    stop_ids: frozenset[int]
    path: Path


def resolve(name: str | Path) -> Path:
    """A folder as given, or the local snapshot of a hub name such as `Qwen/Qwen3-4B`, downloaded if need be."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    text = str(name)
    if folder.exists():
        raise ModelError(f"{folder} is a file; name the folder that holds config.json")
    if text.count("/") != 1 or text.startswith((".", "/", "~")):
        raise ModelError(f"no such model folder: {folder}. Name a folder, or a hub name such as Qwen/Qwen3-4B.")
    from huggingface_hub import snapshot_download  # heavy, and only hub names need it

    try:
        return Path(snapshot_download(text, allow_patterns=["*.json", "*.safetensors"]))
    except Exception as error:  # the library has many kinds: offline, not found, gated
        log.debug("%s: %s", text, error)
        raise ModelError(
            f"{text} is not in the local hub cache and could not be downloaded; check the name, go online once, or "
            "name a local folder"
        ) from None


def pick_device(device: str) -> torch.device:
    """`auto`: CUDA where there is one, else the CPU."""
    if device != "auto":
        try:
            return torch.device(device)
        except RuntimeError:
            raise ModelError(f"unknown device {device!r}; use auto, cpu, or cuda:0") from None
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """`auto`: float32 on a CPU (exact, and fastest with bfloat16 weights kept as stored), bfloat16 elsewhere."""
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if dtype not in _DTYPES:
        raise ModelError(f"unknown dtype {dtype!r}; use auto, {', '.join(_DTYPES)}")
    return _DTYPES[dtype]


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    engine: EngineConfig | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Loads a model. progress is called with a fraction 0..1 and a few words. Raises ModelError or OutOfMemory."""
    folder = resolve(name)
    config = model_config(folder)
    tokenizer = Tokenizer(folder)
    place = pick_device(device)
    kind = pick_dtype(dtype, place)
    widened = place.type == "cpu" and kind == torch.float32 and cpu.load() is not None
    try:
        weights = load_weights(folder, config, device=place, dtype=kind, keep_bfloat16=widened, progress=progress)
    except torch.OutOfMemoryError:
        raise OutOfMemory(
            f"the weights of {folder.name} do not fit the memory of {place}; use a smaller model"
        ) from None
    model = Qwen3(config, weights, engine=engine, vocab_limit=tokenizer.vocab_size)
    if progress:
        progress(1.0, "ready")
    end = tokenizer.token_id("<|im_end|>")
    return Loaded(model, tokenizer, config.stop_ids | ({end} if end is not None else set()), folder)
