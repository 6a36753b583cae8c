"""What bench/kernels.py checks on the GPU before it times: right, and the same bits for any number of rows."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from specd.engine import sampling
from specd.engine.choice import accept as accept_on_host
from specd.engine.kernels import linear, tiles
from specd.engine.kernels.accept import accept
from specd.engine.kernels.cuda import CudaOps
from specd.engine.kernels.lanes import as_lanes
from specd.engine.kernels.sample import Sampler
from specd.engine.ops import TorchOps, rope_tables
from specd.engine.verify import tree_layout

BF16, ROWS = torch.bfloat16, (1, 2, 3, 4, 8, 16, 32, 33, 64, 128)


def error(a: Tensor, b: Tensor) -> float:
    """Norm of the difference over the norm."""
    return float((a.double() - b.double()).norm() / b.double().norm())


def poison(*tensors: Tensor) -> None:
    """Fills memory that the next outputs of these sizes will get with NaN."""
    spoilt = [torch.full_like(tensor, float("nan")) for tensor in tensors for _ in range(2)]
    del spoilt


def summed(parts: Tensor) -> Tensor:
    """Partials, added up in order as add_rms_norm does."""
    if parts.dim() == 2:
        return parts
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def by_pointer(x: Tensor, weight: Tensor, bias: Tensor, name: str) -> Tensor:
    """`linear`, `projection` (summed) or `gated` by linear.py's kernel, whatever CudaOps takes."""
    gated = name == "gated"
    splits = tiles.splits_for(*weight.shape) if name == "projection" else 1
    tile = tiles.by_pointer(16, len(weight) // (2 if gated else 1), x.dtype, gated)
    return summed(
        linear.launch(
            x, weight, None if gated else bias, tile, splits=splits, gated=gated, partial=name == "projection"
        )
    )


def products(ops: CudaOps, columns: int, depth: int, dtype: torch.dtype, kinds: str) -> dict[str, Any]:
    """Errors and row bits of `linear`, `projection` and `gated` (kinds: their first letters)."""
    x = torch.randn(384, depth, device="cuda").to(dtype)
    weight = (torch.randn(columns, depth, device="cuda") / depth**0.5).to(dtype)
    bias = torch.randn(columns, device="cuda").to(dtype)
    wide = x.float() @ weight.float().T
    found: dict[str, Any] = {}
    calls: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
        "linear": (lambda x: ops.linear(x, weight, bias), wide + bias.float()),
        "projection": (lambda x: summed(ops.projection(x, weight, bias)), wide + bias.float()),
    }
    calls["gated"] = (lambda x: ops.gated(x, weight), TorchOps().silu_mul(wide))
    for name, (call, expected) in calls.items():
        if name[0] not in kinds:
            continue
        one = torch.cat([call(x[m : m + 1]) for m in range(min(8, len(x)))])
        worst, same = 0.0, True
        for m in (*ROWS, 129, 384):
            out = call(x[:m])
            poison(out)
            out = call(x[:m])
            worst = max(worst, error(out, expected[:m]))
            same &= torch.equal(out[: min(8, m)], one[:m])
            same &= torch.equal(out, by_pointer(x[:m], weight, bias, name))
        found[name] = {"error": worst, "same bits": same}
        largest = call(x)
        for m in (128, 64, 16):
            for first in range(0, 384, 128):
                found[name]["same bits"] &= torch.equal(call(x[first : first + m]), largest[first : first + m])
    return found


def attention(ops: CudaOps, heads: int, groups: int, size: int, dtype: torch.dtype, base: int) -> dict[str, Any]:
    page, rows = 64, 128
    total = base + 512
    slots = (total // page + 3) * page
    table = torch.randperm(slots // page, device="cuda")[: total // page + 1].int()
    position = torch.arange(total, device="cuda")
    where = table.long()[position // page] * page + position % page
    k_cache, v_cache = (torch.randn(slots, groups, size, device="cuda").to(dtype) for _ in range(2))
    qkv = torch.randn(rows, (heads + 2 * groups) * size, device="cuda").to(dtype)
    norms = tuple(torch.randn(size, device="cuda").to(dtype) for _ in range(2))
    cos, sin = rope_tables(1e6, size, total, torch.device("cuda"))
    rope = cos[base : base + rows], sin[base : base + rows]
    twin, found = TorchOps(), {}
    wide = [cache.float() for cache in (k_cache, v_cache)]
    expected = twin.qk_norm_rope_store(
        qkv.float(), (norms[0].float(), norms[1].float()), 1e-6, rope, where[base : base + rows], *wide
    )
    q = ops.qk_norm_rope_store(qkv, (norms[0], norms[1]), 1e-6, rope, where[base : base + rows], k_cache, v_cache)
    found["rope error"] = max(error(q, expected), error(k_cache, wide[0]), error(v_cache, wide[1]))
    wide = [cache.float() for cache in (k_cache, v_cache)]
    whole = ops.attention(q, k_cache, v_cache, table, page, base, None)
    few = 5
    found["error"] = error(whole[:few], twin.attention(q[:few].float(), *wide, table, page, base, None))
    same = {}
    for m in ROWS:
        poison(q[:m], torch.empty(200, m * heads, size, device="cuda"))
        same[m] = torch.equal(ops.attention(q[:m], k_cache, v_cache, table, page, base, None), whole[:m])
    for start in (1, 17, 64, 100):  # the same rows after a longer prefix
        part = ops.attention(q[start : start + 20], k_cache, v_cache, table, page, base + start, None)
        same[f"from {start}"] = torch.equal(part, whole[start : start + 20])
    long = torch.randn(384, heads, size, device="cuda").to(dtype)
    long[:rows] = q
    same["prefill kernel"] = torch.equal(ops.attention(long, k_cache, v_cache, table, page, base, None)[:rows], whole)
    for width in (16, 64, 128):
        parents = torch.tensor([int(torch.randint(-1, i, (1,))) if i else -1 for i in range(width - 1)])
        depth, mask = tree_layout(parents)
        # A row alone, over a cache whose chain is the row's path: keys and values of depth d at position base + d.
        lanes = as_lanes(mask.cuda())
        tree = ops.attention(q[:width], k_cache, v_cache, table, page, base, lanes)
        equal = True
        for row in (0, 1, width // 2, width - 1):
            path = lanes[row][lanes[row] >= 0].long()
            k_chain, v_chain = k_cache.clone(), v_cache.clone()
            targets = where[base : base + len(path)]
            k_chain[targets], v_chain[targets] = k_cache[where[base + path]], v_cache[where[base + path]]
            one = ops.attention(q[row : row + 1], k_chain, v_chain, table, page, base + len(path) - 1, None)
            equal &= torch.equal(one[0], tree[row])
        same[f"tree {width}"] = equal
        if width == 16:
            found["tree error"] = error(tree, twin.attention(q[:16].float(), *wide, table, page, base, mask.cuda()))
        del depth
    spans = torch.stack((torch.zeros(16), torch.arange(16) * 5 + base), dim=1).long().cuda()
    for name, chosen in (("span error", None), ("spans error", spans)):
        out = ops.span_attention(q[:16], k_cache, v_cache, table, page, 0, base + 16, chosen)
        found[name] = error(out, twin.span_attention(q[:16].float(), *wide, table, page, 0, base + 16, chosen))
    found["same bits"] = all(same.values())
    if not found["same bits"]:
        found["different"] = [str(key) for key, value in same.items() if not value]
    return found


def norms(ops: CudaOps, size: int, dtype: torch.dtype) -> dict[str, Any]:
    x, delta = torch.randn(128, size, device="cuda").to(dtype), torch.randn(4, 128, size, device="cuda")
    weight = torch.randn(size, device="cuda").to(dtype)
    wide = x.to(torch.float32, copy=True)
    expected = TorchOps().add_rms_norm(wide, summed(delta), weight.float(), 1e-6)
    first = x.clone()
    out = ops.add_rms_norm(first, delta, weight, 1e-6)
    same = True
    for m in ROWS:
        one = x[:m].clone()
        same &= torch.equal(ops.add_rms_norm(one, delta[:, :m].contiguous(), weight, 1e-6), out[:m])
        same &= torch.equal(one, first[:m])
    return {"error": max(error(out, expected), error(first, wide)), "same bits": same}


def draws(vocabulary: int, dtype: torch.dtype) -> dict[str, Any]:
    sampler = Sampler(torch.device("cuda"))
    logits = (torch.randn(16, vocabulary, device="cuda") * 3).to(dtype)
    logits[3, vocabulary - 5] = logits[3].max()
    positions = torch.arange(1000, 1016, device="cuda")
    found: dict[str, Any] = {}
    for params in (
        sampling.SamplingParams(),
        sampling.SamplingParams(0.8, seed=3),
        sampling.SamplingParams(0.7, top_k=20, seed=4),
        sampling.SamplingParams(1.2, top_p=0.9, seed=5),
        sampling.SamplingParams(1.0, top_k=50, top_p=0.8, min_p=0.02, seed=6),
    ):
        sampler.set(
            sampling.noise_key(params.seed, sampling.TARGET),
            params.temperature,
            params.top_k,
            params.top_p,
            params.min_p,
        )
        chosen = sampler.choose(logits, positions)
        expected = sampling.draw(logits.float().cpu(), positions.cpu(), params)
        same = int((chosen.cpu() == expected).sum())
        found[f"T {params.temperature} k {params.top_k} p {params.top_p} m {params.min_p}"] = f"{same} of 16 equal"
    logits[2, 7] = float("nan")
    found["NaN row is -1"] = sampler.choose(logits, positions).tolist().index(-1) == 2
    right = True
    for is_tree in (False, True):
        for _ in range(40):
            width = 32
            rows = int(torch.randint(1, width + 1, (1,)))
            parents = torch.tensor(
                [int(torch.randint(0, max(i, 1), (1,))) if is_tree else max(i - 1, 0) for i in range(width)]
            )
            tokens, choices = torch.randint(0, 2, (width,)), torch.randint(0, 2, (width,))
            tree = parents.int().cuda() if is_tree else None
            record = accept(
                tokens.cuda(), choices.cuda(), torch.tensor([rows], dtype=torch.int32).cuda(), tree
            ).tolist()
            host = accept_on_host(
                tokens[1:rows].tolist(), (parents[1:rows] - 1).tolist() if is_tree else None, choices[:rows].tolist()
            )
            right &= record[2 : 3 + record[0]] == host.tokens and record[1] == 1
            right &= record[2 + width : 2 + width + record[0]] == [row + 1 for row in host.path]
    found["accept"] = right
    return found


def run(say: Callable[..., None]) -> dict[str, Any]:
    """All checks; one that raises is reported and does not end the others."""
    torch.manual_seed(0)
    ops, found = CudaOps(), {}
    jobs: dict[str, Callable[[], dict[str, Any]]] = {}
    for columns, depth, kinds in (
        (6144, 2560, "p"), (2560, 4096, "p"), (2560, 9728, "lp"), (19456, 2560, "g"), (151936, 2560, "l")
    ):  # fmt: skip
        jobs[f"product {columns}x{depth}"] = lambda c=columns, d=depth, k=kinds: products(ops, c, d, BF16, k)
    jobs["product 1152x384"] = lambda: products(ops, 1152, 384, BF16, "lpg")
    jobs["product 102x200 fp16"] = lambda: products(ops, 102, 200, torch.float16, "lpg")
    jobs["product 384x768 fp32"] = lambda: products(ops, 384, 768, torch.float32, "lpg")
    jobs["norm 2560"] = lambda: norms(ops, 2560, BF16)
    jobs["norm 384 fp32"] = lambda: norms(ops, 384, torch.float32)
    for base in (0, 200, 5000):
        jobs[f"attention 32/8/128 base {base}"] = lambda b=base: attention(ops, 32, 8, 128, BF16, b)
    jobs["attention 6/6/64"] = lambda: attention(ops, 6, 6, 64, BF16, 333)
    jobs["attention 28/4/128 fp16"] = lambda: attention(ops, 28, 4, 128, torch.float16, 333)
    jobs["attention 6/6/64 fp32"] = lambda: attention(ops, 6, 6, 64, torch.float32, 333)
    jobs["draws 151936 bf16"] = lambda: draws(151936, BF16)
    jobs["draws 8192 fp32"] = lambda: draws(8192, torch.float32)
    for name, job in jobs.items():
        with contextlib.suppress(KeyboardInterrupt):
            try:
                found[name] = job()
            except Exception as problem:
                found[name] = f"{type(problem).__name__}: {problem}"[-500:]
            say(name, found[name])
    return found
