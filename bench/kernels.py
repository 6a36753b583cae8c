"""The CUDA kernels on one GPU: right, row-invariant, and how fast each is against the floor of its bytes.

    PYTHONPATH=src python bench/kernels.py --json results.json [--only PARTS]

Qwen3-4B's shapes with random weights in bfloat16. Times are medians of CUDA graph replays over all 36 layers' distinct
weights (8 GB), so nothing is read from the cache. Tiles are swept per weight; a variant that does not compile is
reported and left out.
"""

import argparse
import itertools
import json
from typing import Any

import kernel_checks
import torch
from kernel_builds import Job, build, jobs_of_checks, product
from kernel_model import GROUPS, HEADS, HIDDEN, LAYERS, SIZE, WEIGHTS, Model, bandwidth, graph_us, say, tried
from kernel_times import PLANS, WHOLES, attention_times, step_times

from specd.engine.kernels import tiles
from specd.engine.kernels.linear import Tile

SPLITS = {"qkv": (1, 2, 3), "o": (3, 4, 6), "down": (3, 4, 6), "gate_up": (1,), "head": (1,)}
ROWS = (1, 16, 64, 128)
SWEPT = (1, 32, 64, 128, 512, 1024)


def chosen(name: str, rows: int) -> tuple[Tile, int]:
    """The tile and the splits that CudaOps takes."""
    columns, depth = WEIGHTS[name]
    splits = 1 if name in ("gate_up", "head") else tiles.splits_for(columns, depth)
    return tiles.by_descriptor(rows, columns, splits, name == "gate_up"), splits


def shared(job: Job) -> Job:
    """The job that stands for it in compiling: rows 1 and 16 have the same code, and so have all splits of few rows."""
    _, name, columns, depth, rows, tile, splits = job
    return ("tile", name, columns, depth, max(rows, 16), tile, splits if rows > 128 else 2)


def candidates(name: str, rows: int) -> list[Tile]:
    """Tiles to try: what fits shared memory (227 KiB) and registers."""
    matrices = 2 if name == "gate_up" else 1
    if rows > 128:
        sizes = [(128, 128, 64), (128, 256, 64), (256, 128, 64), (128, 64, 64), (64, 128, 64)]
        sizes += [(64, 160, 64)] * (matrices == 1)
    else:
        bm = max(16, rows)
        widths = (64, 80, 96, 128, 256) if rows >= 64 else (64, 128, 256)
        sizes = [(bm, bn, bk) for bn in widths for bk in (64, 128)]
    found = []
    for (bm, bn, bk), stages, warps in itertools.product(sizes, (3, 4, 6), (4, 8)):
        size = (bn * matrices + bm) * bk * 2 * stages
        registers = bn * bm * matrices // warps // 32
        if size <= 225_000 and registers <= 128 and (registers >= 32 or warps == 4):
            found.append(Tile(bm, bn, bk, stages, warps))
    return found


def sweep(model: Model, jobs: list[Job], read: float) -> dict[str, Any]:
    """Microseconds of every variant, by weight, splits and rows."""
    times: dict[tuple[str, int, int], list[tuple[float, Tile]]] = {}
    for _, name, _columns, _depth, rows, tile, splits in jobs:
        weights = model.weights[name] if rows <= 128 else model.weights[name][:4]
        x = torch.empty(rows, WEIGHTS[name][1], dtype=torch.bfloat16, device="cuda").normal_()
        with tried((name, rows, tile, splits)):
            us = graph_us(lambda: [product(name, x, weight, tile, splits) for weight in weights], 5) / len(weights)  # noqa: B023
            times.setdefault((name, splits, rows), []).append((us, tile))
    found = {}
    for (name, splits, rows), measured in times.items():
        measured.sort(key=lambda pair: pair[0])
        nbytes = model.weights[name][0].nbytes
        us, tile = measured[0]
        flop = 2 * rows * model.weights[name][0].numel()
        line = f"{name:8s} S{splits} M{rows:<5d} {us:8.2f} us  floor {nbytes / read / 1e6:7.2f}"
        line += f" {nbytes / us / 1e3:6.0f} GB/s"
        line += f" {flop / us / 1e6:5.0f} TFLOP/s" if rows > 128 else ""
        short = [f"{t.bn}/{t.bk}/{t.stages}/{t.warps}:{u:.1f}" for u, t in measured[:4]]
        say(line, " ".join(short))
        found[f"{name} {splits} {rows}"] = [[u, vars(t)] for u, t in measured]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--only", default="checks,sweep,attention,step", help="parts to run")
    parser.add_argument("--names", default=",".join(WEIGHTS), help="weights to sweep")
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    results: dict[str, Any] = {"torch": torch.__version__}
    swept: list[Job] = [
        ("tile", name, *WEIGHTS[name], rows, tile, splits)
        for name in arguments.names.split(",")
        for rows in SWEPT
        for splits in SPLITS[name]
        for tile in candidates(name, rows)
    ]
    jobs = jobs_of_checks() if "checks" in parts else []
    if "sweep" in parts:
        jobs += [shared(job) for job in swept]
    if "attention" in parts:
        jobs += [("attention", HEADS, GROUPS, SIZE, torch.bfloat16, 512, "chain", 256, plan) for plan in WHOLES]
        jobs += [
            ("attention", HEADS, GROUPS, SIZE, torch.bfloat16, rows, mode, 256, plan)
            for rows in ROWS
            for plan, mode in [(None, "tree"), *((plan, "chain") for plan in (None, *PLANS[rows]))]
        ]
    if "step" in parts:
        for name, rows in itertools.product(WEIGHTS, (1, 32, 64, 128, 2048)):
            jobs.append(("tile", name, *WEIGHTS[name], rows, *chosen(name, rows)))
        jobs += [("small", HIDDEN, HEADS, GROUPS, SIZE, torch.bfloat16, p, 1) for p in (1, 2, 3, 4, 6)]
    failed = build(list(dict.fromkeys(jobs)), say)
    swept = [job for job in swept if shared(job) not in failed]
    torch.backends.cuda.matmul.allow_tf32 = False
    results["gpu"] = torch.cuda.get_device_name()
    results |= bandwidth()
    say(results)
    read = max(results["copy_tb_s"], results["read_tb_s"])

    def save() -> None:
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)

    if "checks" in parts:
        results["checks"] = kernel_checks.run(say)
        save()
    model = Model(LAYERS, 16384)
    if "sweep" in parts:
        results["sweep"] = sweep(model, swept, read)
        save()
    if "attention" in parts:
        results["attention"] = attention_times(model)
        save()
    if "step" in parts:
        results["step"] = step_times(model)
        save()
    say("done")


if __name__ == "__main__":
    main()
