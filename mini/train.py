"""Train the bundled model, in legs.

    python -m specd.mini.train --data DATA --out OUT --minutes 20 --until 0.5      # first half of a 20-minute schedule
    python -m specd.mini.train --data DATA --out OUT --minutes 20                  # goes on from OUT/state.pt to the
    end
    torchrun --nproc-per-node 2 -m specd.mini.train ...                            # several GPUs of one machine

DATA holds train.jsonl.xz (specd.mini.corpus) and tokenizer.json (specd.mini.tokenizer). OUT gets the model folder,
state.pt
(weights and optimizer state) and log.jsonl. With --steps instead of --minutes the schedule does not depend on the
clock, and
the same seed and number of workers, legs and processes give the same batches; the arithmetic on CUDA is not bit-exact.
`--tiny` is a small model and batch that a CPU trains in seconds (tests).
"""

import argparse
import gc
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import torch

from specd.mini.checkpoint import load_state, save_model, save_state, tensors_of
from specd.mini.corpus import read_files
from specd.mini.edits import identifier_pool
from specd.mini.inputs import need, need_device, need_same_tokenizer
from specd.mini.model import MiniModel, ModelConfig, take_rows, weighted_loss
from specd.mini.muon import Muon
from specd.mini.packing import MAX_DOCUMENTS, PackSource, row_count
from specd.mini.runner import Step, World


@dataclass(frozen=True)
class Options:
    data: Path
    out: Path
    minutes: float | None = None  # length of the whole schedule, or ...
    steps: int | None = None  # ... the same in steps
    until: float = 1.0  # part of the schedule at which this leg ends
    rate: float = 0.012
    adam_rate: float = 0.0018
    flat: float = 0.05  # part of the schedule before the rate falls, linearly, to zero
    warmup: int = 150  # steps
    pack: int = 65_536  # positions a step and process
    longest: int = 6700  # tokens of a document
    workers: int = 14
    seed: int = 0
    device: str = "cuda"
    weights: Path | None = None  # a model folder to start from where there is no state.pt
    begin: float = 0.0  # part of the schedule at which that start is
    save_every: float = 120.0  # seconds


TINY_MODEL = ModelConfig(vocabulary=8192, layers=2, hidden=64, heads=2, kv_heads=2, head_dim=32, mlp=128)
TINY: dict[str, Any] = {"pack": 1024, "longest": 900, "workers": 1, "device": "cpu", "warmup": 5}


def rate_factor(progress: float, step: int, options: Options) -> float:
    """Warm-up in steps, flat, then a straight line to zero at the end of the schedule."""
    rise = min(1.0, (step + 1) / options.warmup)
    return rise * min(1.0, max(0.003, (1 - progress) / (1 - options.flat)))


class Journal:
    """Appends JSON lines to a log, and prints them; only the first process does."""

    def __init__(self, path: Path, active: bool):
        self.path, self.active, self.start = path, active, time.monotonic()

    def __call__(self, **facts: Any) -> None:
        if self.active:
            line = json.dumps({"t": round(time.monotonic() - self.start, 1), **facts})
            print(line, flush=True)
            with self.path.open("a") as f:
                f.write(line + "\n")


def train(options: Options, config: ModelConfig, log_every: int = 100) -> MiniModel:
    """One leg. Returns the trained model; everything is in options.out as well."""
    need(options.data / "train.jsonl.xz", options.data / "tokenizer.json")
    need_device(options.device)
    if options.weights and not (options.out / "state.pt").exists():
        need(options.weights / "model.safetensors")
        need_same_tokenizer(options.weights, options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    state_path, tokenizer = options.out / "state.pt", options.data / "tokenizer.json"
    world_rank = int(os.environ.get("RANK", "0"))
    journal = Journal(options.out / "log.jsonl", world_rank == 0)
    start: dict[str, Any] = (
        torch.load(state_path, map_location="cpu", weights_only=True, mmap=True) if state_path.exists() else {}
    )
    first_step, progress = int(start.get("step", 0)), float(start.get("progress", options.begin))
    start.clear()

    files = read_files(options.data / "train.jsonl.xz")
    pool = identifier_pool(Random(0).sample(files, min(4000, len(files))), Random(0))
    gc.collect()
    gc.freeze()  # keeps forked workers from copying pages
    source = PackSource(
        files, pool, tokenizer, workers=options.workers, size=options.pack, longest=options.longest,
        seed=(options.seed * 1009 + first_step) * 64 + world_rank,
    )  # fmt: skip
    try:
        world = World(options.device)
        return _leg(options, config, world, source, journal, first_step, progress, log_every)
    finally:
        source.close()


def _leg(
    options: Options,
    config: ModelConfig,
    world: World,
    source: PackSource,
    journal: Journal,
    first_step: int,
    progress: float,
    log_every: int,
) -> MiniModel:
    device, is_cuda = world.device, world.device.type == "cuda"
    torch.manual_seed(options.seed)
    model = MiniModel(config, torch.bfloat16 if is_cuda else torch.float32).to(device)
    optimizer = Muon(
        model, rate=options.rate, adam_rate=options.adam_rate, compiled=is_cuda,
        flat_dtype=torch.bfloat16 if world.size > 1 and is_cuda else torch.float32,
    )  # fmt: skip
    state_path = options.out / "state.pt"
    if state_path.exists():
        state = load_state(state_path, device)
        model.load_state_dict(state["model"])
        optimizer.load(state["optimizer"])
        del state
    elif options.weights:
        model.load({k: v.float() for k, v in tensors_of(options.weights).items()})
    loss_of: Callable[..., torch.Tensor] = weighted_loss
    if is_cuda:
        for layer in model.layers:
            layer.forward = torch.compile(layer.forward, dynamic=False)
        loss_of = torch.compile(weighted_loss, dynamic=False)
    count = sum(p.numel() for p in model.parameters())
    journal(
        event="start",
        parameters=count,
        step=first_step,
        progress=round(progress, 4),
        processes=world.size,
        rate=options.rate,
    )

    size, rows = options.pack, row_count(options.pack)

    def buffer(n: int | tuple[()], dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(n, dtype=dtype, device=device)

    tokens, bounds, where = (buffer(n, torch.int32) for n in (size, MAX_DOCUMENTS, rows))
    labels, weights, positions = buffer(rows, torch.int16), buffer(rows, torch.float16), buffer(size, torch.int32)
    factor, sums = buffer((), torch.float32), buffer(2, torch.float32)
    longest = max(options.longest, min(6016, size))

    def forward_backward() -> None:
        w = weights.float()
        x, _ = model(tokens, positions, bounds, longest)
        loss = loss_of(take_rows(x, where.long()), labels.long(), w, model.embedding, model.norm)
        total = w.sum()
        (loss / total).backward()  # type: ignore[no-untyped-call]
        optimizer.collect()
        sums.add_(torch.stack((loss.detach(), total)))

    step_once = Step(
        [tokens, bounds, where, labels, weights, positions, factor],
        forward_backward,
        lambda: world.add_up(optimizer.flat),
        lambda: optimizer.step(factor),
        lambda text: journal(event="note", text=text),
    )
    step, begin, clock, saved, lr = first_step, progress, 0.0, time.monotonic(), 0.0
    while True:
        if step - first_step == 5:
            if is_cuda:
                torch.cuda.synchronize()
            clock = time.monotonic()
            journal(event="compiled")
        if (step - first_step) % 16 == 0 or options.steps:
            if options.steps:
                progress = step / options.steps
            elif clock and options.minutes:
                progress = begin + (time.monotonic() - clock) / (60 * options.minutes)
            progress, lr = world.same([progress, rate_factor(progress, step, options)])
            source.progress.value = progress
            if progress >= options.until:
                break
        step_once(*source.get().arrays(), torch.tensor(lr))
        step += 1
        if step % log_every == 0 or step - first_step in (1, 5):
            loss, total = sums.tolist()
            sums.zero_()
            journal(
                step=step, progress=round(progress, 4), loss=round(loss / max(total, 1), 6), factor=round(lr, 4),
                tokens=round(step * size * world.size / 1e6, 1),
                seconds=round(time.monotonic() - clock, 1) if clock else 0,
            )  # fmt: skip
            if loss != loss:
                raise SystemExit("the loss is not a number: lower --rate and start again from the last state.pt")
        if world.is_first and clock and time.monotonic() - saved > options.save_every:
            _save(options, model, optimizer, step, progress)
            saved = time.monotonic()
    if is_cuda:
        torch.cuda.synchronize()
    journal(event="end", step=step, progress=round(progress, 4), tokens=round(step * size * world.size / 1e6, 1))
    if world.is_first:
        _save(options, model, optimizer, step, progress)
    world.close()
    return model


def _save(options: Options, model: MiniModel, optimizer: Muon, step: int, progress: float) -> None:
    save_state(options.out / "state.pt", model, optimizer.state(), step=step, progress=progress)
    save_model(model, options.data / "tokenizer.json", options.out)


def parse(argv: list[str] | None = None) -> tuple[Options, ModelConfig]:
    p = argparse.ArgumentParser(
        prog="python -m specd.mini.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--data", type=Path, required=True, help="folder with train.jsonl.xz and tokenizer.json")
    p.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for the model, the state and the log; resumed from if it holds state.pt",
    )
    length = p.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float, help="length of the whole schedule, compilation not counted")
    length.add_argument("--steps", type=int, help="length of the whole schedule in steps")
    p.add_argument(
        "--until", type=float, default=1.0, help="part of the schedule (0 to 1) at which this leg ends; default 1"
    )
    p.add_argument("--rate", type=float, help="Muon's learning rate; default 0.012")
    p.add_argument("--adam-rate", type=float, help="Adam's learning rate (embedding, norms); default 0.0018")
    p.add_argument("--flat", type=float, help="part of the schedule before the rate falls; default 0.05")
    p.add_argument("--workers", type=int, help="processes that make edits, per training process; default 14")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--device", choices=["cuda", "cpu"], help="default cuda")
    p.add_argument(
        "--weights", type=Path, help="model folder to start from where OUT has no state.pt (the optimizer starts anew)"
    )
    p.add_argument("--begin", type=float, help="part of the schedule at which that start is; default 0")
    p.add_argument("--tiny", action="store_true", help="a small model and batch on the CPU, for tests")
    args = p.parse_args(argv)
    if not 0 < args.until <= 1:
        p.error("--until is a part of the schedule, above 0 and at most 1")
    options = Options(args.data, args.out, args.minutes, args.steps, args.until, seed=args.seed)
    if args.tiny:
        options = replace(options, **TINY)
    given = {
        k: getattr(args, k)
        for k in ("rate", "adam_rate", "flat", "workers", "device", "weights", "begin")
        if getattr(args, k) is not None
    }
    return replace(options, **given), TINY_MODEL if args.tiny else ModelConfig()


if __name__ == "__main__":
    train(*parse())
