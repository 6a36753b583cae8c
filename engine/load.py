"""From a model's folder or hub name to something that generates: config, tokenizer and weights on a device."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from specd.engine import memory
from specd.engine.config import SUPPORTED, EngineConfig, ModelConfig, model_config, read_json
from specd.engine.errors import ModelError, OutOfMemory
from specd.engine.kernels import cpu
from specd.engine.model import Qwen3
from specd.engine.propose.dflash_config import DFlashConfig, dflash_config
from specd.engine.tokenizer import Tokenizer
from specd.engine.weights import Progress, TensorFolder, load_weights

log = logging.getLogger(__name__)

GPU_CHUNK = 1024  # tokens of a prefill forward on a GPU: some 16 ms for 4 billion weights

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
    text = str(name)
    try:
        folder = Path(name).expanduser()
        if folder.is_dir():
            return folder.resolve()
        is_file = folder.exists()
    except (RuntimeError, OSError) as error:  # ~nobody, a name too long, a folder that may not be looked into
        raise ModelError(f"no such model folder: {text:.200} ({error}). Name a folder that you can read.") from None
    if is_file:
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


def capture(model: Qwen3, taps: Sequence[int] = (), progress: Progress | None = None) -> None:
    """Has the model run its steps as CUDA graphs, with the layers `taps` tapped, in a second or two; again where it had
    graphs with other taps. Does nothing where the device's operations cannot be captured. Raises OutOfMemory."""
    from specd.engine import graphs, static_step  # they know the model

    if not model.is_capturable:
        return
    if model.steps is not None:
        if model.steps.takes(1, taps):
            return
        graphs.release(model.steps)
    graphs.capture_steps(static_step.StaticStep(model, taps), progress)


def _refuse_spare(folder: Path, config: ModelConfig) -> None:
    """Raises ModelError for a layer's tensor that the config has no use for: the model would run, and be another one.
    What stands beside the layers, such as a tied head, is not looked at."""
    parts = {"input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.o_proj.weight"}
    parts |= {f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")}
    parts |= {f"self_attn.{name}_proj.{kind}" for name in "qkv" for kind in ("weight", "bias")[: 1 + config.qkv_bias]}
    parts |= {f"self_attn.{name}_norm.weight" for name in "qk" if config.qk_norm}
    with ExitStack() as stack:
        names = TensorFolder(folder, stack).names()
    for name in sorted(names):
        layer, _, part = name.removeprefix("model.layers.").partition(".")
        if not name.startswith("model.layers.") or "rotary_emb" in part:
            continue
        if not layer.isdecimal() or len(layer) > 9 or int(layer) >= config.num_layers:
            raise ModelError(
                f"{folder} has a tensor {name}, but its config.json says num_hidden_layers {config.num_layers}: "
                "download the model again"
            )
        if part not in parts:
            raise ModelError(f"{folder} has a tensor {name}, which is no part of a {config.architecture}. {SUPPORTED}.")


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Progress of a part of the work, from `start` to `end` of the whole."""
    return progress and (lambda fraction, words: progress(start + (end - start) * fraction, words))


def _drafter_configs(drafters: Sequence[str | Path], target: ModelConfig) -> list[ModelConfig | DFlashConfig]:
    """Of those that can be read: what is wrong with the others is told when they are loaded."""
    configs: list[ModelConfig | DFlashConfig] = []
    for drafter in drafters:
        try:
            folder = resolve(drafter)
            is_dflash = read_json(folder / "config.json").get("architectures") == ["DFlashDraftModel"]
            configs.append(dflash_config(folder, target) if is_dflash else model_config(folder))
        except ModelError as error:
            log.debug("%s: %s", drafter, error)
    return configs


def _sized(
    engine: EngineConfig,
    config: ModelConfig,
    drafters: Sequence[ModelConfig | DFlashConfig],
    place: torch.device,
    kind: torch.dtype,
) -> EngineConfig:
    """With the page pool's size. Raises OutOfMemory, with figures, where even a small one does not fit."""
    plans = [
        memory.drafter_plan(drafter, len(drafter.target_layer_ids), item=kind.itemsize)
        if isinstance(drafter, DFlashConfig)
        else memory.plan(drafter, item=kind.itemsize, chunk=engine.prefill_chunk)
        for drafter in drafters
    ]
    plan = memory.plan(config, item=kind.itemsize, chunk=engine.prefill_chunk, drafters=plans)
    free, _ = torch.cuda.mem_get_info(place)
    return replace(engine, kv_tokens=plan.tokens(free, engine.kv_tokens, config.most_kv_tokens))


def load(
    name: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    engine: EngineConfig | None = None,
    progress: Progress | None = None,
    drafters: Sequence[str | Path] = (),
    steps: bool = True,
) -> Loaded:
    """Loads a model. progress is called with a fraction 0..1 and a few words. Raises ModelError or OutOfMemory.

    On an accelerator memory is counted first: drafters are those that will be loaded beside the model, to leave them
    room; and its steps are captured (graphs.py), if `steps`, with what a DFlash drafter among them taps."""
    folder = resolve(name)
    config = model_config(folder)
    tokenizer = Tokenizer(folder)
    place = pick_device(device)
    kind = pick_dtype(dtype, place)
    on_gpu = place.type == "cuda"
    beside = _drafter_configs(drafters, config) if on_gpu else []
    if on_gpu:
        engine = _sized(engine or EngineConfig(prefill_chunk=GPU_CHUNK), config, beside, place, kind)
    widened = place.type == "cpu" and kind == torch.float32 and cpu.load() is not None
    _refuse_spare(folder, config)
    try:
        told = _part(progress, 0.0, 0.8) if on_gpu else progress
        weights = load_weights(folder, config, device=place, dtype=kind, keep_bfloat16=widened, progress=told)
    except torch.OutOfMemoryError:
        raise OutOfMemory(
            f"the weights of {folder.name} do not fit the memory of {place}; use a smaller model"
        ) from None
    model = Qwen3(config, weights, engine=engine, vocab_limit=tokenizer.vocab_size)
    if on_gpu and steps:
        taps = next((drafter.target_layer_ids for drafter in beside if isinstance(drafter, DFlashConfig)), ())
        capture(model, taps, _part(progress, 0.8, 1.0))
    if progress:
        progress(1.0, "ready")
    end = tokenizer.token_id("<|im_end|>")
    return Loaded(model, tokenizer, config.stop_ids | ({end} if end is not None else set()), folder)
