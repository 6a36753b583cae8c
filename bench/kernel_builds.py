"""Compiles kernels for bench/kernels.py in many processes at once; Triton's cache on disk hands over the results.

The processes are forked before the GPU is used. They launch nothing: the kernels' wrappers run on tensors of the device
"meta", and each launch only compiles.
"""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import torch
from kernel_checks import by_pointer
from torch import Tensor

from specd.engine.kernels import attention, linear, linear_tma
from specd.engine.kernels.accept import accept
from specd.engine.kernels.cuda import CudaOps
from specd.engine.kernels.linear import Tile
from specd.engine.kernels.sample import Sampler

BF16 = torch.bfloat16
Job = tuple[Any, ...]  # the name of a function below and its arguments


def empty(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def product(name: str, x: Tensor, weight: Tensor, tile: Tile, splits: int) -> Tensor:
    """One of the model's products by a given tile."""
    launch = linear_tma.launch if linear_tma.takes(x, weight) else linear.launch
    if name == "gate_up":
        return launch(x, weight, None, tile, gated=True)
    if name == "head":
        return launch(x, weight, None, tile)
    return launch(x, weight, None, tile, splits=splits, partial=True, in_order=x.shape[0] > 128)


def build_tile(name: str, columns: int, depth: int, rows: int, tile: Tile, splits: int) -> None:
    product(name, empty(rows, depth), empty(columns * (2 if name == "gate_up" else 1), depth), tile, splits)


def build_products(columns: int, depth: int, dtype: torch.dtype, rows: int, bias: bool, kinds: str) -> None:
    ops = CudaOps()
    x, weight, vector = empty(rows, depth, dtype=dtype), empty(columns, depth, dtype=dtype), empty(columns, dtype=dtype)
    if "l" in kinds:
        ops.linear(x, weight, vector if bias else None)
    if "p" in kinds:
        ops.projection(x, weight, vector if bias else None)
    if "g" in kinds:
        ops.gated(x, weight)


def build_by_pointer(columns: int, depth: int, dtype: torch.dtype, kinds: str) -> None:
    x, weight, vector = empty(16, depth, dtype=dtype), empty(columns, depth, dtype=dtype), empty(columns, dtype=dtype)
    for name in ("linear", "projection", "gated"):
        if name[0] in kinds:
            by_pointer(x, weight, vector, name)


def build_small(hidden: int, heads: int, groups: int, size: int, dtype: torch.dtype, parts: int, rows: int) -> None:
    ops = CudaOps()
    x = empty(rows, hidden, dtype=dtype)
    ops.add_rms_norm(
        x, empty(parts, rows, hidden, dtype=torch.float32) if parts else None, empty(hidden, dtype=dtype), 1e-6
    )
    width = (heads + 2 * groups) * size
    qkv = empty(parts, rows, width, dtype=torch.float32) if parts else empty(rows, width, dtype=dtype)
    rope = empty(rows, size // 2, dtype=torch.float32), empty(rows, size // 2, dtype=torch.float32)
    cache, norm = empty(1024, groups, size, dtype=dtype), empty(size, dtype=dtype)
    ops.qk_norm_rope_store(qkv, (norm, norm), 1e-6, rope, empty(rows, dtype=torch.int64), cache, cache)


def build_attention(
    heads: int, groups: int, size: int, dtype: torch.dtype, rows: int, mode: str, pages: int,
    plan: tuple[int, int, int] | None = None,
) -> None:  # fmt: skip
    kept = attention.plan
    if plan is not None:
        attention.plan = lambda *_: plan
    try:
        q, cache = empty(rows, heads, size, dtype=dtype), empty(1024, groups, size, dtype=dtype)
        table, place = empty(pages, dtype=torch.int32), empty(1, dtype=torch.int32)
        counts = empty(256, dtype=torch.int32)
        lanes = empty(rows, rows, dtype=torch.int32) if mode == "tree" else None
        if mode in ("chain", "tree"):
            attention.attention(q, cache, cache, table, 64, place, lanes, counts)
        else:
            spans = empty(rows, 2, dtype=torch.int64) if mode == "spans" else None
            attention.span_attention(q, cache, cache, table, 64, place, place, spans, counts)
    finally:
        attention.plan = kept


def build_draws(vocabulary: int, dtype: torch.dtype) -> None:
    sampler = Sampler(torch.device("cpu"))
    sampler.floats, sampler.ints = sampler.floats.to("meta"), sampler.ints.to("meta")
    sampler.choose(empty(4, vocabulary, dtype=dtype), empty(4, dtype=torch.int64))


def build_accept(width: int, is_tree: bool) -> None:
    tokens, one = empty(width, dtype=torch.int64), empty(1, dtype=torch.int32)
    accept(tokens, tokens, one, empty(width, dtype=torch.int32) if is_tree else None)


def build_one(job: Job) -> tuple[Job, str]:
    """Compiles what a job launches -> the job, and why it could not be, or nothing."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run
    JITFunction.run = lambda self, *args, grid, warmup, **kw: run(self, *args, grid=(1,), warmup=True, **kw)
    try:
        globals()[f"build_{job[0]}"](*job[1:])
        return job, ""
    except Exception as error:
        return job, f"{type(error).__name__}: {error}"[-300:]
    finally:
        JITFunction.run = run


def build(jobs: list[Job], say: Callable[..., None]) -> set[Job]:
    """Compiles what the jobs launch; those that failed, each of which is reported."""
    failed = set()
    say(f"compiling for {len(jobs)} jobs")
    with multiprocessing.get_context("fork").Pool(min(16, os.cpu_count() or 1)) as pool:
        for job, error in pool.imap_unordered(build_one, jobs, chunksize=1):
            if error:
                failed.add(job)
                say("cannot compile", job, error)
    say(f"compiled; {len(failed)} failed")
    return failed


def jobs_of_checks() -> list[Job]:
    """What kernel_checks.run launches."""
    jobs: list[Job] = []
    for columns, depth, kinds in (
        (6144, 2560, "p"), (2560, 4096, "p"), (2560, 9728, "lp"), (19456, 2560, "g"), (151936, 2560, "l"),
        (1152, 384, "lpg"),
    ):  # fmt: skip
        jobs += [
            ("products", columns, depth, BF16, rows, True, kind) for rows in (1, 32, 64, 128, 384) for kind in kinds
        ]
        jobs.append(("by_pointer", columns, depth, BF16, kinds))
    jobs += [("products", 102, 200, torch.float16, rows, True, k) for rows in (1, 32, 64, 128, 384) for k in "lpg"]
    jobs += [("products", 384, 768, torch.float32, rows, True, k) for rows in (1, 32, 384) for k in "lpg"]
    jobs += [("by_pointer", 102, 200, torch.float16, "lpg"), ("by_pointer", 384, 768, torch.float32, "lpg")]
    for heads, groups, size, dtype in (
        (32, 8, 128, BF16), (6, 6, 64, BF16), (28, 4, 128, torch.float16), (6, 6, 64, torch.float32)
    ):  # fmt: skip
        for mode, rows in (
            ("chain", 1), ("chain", 8), ("chain", 16), ("chain", 32), ("chain", 128), ("chain", 384), ("tree", 16),
            ("tree", 64), ("tree", 128), ("span", 16), ("spans", 16),
        ):  # fmt: skip
            jobs.append(("attention", heads, groups, size, dtype, rows, mode, 16))
        jobs.append(("small", 2560, heads, groups, size, dtype, 0, 1))
    jobs += [("small", 2560, 32, 8, 128, BF16, 4, 1), ("small", 384, 6, 6, 64, torch.float32, 4, 1)]
    jobs += [("draws", 151936, BF16), ("draws", 8192, torch.float32), ("accept", 32, True), ("accept", 32, False)]
    return jobs
