"""The sections of bench/h200.py about steps: the machine, the model in hand, its graphs, and their times."""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from replay_target import ReplayTarget
from shapes import SHAPES, random_model

from specd.engine import EngineConfig, SamplingParams, StepDone, generate
from specd.engine.draft import EMPTY
from specd.engine.kv_cache import KVCache
from specd.engine.load import GPU_CHUNK
from specd.engine.model import Qwen3
from specd.engine.static_step import Kind, StaticStep

GREEDY = SamplingParams()


class Bench:
    """What the sections share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.step_ms: dict[tuple[int, Kind], float] = {}
        self._model: Qwen3 | None = None
        self.target: ReplayTarget | None = None
        self.matrix_tflops = 0.0
        self.launch_ms = 0.0  # of a step on the host, beyond its graph

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def model(self) -> Qwen3:
        if self._model is None:
            raise RuntimeError("there is no model: the section build failed")
        return self._model

    @model.setter
    def model(self, model: Qwen3 | None) -> None:
        self._model = model

    @property
    def steps(self) -> StaticStep:
        if self.model.steps is None:
            raise RuntimeError("there are no steps of fixed shape: the section capture failed")
        return self.model.steps

    def synchronize(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize(self.device)

    def tokens(self, count: int, seed: int = 0) -> list[int]:
        draw = torch.Generator().manual_seed(seed)
        return torch.randint(0, 150000, (count,), generator=draw).tolist()

    def device_ms(self, work: Callable[[], object], repeats: int = 30, warm: int = 3) -> float:
        """Median milliseconds on the device of one call of `work`."""
        for _ in range(warm):
            work()
        self.synchronize()
        if not self.is_gpu:
            return statistics.median(seconds_of(work) for _ in range(3)) * 1e3
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
        for begin, end in marks:
            begin.record()
            work()
            end.record()
        self.synchronize()
        return statistics.median(begin.elapsed_time(end) for begin, end in marks)

    def filled(self, length: int) -> KVCache:
        """A cache whose `length` positions hold what the pool holds: random numbers."""
        cache = self.model.new_cache()
        cache.hold(length)
        cache.advance(length)
        return cache


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def machine(bench: Bench) -> dict[str, Any]:
    """Read bandwidth by a sum over 4 GB, copy bandwidth (read + written), and the matrix rate at 8192^3."""
    if not bench.is_gpu:
        return {}
    big = torch.empty(1 << 30, device=bench.device).normal_()
    read = 4 * big.numel() / bench.device_ms(big.sum, 10) / 1e9
    copy = torch.empty_like(big).copy_
    copied = 8 * big.numel() / bench.device_ms(partial(copy, big), 10) / 1e9
    a, b = (torch.randn(8192, 8192, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
    bench.matrix_tflops = 2 * 8192**3 / bench.device_ms(partial(torch.matmul, a, b), 10) / 1e9
    del big, copy, a, b
    torch.cuda.empty_cache()
    return {"read_tb_s": max(read, copied), "sum_tb_s": read, "copy_tb_s": copied, "matrix_tflops": bench.matrix_tflops}


def build(bench: Bench) -> dict[str, Any]:
    """Weights and page pool; a first forward, which compiles what it needs."""
    config = SHAPES[bench.options.shape]
    began = time.perf_counter()
    engine = EngineConfig(kv_tokens=2 * bench.options.far + 16384, prefill_chunk=GPU_CHUNK if bench.is_gpu else 256)
    bench.model = random_model(config, bench.device, bench.dtype, engine=engine)
    for part in (bench.model.pool.k, bench.model.pool.v):
        part.normal_()
    bench.synchronize()
    made = time.perf_counter() - began
    cache = bench.model.new_cache()
    places = torch.arange(64, device=bench.device)
    first = seconds_of(lambda: bench.model.logits(bench.model.forward(places, places, cache).last).sum().item())
    cache.free()
    return {"ops": bench.model.ops.name, "make_weights_s": made, "first_forward_s": first}


def capture(bench: Bench) -> dict[str, Any]:
    """All steps as graphs, with the replay target in them (one small operation)."""
    bench.target = ReplayTarget(bench.model)
    began = time.perf_counter()
    if bench.is_gpu:
        torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(bench.device) if bench.is_gpu else 0
    static = StaticStep(bench.model, override=bench.target.override)
    marks: list[tuple[float, str]] = []
    if bench.is_gpu:
        from specd.engine.graphs import capture_steps

        try:
            capture_steps(static, lambda fraction, words: marks.append((time.perf_counter() - began, words)))
        except Exception:
            bench.model.steps = static  # without graphs: the checks can still be made
            print(*(f"{at:6.2f} s {words}" for at, words in marks), sep="\n")
            raise
    else:
        bench.model.steps = static
    bench.synchronize()
    seconds = time.perf_counter() - began
    print(*(f"{at:6.2f} s {words}" for at, words in marks), sep="\n")
    used = torch.cuda.memory_reserved(bench.device) - before if bench.is_gpu else 0
    return {"capture_s": seconds, "graphs_mib": used / 2**20}


def _time_steps(bench: Bench, context: int, stages: list[tuple[int, Kind]]) -> dict[tuple[int, Kind], float]:
    cache, out = bench.filled(context), dict[tuple[int, Kind], float]()
    for width, kind in stages:
        cache.hold(width)
        bench.steps.inputs.write(cache, bench.tokens(width), width, GREEDY)
        if kind == "tree":
            bench.steps.inputs.write_tree([(row - 1) // 2 - 1 for row in range(1, width)], width)
        out[width, kind] = bench.device_ms(partial(bench.steps.launch, width, kind))
        cache.truncate(context)
    cache.free()
    return out


def steps(bench: Bench) -> dict[str, Any]:
    """Milliseconds of a replay by rows: chains at both contexts, binary trees and reads at the first."""
    widths = bench.steps.widths
    chains: list[tuple[int, Kind]] = [(width, "chain") for width in widths]
    others = [stage for stage in bench.steps.replays if stage[1] != "chain"]
    near = _time_steps(bench, bench.options.context, chains + others)
    far = _time_steps(bench, bench.options.far, chains)
    bench.step_ms = near
    weights = 2 * sum(t.numel() for t in matrices(bench.model)) / 1e12
    return {
        "step_ms": {str(width): near[width, "chain"] for width in widths},
        "step_ms_16k": {str(width): far[width, "chain"] for width in widths},
        "step_ms_tree": {str(width): ms for (width, kind), ms in sorted(near.items()) if kind == "tree"},
        "read_ms": {str(width): ms for (width, kind), ms in sorted(near.items()) if kind == "read"},
        "weights_tb_s": weights / (near[1, "chain"] / 1e3) if bench.is_gpu else 0.0,
    }


def matrices(model: Qwen3) -> list[torch.Tensor]:
    w = model.weights
    return [w.head, *(t for layer in w.layers for t in (layer.qkv, layer.o, layer.gate_up, layer.down))]


def plain(bench: Bench) -> dict[str, Any]:
    """Plain decoding by `generate`, 256 tokens after the context; host time is what a step takes beyond its graph."""
    ids = bench.tokens(bench.options.context, 1)
    count = 256 if bench.is_gpu else 8
    events = generate(bench.model, ids, stop_ids=frozenset(), max_tokens=count)
    stamps = [time.perf_counter() for event in events if isinstance(event, StepDone)]
    gaps = [b - a for a, b in itertools.pairwise(stamps)]
    step = statistics.median(gaps) * 1e3
    cache = bench.filled(bench.options.context)

    def whole_step() -> None:
        bench.steps.step(cache, 5, EMPTY, GREEDY)
        cache.truncate(bench.options.context)

    def bare_step() -> None:
        bench.steps.launch(1, "chain")
        bench.steps.wait()

    walls = {}
    for key, work in (("bare_step_ms", bare_step), ("whole_step_ms", whole_step)):
        walls[key] = statistics.median(seconds_of(work) for _ in range(count)) * 1e3
    middle = bench.filled(bench.options.context + count // 2)
    middle.hold(1)
    bench.steps.inputs.write(middle, [5], 1, GREEDY)
    graph = bench.device_ms(partial(bench.steps.launch, 1, "chain"))
    middle.free()
    cache.free()
    bench.launch_ms = max(0.0, walls["bare_step_ms"] - bench.step_ms.get((1, "chain"), walls["bare_step_ms"]))
    return walls | {
        "plain_tok_s": len(gaps) / (stamps[-1] - stamps[0]),
        "plain_step_ms": step,
        "plain_host_ms": step - graph,
    }
