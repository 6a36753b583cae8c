"""A model of Qwen3-4B's shapes for bench/kernels.py: random weights, caches, a step over them; and timing."""

import contextlib
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from specd.engine.kernels.cuda import CudaOps

HIDDEN, HEADS, GROUPS, SIZE, INNER, VOCAB, LAYERS = 2560, 32, 8, 128, 9728, 151936, 36
WEIGHTS = {  # columns, depth; gated ones are two matrices
    "qkv": ((HEADS + 2 * GROUPS) * SIZE, HIDDEN),
    "o": (HIDDEN, HEADS * SIZE),
    "gate_up": (INNER, HIDDEN),
    "down": (HIDDEN, INNER),
    "head": (VOCAB, HIDDEN),
}
PAGE = 64
STARTED = time.monotonic()


def say(*parts: object) -> None:
    print(f"[{time.monotonic() - STARTED:5.1f}]", *parts, flush=True)


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
