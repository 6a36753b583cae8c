"""How long attention and whole steps take, by rows, context and plan of tiles: the second half of bench/kernels.py."""

import functools
import itertools

import torch
from kernel_model import HEADS, LAYERS, PAGE, SIZE, Model, graph_us, say, tried
from torch import Tensor

from specd.engine.kernels import attention
from specd.engine.kernels.cuda import CudaOps
from specd.engine.kernels.lanes import as_lanes

PLANS = {  # of attention, by rows: R, warps, stages
    1: [(16, 4, 3), (16, 4, 5)],
    16: [(64, 4, 2), (64, 4, 5)],
    64: [(64, 4, 2), (128, 8, 3)],
    128: [(64, 4, 2), (128, 8, 3)],
}
WHOLES = [(64, 4, 2), (64, 4, 3), (128, 8, 2), (128, 8, 3)]  # the same of attention in one program


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
        programs, many = attention.PROGRAMS, attention.MANY
        for count in (132, 400, 2048) if rows > 16 else ():
            with tried(("attention", context, rows, count)):
                attention.PROGRAMS = count
                found[f"{context} {rows} programs {count}"] = graph_us(layers, 5) / LAYERS
        for plan in WHOLES if rows > 16 else ():
            with tried(("attention", context, rows, "whole", plan)):
                attention.MANY, attention.plan = 0, lambda *_, plan=plan: plan
                found[f"{context} {rows} whole {plan}"] = graph_us(layers, 5) / LAYERS
        attention.PROGRAMS, attention.MANY, attention.plan = programs, many, kept
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


def step_times(model: Model) -> dict[str, float]:
    """Milliseconds of a whole step's forward pass and head, and without some of its parts."""
    ops, found = CudaOps(), {}
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
