"""The CUDA kernels on one GPU: right, row-invariant, and how fast each is against the floor of its bytes.

    PYTHONPATH=src python bench/kernels.py --json results.json [--quick]

Qwen3-4B's shapes with random weights in bfloat16. Times are medians of CUDA graph replays over all 36 layers' distinct
weights (8 GB), so nothing is read from the cache. Tiles are swept per weight; a variant that does not compile is
reported and left out.
"""

import argparse
import contextlib
import functools
import itertools
import json
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import kernel_checks
import torch
from kernel_builds import Job, build, jobs_of_checks, product
from torch import Tensor

from specd.engine.kernels import attention, cuda
from specd.engine.kernels.cuda import CudaOps
from specd.engine.kernels.lanes import as_lanes
from specd.engine.kernels.linear import Tile

HIDDEN, HEADS, GROUPS, SIZE, INNER, VOCAB, LAYERS = 2560, 32, 8, 128, 9728, 151936, 36
WEIGHTS = {  # columns, depth; gated ones are two matrices
    "qkv": ((HEADS + 2 * GROUPS) * SIZE, HIDDEN),
    "o": (HIDDEN, HEADS * SIZE),
    "gate_up": (INNER, HIDDEN),
    "down": (HIDDEN, INNER),
    "head": (VOCAB, HIDDEN),
}
SPLITS = {"qkv": (1, 2, 3), "o": (4, 6, 8), "down": (4, 6, 8), "gate_up": (1,), "head": (1,)}
ROWS = (1, 16, 64, 128)
SWEPT = (1, 64, 128, 2048)
PLANS = {  # of attention, by rows: R, warps, stages
    1: [(16, 4, 3), (16, 4, 5), (16, 2, 4)],
    16: [(64, 4, 3), (64, 4, 5)],
    64: [(64, 4, 2), (64, 4, 4), (128, 8, 3)],
    128: [(64, 4, 2), (64, 4, 4), (128, 8, 3)],
}
WHOLES = [(64, 4, 2), (64, 4, 3), (128, 8, 2), (128, 8, 3)]  # the same of attention in one program
EARLY = (0, 1, 2)
PAGE = 64
STARTED = time.monotonic()


def say(*parts: object) -> None:
    print(f"[{time.monotonic() - STARTED:5.1f}]", *parts, flush=True)


def chosen(name: str, rows: int) -> tuple[Tile, int]:
    """The tile and the splits that CudaOps takes."""
    columns, depth = WEIGHTS[name]
    tile = cuda.tile_for(rows, columns, depth, torch.bfloat16, gated=name == "gate_up")
    return tile, 1 if name in ("gate_up", "head") else cuda.splits_for(columns, depth)


def shared(job: Job) -> Job:
    """The job that stands for it in compiling: rows 1 and 16 have the same code, and so have all splits of few rows."""
    _, name, columns, depth, rows, tile, splits = job
    return ("tile", name, columns, depth, max(rows, 16), tile, splits if rows > 128 else 2)


def candidates(name: str, rows: int) -> list[Tile]:
    """Tiles to try: what fits shared memory (227 KiB)."""
    bm = max(16, rows)
    found = []
    if rows > 128:
        for bn, bk, stages, warps in (
            (128, 64, 3, 8),
            (128, 64, 4, 8),
            (256, 64, 3, 8),
            (64, 64, 4, 8),
            (128, 64, 3, 4),
        ):
            if name == "gate_up" and bn == 256:
                continue
            found.append(Tile(128, bn, bk, stages, warps))
        return found
    matrices = 2 if name == "gate_up" else 1
    kinds = [(64, 128, 4, 4), (64, 128, 3, 4), (64, 128, 6, 4), (128, 128, 4, 4), (64, 64, 6, 4), (128, 64, 6, 4)]
    if bm > 16:
        kinds = list(itertools.product((64, 128, 256), (64, 128), (3, 4, 5), (4, 8)))
    for bn, bk, stages, warps in kinds:
        size = (bn * matrices + bm) * bk * 2 * stages
        registers = bn * bm * matrices // warps // 32
        if size <= 225_000 and (bm == 16 or 32 <= registers <= 128):
            found.append(Tile(bm, bn, bk, stages, warps))
    return found


# Timing


def graph_us(call: Callable[[], object], repeats: int = 9) -> float:
    """Median microseconds of a replay of the captured call."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            call()
        times = []
        for _ in range(repeats + 2):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record(stream)
            graph.replay()
            last.record(stream)
            last.synchronize()
            times.append(first.elapsed_time(last) * 1000)
    del graph
    return statistics.median(times[2:])


def bandwidth() -> dict[str, float]:
    """TB/s of a device copy (read and written) and of a sum (read), over 4 GB."""
    source = torch.empty(1 << 31, dtype=torch.bfloat16, device="cuda").normal_()
    target = torch.empty_like(source)
    copy = 2 * source.nbytes / graph_us(lambda: target.copy_(source)) / 1e6
    read = source.nbytes / graph_us(lambda: torch.amax(source.view(torch.int32).view(4096, -1), dim=1)) / 1e6
    return {"copy_tb_s": copy, "read_tb_s": read}


class Model:
    """Weights and caches of all layers, and one step over them as the graphs call it."""

    def __init__(self, layers: int, context: int) -> None:
        def draw(*shape: int, scale: float = 0.02) -> Tensor:
            return torch.empty(*shape, dtype=torch.bfloat16, device="cuda").normal_(std=scale)

        self.weights: dict[str, list[Tensor]] = {
            name: [
                draw(columns * (2 if name == "gate_up" else 1), depth) for _ in range(1 if name == "head" else layers)
            ]
            for name, (columns, depth) in WEIGHTS.items()
        }
        self.norm = torch.ones(HIDDEN, dtype=torch.bfloat16, device="cuda")
        self.small = torch.ones(SIZE, dtype=torch.bfloat16, device="cuda")
        slots = (context + 256) // PAGE * PAGE
        self.caches = [
            (draw(slots, GROUPS, SIZE, scale=1.0), draw(slots, GROUPS, SIZE, scale=1.0)) for _ in range(layers)
        ]
        self.table = torch.randperm(slots // PAGE, device="cuda").int()
        self.layers = layers

    def step(
        self, ops: CudaOps, x: Tensor, base: Tensor, rope: tuple[Tensor, Tensor], slots: Tensor,
        lanes: Tensor | None = None, leave: frozenset[str] = frozenset(),
    ) -> Tensor:  # fmt: skip
        """One forward pass; `leave`: parts left out, to see what they cost."""
        delta: Tensor | None = None
        w = self.weights
        for layer in range(self.layers):
            normed = x if "norm" in leave else ops.add_rms_norm(x, delta, self.norm, 1e-6)
            qkv = ops.projection(normed, w["qkv"][layer])
            k, v = self.caches[layer]
            q = torch.empty(x.shape[0], HEADS, SIZE, dtype=x.dtype, device=x.device)
            if "rope" not in leave:
                q = ops.qk_norm_rope_store(qkv, (self.small, self.small), 1e-6, rope, slots, k, v)
            mixed = q if "attention" in leave else ops.attention(q, k, v, self.table, PAGE, base, lanes)
            delta = ops.projection(mixed.view(x.shape[0], -1), w["o"][layer])
            normed = x if "norm" in leave else ops.add_rms_norm(x, delta, self.norm, 1e-6)
            delta = ops.projection(ops.gated(normed, w["gate_up"][layer]), w["down"][layer])
        last = x if "norm" in leave else ops.add_rms_norm(x, delta, self.norm, 1e-6)
        return last if "head" in leave else ops.linear(last, w["head"][0])

    def inputs(self, rows: int, base: int) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
        x = torch.empty(rows, HIDDEN, dtype=torch.bfloat16, device="cuda").normal_()
        position = torch.arange(base, base + rows, device="cuda")
        slots = self.table.long()[position // PAGE] * PAGE + position % PAGE
        rope = torch.rand(rows, SIZE // 2, device="cuda"), torch.rand(rows, SIZE // 2, device="cuda")
        return x, torch.full((1,), base, dtype=torch.int32, device="cuda"), rope, slots


@contextlib.contextmanager
def tried(what: object) -> Iterator[None]:
    """One measurement that may fail alone."""
    try:
        yield
    except Exception as error:
        say("FAILED", what, f"{type(error).__name__}: {error}"[-400:])
        if os.environ.get("TRACE"):
            traceback.print_exc()


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
        short = [f"{t.bn}/{t.bk}/{t.stages}/{t.warps}/{t.early}:{u:.1f}" for u, t in measured[:4]]
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
    tiles: list[Job] = [
        ("tile", name, *WEIGHTS[name], rows, tile, splits)
        for name in arguments.names.split(",")
        for rows in SWEPT
        for splits in SPLITS[name]
        for tile in candidates(name, rows)
    ]
    jobs = jobs_of_checks() if "checks" in parts else []
    if "sweep" in parts:
        jobs += [shared(job) for job in tiles]
    if "attention" in parts:
        jobs += [("whole", HEADS, GROUPS, SIZE, plan, 256) for plan in WHOLES]
        jobs += [
            ("attention", HEADS, GROUPS, SIZE, torch.bfloat16, rows, mode, 256, plan)
            for rows in ROWS
            for plan, mode in [(None, "tree"), *((plan, "chain") for plan in (None, *PLANS[rows]))]
        ]
    if "step" in parts:
        for name, rows in itertools.product(WEIGHTS, (1, 32, 64, 128, 2048)):
            jobs.append(("tile", name, *WEIGHTS[name], rows, *chosen(name, rows)))
        for name, early in itertools.product(WEIGHTS, EARLY):
            tile, splits = chosen(name, 1)
            jobs.append(("tile", name, *WEIGHTS[name], 1, replace(tile, early=early), splits))
        jobs += [("small", HIDDEN, HEADS, GROUPS, SIZE, torch.bfloat16, p, 1) for p in (1, 2, 3, 4, 6)]
    failed = build(list(dict.fromkeys(jobs)), say)
    tiles = [job for job in tiles if shared(job) not in failed]
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
        results["sweep"] = sweep(model, tiles, read)
        save()
    if "attention" in parts:
        results["attention"] = attention_times(model)
        save()
    if "step" in parts:
        results["step"] = step_times(model, results.get("sweep", {}))
        save()
    say("done")


def attention_times(model: Model) -> dict[str, float]:
    """Microseconds a layer of attention alone, by rows, context and plan of tiles."""
    ops, found, kept = CudaOps(), {}, attention.plan
    for context, rows in itertools.product((2048, 16384), PLANS):
        _, base, _, _ = model.inputs(rows, context)
        q = torch.empty(rows, HEADS, SIZE, dtype=torch.bfloat16, device="cuda").normal_()
        lanes = as_lanes(torch.ones(rows, rows, dtype=torch.bool, device="cuda").tril())

        def layers(lanes: Tensor | None = None, q: Tensor = q, base: Tensor = base) -> None:
            for k, v in model.caches:
                ops.attention(q, k, v, model.table, PAGE, base, lanes)

        for plan in (kept(rows * 4, q.dtype), *PLANS[rows]):
            with tried(("attention", context, rows, plan)):
                attention.plan = lambda *_, plan=plan: plan
                found[f"{context} {rows} {plan}"] = graph_us(layers, 5) / LAYERS
        attention.plan = kept
        programs, many, whole = attention.PROGRAMS, attention.MANY, attention.WHOLE
        for count in (132, 264, 640) if rows > 16 else ():
            with tried(("attention", context, rows, count)):
                attention.PROGRAMS = dict.fromkeys((16, 64, 128), count)
                found[f"{context} {rows} programs {count}"] = graph_us(layers, 5) / LAYERS
        for plan in WHOLES if rows > 16 else ():
            with tried(("attention", context, rows, "whole", plan)):
                attention.MANY, attention.WHOLE = 0, plan
                found[f"{context} {rows} whole {plan}"] = graph_us(layers, 5) / LAYERS
        attention.PROGRAMS, attention.MANY, attention.WHOLE = programs, many, whole
        with tried(("tree attention", context, rows)):
            found[f"{context} {rows} tree"] = graph_us(functools.partial(layers, lanes), 5) / LAYERS
    for key, us in found.items():
        say(f"attention {key:28s} {us:7.2f} us")
    _, base, _, _ = model.inputs(2048, 2048)
    q = torch.empty(2048, HEADS, SIZE, dtype=torch.bfloat16, device="cuda").normal_()
    base.zero_()
    with tried("prefill attention"):
        us = (
            graph_us(lambda: [ops.attention(q, k, v, model.table, PAGE, base, None) for k, v in model.caches[:4]], 5)
            / 4
        )
        found["prefill 2048"] = us
        say(f"attention prefill 2048 {us:.1f} us, {2 * 2048 * 2048 * HEADS * SIZE / us / 1e6:.0f} TFLOP/s (causal)")
    return found


def best_tiles(swept: dict[str, Any]) -> dict[tuple[int, int], tuple[int, dict[int, Tile]]]:
    """By columns and depth: the splits that are fastest over 1, 64 and 128 rows together, and the tiles by rows."""
    found: dict[tuple[int, int], tuple[int, dict[int, Tile]]] = {}
    for name, shape in WEIGHTS.items():
        measured = {key: value for key, value in swept.items() if key.split()[0] == name}
        cost: dict[int, float] = {}
        for key, value in measured.items():
            splits, rows = (int(part) for part in key.split()[1:])
            cost[splits] = cost.get(splits, 0.0) + (value[0][0] if rows <= 128 else value[0][0] / 100)
        if cost:
            splits = min(cost, key=lambda key: cost[key])
            tiles = {int(k.split()[2]): Tile(**v[0][1]) for k, v in measured.items() if k.split()[1] == str(splits)}
            found[shape] = splits, tiles
    return found


def step_times(model: Model, swept: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of a whole step's forward pass and head, and without some of its parts."""
    ops, found, kept = CudaOps(), {}, cuda.tile_for
    x, base, rope, slots = model.inputs(1, 2048)
    for early in EARLY:
        cuda.tile_for = lambda *a, early=early, **k: replace(kept(*a, **k), early=early)
        with tried(("step", early)):
            ms = graph_us(lambda: model.step(ops, x, base, rope, slots)) / 1000
            found[f"2048 1 early {early}"] = ms
            say(f"step M 1, early {early}: {ms:.3f} ms")
    best, kept_splits = best_tiles(swept), cuda.splits_for
    if len(best) == len(WEIGHTS):

        def best_tile(rows: int, columns: int, depth: int, *_: object, gated: bool = False) -> Tile:
            return best[columns, depth][1][1 if rows <= 16 else 64 if rows <= 64 else 128 if rows <= 128 else 2048]

        say("best", {shape: splits for shape, (splits, _) in best.items()})
        for early in EARLY[:2]:
            cuda.tile_for = lambda *a, early=early, **k: replace(best_tile(*a, **k), early=early)
            cuda.splits_for = lambda columns, depth, gated=False: 1 if gated else best[columns, depth][0]
            for rows in (1, 16, 64, 128, 2048) if early == 0 else (1,):
                x, base, rope, slots = model.inputs(rows, 2048 if rows <= 128 else 0)
                with tried(("best step", rows)):
                    parts = frozenset({"head"} if rows > 128 else ())
                    ms = graph_us(lambda: model.step(ops, x, base, rope, slots, leave=parts), 5) / 1000  # noqa: B023
                    found[f"best {rows} early {early}"] = ms
                    say(f"step with the sweep's best tiles, M {rows} early {early}: {ms:.3f} ms")
    cuda.tile_for, cuda.splits_for = kept, kept_splits
    for context, rows in [(2048, m) for m in (1, 2, 4, 8, 16, 32, 64, 128)] + [(16384, 1), (16384, 16)]:
        x, base, rope, slots = model.inputs(rows, context)
        with tried(("step", context, rows)):
            found[f"{context} {rows}"] = graph_us(lambda: model.step(ops, x, base, rope, slots)) / 1000  # noqa: B023
            say(f"step context {context} M {rows}: {found[f'{context} {rows}']:.3f} ms")
    for rows in (1, 16, 64, 128):
        x, base, rope, slots = model.inputs(rows, 2048)
        for leave in ("attention", "rope", "norm", "head", "attention rope norm", "attention rope norm head"):
            with tried(("step without", rows, leave)):
                parts = frozenset(leave.split())
                ms = graph_us(lambda: model.step(ops, x, base, rope, slots, leave=parts)) / 1000  # noqa: B023
                found[f"2048 {rows} without {leave}"] = ms
                say(f"step M {rows} without {leave}: {ms:.3f} ms")
    x, base, rope, slots = model.inputs(2048, 0)
    with tried("prefill"):
        us = graph_us(lambda: model.step(ops, x, base, rope, slots, leave=frozenset({"head"})), 5)
        flop = 2 * 2048 * LAYERS * sum(w[0].numel() for n, w in model.weights.items() if n != "head")
        found["prefill 2048 tokens ms"] = us / 1000
        say(f"prefill 2048: {us / 1000:.2f} ms, {flop / us / 1e6:.0f} TFLOP/s in products")
    return found


if __name__ == "__main__":
    main()
