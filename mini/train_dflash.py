"""Train the DFlash drafter of a trained model.

    python -m specd.mini.train_dflash --data DATA --model MODEL --out MODEL/dflash --minutes 4
    torchrun --nproc-per-node 2 -m specd.mini.train_dflash ...

One target forward without gradient gives the context features of a whole pack; per pack many anchors are drawn from the
answers, each with a block of 16 rows. Labels are the answers' own tokens, weights exp(-(i - 1) / 7) for row i.
`--tiny` runs a small drafter on the CPU (tests).
"""

import argparse
import gc
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from specd.mini.checkpoint import load_model, save_tensors, tensors_of
from specd.mini.corpus import read_files
from specd.mini.drafter import BLOCK, BlockMask, Drafter, DrafterConfig, sample_blocks
from specd.mini.edits import identifier_pool
from specd.mini.evaluate import LENGTHS, encoded, read_items
from specd.mini.inputs import need, need_device, need_same_tokenizer
from specd.mini.model import MiniModel, project
from specd.mini.muon import Muon
from specd.mini.packing import Pack, Packer, PackSource
from specd.mini.runner import World
from specd.mini.tokenizer import MASK, FastEncoder
from specd.mini.train import Journal


@dataclass(frozen=True)
class Options:
    data: Path
    model: Path
    out: Path
    minutes: float | None = None
    steps: int | None = None
    rate: float = 0.02
    adam_rate: float = 0.003
    flat: float = 0.3
    blocks: int = 2048  # a pack
    pack: int = 65_536
    longest: int = 6700
    workers: int = 14
    seed: int = 0
    device: str = "cuda"
    layers: int = 3
    weights: Path | None = None  # a drafter's folder to start from


TINY: dict[str, Any] = {"pack": 1024, "longest": 900, "blocks": 8, "workers": 1, "device": "cpu", "layers": 1}


class Trainer:
    """A frozen target and its drafter on one device."""

    def __init__(self, options: Options, world: World):
        device, self.is_cuda = world.device, world.device.type == "cuda"
        self.options, self.device = options, device
        self.target: MiniModel = load_model(
            options.model, device, torch.bfloat16 if self.is_cuda else torch.float32
        ).requires_grad_(False)
        layers = self.target.config.layers
        taps = (1, 3, 5, 6) if layers == 8 else tuple(range(layers - 1)) or (0,)
        torch.manual_seed(options.seed + 2)
        c = self.target.config
        small = {} if layers == 8 else {"heads": c.heads, "kv_heads": c.kv_heads, "mlp": c.mlp}
        self.drafter = Drafter(DrafterConfig(c, layers=options.layers, taps=taps, **small)).to(device)
        if options.weights:
            started = tensors_of(options.weights)
            for name, parameter in self.drafter.tensors().items():
                if name not in started or started[name].shape != parameter.shape:
                    raise SystemExit(f"{options.weights} is no drafter of this shape: its {name} differs")
                parameter.data.copy_(started[name])
        self.mask = BlockMask(options.pack, options.blocks, device)
        self.generator = torch.Generator(device=device)
        self.generator.manual_seed(options.seed * 64 + world.rank)
        self.optimizer = Muon(self.drafter, rate=options.rate, adam_rate=options.adam_rate, compiled=self.is_cuda)
        if self.is_cuda:
            for layer in [*self.target.layers, *self.drafter.layers]:
                layer.forward = torch.compile(layer.forward, dynamic=False)
        steps = torch.arange(BLOCK - 1, device=device).float()
        self.row_weights = torch.exp(-steps / 7).repeat(options.blocks)

    def blocks(self, pack: Pack) -> tuple[Tensor, Tensor, Tensor]:
        """(drafter output at rows 1..15 [blocks x 15, hidden], labels [blocks, 15], anchors [blocks])."""
        tokens, bounds, rows, labels, _, positions = (torch.from_numpy(x).to(self.device) for x in pack.arrays())
        anchors, starts, wanted = sample_blocks(
            rows.long(), labels.long(), positions, self.options.blocks, self.generator
        )
        self.mask.set(anchors, starts)
        with torch.no_grad():
            longest = max(self.options.longest, min(6016, self.options.pack))
            taps = torch.cat(self.target(tokens, positions, bounds, longest, self.drafter.config.taps)[1], -1)
        block = torch.full((len(anchors), BLOCK), MASK, device=self.device)
        block[:, 0] = tokens[anchors]
        at = (positions[anchors][:, None] + torch.arange(BLOCK, device=self.device)[None]).flatten()
        x = F.embedding(block.flatten(), self.target.embedding).to(self.target.dtype)
        out: Tensor = self.drafter(x, taps, at, positions, self.mask.flex() if self.is_cuda else self.mask.dense())
        return out.view(len(anchors), BLOCK, -1)[:, 1:].reshape(len(anchors) * (BLOCK - 1), -1), wanted, anchors

    def step(self, pack: Pack, factor: float, world: World) -> Tensor:
        """One training step; gives the mean weighted loss."""
        out, wanted, _ = self.blocks(pack)
        flat = wanted.flatten()
        weights = self.row_weights * (flat != -100)
        logits = project(out, self.target.embedding).float()
        loss = (F.cross_entropy(logits, flat, ignore_index=-100, reduction="none") * weights).sum() / weights.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.collect()
        world.add_up(self.optimizer.flat)
        self.optimizer.step(torch.tensor(factor, device=self.device))
        return loss.detach()

    def accepted(self, pack: Pack) -> tuple[Tensor, Tensor]:
        """Drafts accepted at random anchors of a pack: (counts [blocks], at most 15 each, anchors [blocks])."""
        with torch.no_grad():
            out, wanted, anchors = self.blocks(pack)
            right = project(out, self.target.embedding).argmax(-1).view_as(wanted) == wanted
        return right.int().cumprod(1).sum(1), anchors

    def save(self, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        save_tensors(self.drafter.tensors(), out / "model.safetensors")
        (out / "config.json").write_text(json.dumps(self.drafter.config.to_hf(), indent=1) + "\n")


def held_out_acceptance(trainer: Trainer, options: Options, most_packs: int = 40) -> dict[str, float]:
    """Mean accepted drafts of 15 at uniform anchors of held-out answers, by kind and by length of the answer."""
    items = read_items(options.data / "eval.jsonl.xz")
    Random(5).shuffle(items)
    sums: dict[str, list[float]] = {}

    def count(packer: Packer, inside: list[tuple[int, int]]) -> None:
        accepted, anchors = trainer.accepted(packer.pack())
        rows = torch.tensor([packer.rows[first] for first, _ in inside])
        owner = torch.searchsorted(rows, anchors.cpu() - 1, right=True) - 1
        for k, a in zip(owner.tolist(), accepted.tolist(), strict=True):
            item = items[inside[k][1]]
            for name in ("all", item.length, item.edit.kind):
                cell = sums.setdefault(name, [0, 0])
                cell[0] += a
                cell[1] += 1

    packer, inside, packs = Packer(options.pack), list[tuple[int, int]](), 0
    for i, (prompt, answer) in enumerate(encoded(items, FastEncoder(options.data / "tokenizer.json"))):
        if len(prompt) + len(answer) > min(options.pack, options.longest):
            continue
        if not packer.fits(prompt, answer):
            count(packer, inside)
            packer, inside, packs = Packer(options.pack), [], packs + 1
            if packs >= most_packs:
                break
        inside.append((packer.add(prompt, answer)[0], i))
    if inside:
        count(packer, inside)
    order = [x[0] for x in LENGTHS]
    return {
        k: round(a / n, 2) for k, (a, n) in sorted(sums.items(), key=lambda c: (c[0] != "all", c[0] not in order, c[0]))
    }


def train(options: Options) -> dict[str, float]:
    """Train, save, and measure. Returns the held-out acceptance (empty in all but the first process)."""
    need(options.data / "train.jsonl.xz", options.model / "model.safetensors")
    need_same_tokenizer(options.model, options.data)
    need_device(options.device)
    if options.weights:
        need(options.weights / "model.safetensors")
    files = read_files(options.data / "train.jsonl.xz")
    pool = identifier_pool(Random(0).sample(files, min(4000, len(files))), Random(0))
    gc.collect()
    gc.freeze()
    rank = int(os.environ.get("RANK", "0"))
    source = PackSource(
        files, pool, options.data / "tokenizer.json", workers=options.workers, size=options.pack,
        longest=options.longest,
        seed=777_000 + options.seed * 64 + rank,
    )  # fmt: skip
    try:
        world = World(options.device)
        source.progress.value = 0.8  # all lengths from the start
        trainer = Trainer(options, world)
        options.out.mkdir(parents=True, exist_ok=True)
        journal = Journal(options.out / "log.jsonl", world.is_first)
        journal(event="start", parameters=sum(p.numel() for p in trainer.drafter.parameters()), processes=world.size)
        _loop(options, world, trainer, source, journal)
        result: dict[str, float] = {}
        if world.is_first:
            trainer.save(options.out)
            if (options.data / "eval.jsonl.xz").exists():
                result = held_out_acceptance(trainer, options)
                journal(event="accepted", **result)
        world.close()
        return result
    finally:
        source.close()


def _loop(options: Options, world: World, trainer: Trainer, source: PackSource, journal: Any) -> None:
    step, progress, clock, loss = 0, 0.0, 0.0, torch.zeros(())
    while True:
        if step == 4:
            if trainer.is_cuda:
                torch.cuda.synchronize()
            clock = time.monotonic()
            journal(event="compiled")
        if step % 8 == 0 or options.steps:
            if options.steps is not None:
                progress = step / options.steps if options.steps else 1.0
            elif clock and options.minutes:
                progress = (time.monotonic() - clock) / (60 * options.minutes)
            (progress,) = world.same([progress])
            if progress >= 1:
                return
        factor = min(1.0, (step + 1) / 100) * min(1.0, max(0.01, (1 - progress) / (1 - options.flat)))
        loss = trainer.step(source.get(), factor, world)
        step += 1
        if step % 100 == 0 or step in (1, 4):
            journal(step=step, progress=round(progress, 4), loss=round(loss.item(), 5), factor=round(factor, 3))


def main() -> None:
    p = argparse.ArgumentParser(
        prog="python -m specd.mini.train_dflash",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder with train.jsonl.xz, tokenizer.json and (to measure) eval.jsonl.xz",
    )
    p.add_argument("--model", type=Path, required=True, help="the trained model's folder")
    p.add_argument("--out", type=Path, required=True, help="folder for the drafter")
    length = p.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float)
    length.add_argument("--steps", type=int)
    p.add_argument("--weights", type=Path, help="a drafter's folder to start from, of an earlier target for example")
    p.add_argument("--workers", type=int)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--device", choices=["cuda", "cpu"])
    p.add_argument("--tiny", action="store_true")
    args = p.parse_args()
    options = Options(args.data, args.model, args.out, args.minutes, args.steps, seed=args.seed)
    if args.tiny:
        options = replace(options, **TINY)
    given = {k: getattr(args, k) for k in ("workers", "device", "weights") if getattr(args, k) is not None}
    train(replace(options, **given))


if __name__ == "__main__":
    main()
