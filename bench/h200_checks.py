"""What bf16 must not change: speculative output against plain, rows against rows, warm caches against cold ones."""

import random

import torch

from specd.engine import Committed, Draft, Proposer, SamplingParams, Sequence, StepDone, generate
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3

SAMPLED = SamplingParams(temperature=0.8, top_k=50, top_p=0.95, min_p=0.02, seed=5)
COUNT = 128  # tokens of an output


class Planted:
    """Drafts the truth with errors in it: a chain of `width` - 1 tokens whose first `right(step)` are right, or a
    random tree with the truth somewhere inside."""

    name = "planted"
    max_k = 127

    def __init__(self, truth: list[int], width: int, *, is_tree: bool = False) -> None:
        self._truth, self._width, self._is_tree = truth, width, is_tree
        self._draw = random.Random(width)

    def propose(self, seq: Sequence, k: int) -> Draft:
        ahead = self._truth[len(seq) : len(seq) + min(k, self._width - 1)]
        if self._is_tree:
            return self._tree(ahead, min(k, self._width - 1))
        right = self._draw.randint(0, len(ahead))
        return Draft.chain([token if n < right else token ^ 1 for n, token in enumerate(ahead)])

    def _tree(self, ahead: list[int], nodes: int) -> Draft:
        tokens, parents, depth = list[int](), list[int](), {-1: 0}
        for node in range(nodes):
            parent = self._draw.randint(max(-1, node - 3), node - 1)
            if depth[parent] >= len(ahead):
                break
            depth[node] = depth[parent] + 1
            parents.append(parent)
            tokens.append(ahead[depth[parent]] ^ (self._draw.random() < 0.3))
        return Draft(torch.tensor(tokens, dtype=torch.int32), torch.tensor(parents, dtype=torch.int32))

    def observe(self, seq: Sequence, committed: Committed) -> None:
        pass

    def truncate(self, length: int) -> None:
        pass


def check_proposers(model: Qwen3, ids: list[int]) -> dict[str, str]:
    """Outputs of drafts of many widths against plain ones, greedy and sampled: `ok (tokens a step)`, or not."""
    out: dict[str, str] = {}
    for name, sampling in (("greedy", SamplingParams()), ("sampled", SAMPLED)):
        truth, _ = _run(model, ids, sampling, None)
        for width in (2, 4, 6, 8, 16, 25, 32, 64, 128):
            out[f"{name} {width}"] = _compare(model, ids, sampling, truth, Planted(ids + truth, width))
        for width in (4, 8, 16, 32, 64):
            draft = Planted(ids + truth, width, is_tree=True)
            out[f"{name} tree {width}"] = _compare(model, ids, sampling, truth, draft)
        steps, model.steps = model.steps, None
        try:
            out[f"{name} eager 16"] = _compare(model, ids, sampling, truth, Planted(ids + truth, 16))
            out[f"{name} eager plain"] = _compare(model, ids, sampling, truth, None)
        finally:
            model.steps = steps
    return out


def _run(model: Qwen3, ids: list[int], sampling: SamplingParams, speculative: Proposer | None) -> tuple[list[int], int]:
    tokens, count = list[int](), 0
    for event in generate(
        model, ids, sampling=sampling, stop_ids=frozenset(), max_tokens=COUNT, speculative=speculative
    ):
        if isinstance(event, StepDone):
            tokens += event.tokens
            count += 1
    return tokens, count


def _compare(model: Qwen3, ids: list[int], sampling: SamplingParams, truth: list[int], draft: Proposer | None) -> str:
    tokens, count = _run(model, ids, sampling, draft)
    if tokens == truth:
        return f"ok ({len(tokens) / count:.1f})"
    place = next(n for n, (a, b) in enumerate(zip(tokens, truth, strict=False)) if a != b)
    return f"DIFFERS at token {place}"


@torch.inference_mode()
def check_rows(model: Qwen3, ids: list[int]) -> dict[str, str]:
    """Hidden rows and logits of one pass of M rows against M passes of one, and caches filled in other chunks."""
    tokens = torch.tensor(ids, device=model.device)
    places = torch.arange(len(ids), device=model.device)
    start = len(ids) - 160

    def passes(sizes: list[int]) -> tuple[torch.Tensor, KVCache]:
        cache, rows, done = model.new_cache(), list[torch.Tensor](), 0
        for size in sizes:
            end = min(done + size, len(ids))
            rows.append(model.forward(tokens[done:end], places[done:end], cache).last)
            done = end
        return torch.cat(rows)[start:], cache

    expected, cold = passes([start] + [1] * 160)
    logits = model.logits(expected[:64])
    out: dict[str, str] = {}
    held = _rows(cold)
    splits: dict[str, list[int]] = {str(m): [start] + [m] * (-(-160 // m)) for m in (2, 5, 16, 32, 64, 100, 128)}
    splits |= {"prefill": [len(ids)], "other chunks": [33, 200, 77, len(ids)]}
    for name, sizes in splits.items():
        found, cache = passes(sizes)
        same = torch.equal(found, expected) and torch.equal(model.logits(found[:64]), logits)
        kept = all(torch.equal(a, b) for a, b in zip(_rows(cache), held, strict=True))
        out[f"rows {name}"] = "ok" if same and kept else f"DIFFERS (rows {_count(found, expected)}, cache {kept})"
        cache.free()
    cold.free()
    return out


def _rows(cache: KVCache) -> list[torch.Tensor]:
    slots = cache.slots(0, list(range(cache.length)))
    return [part[slots] for layer in cache.pool.layers for part in layer]


def _count(a: torch.Tensor, b: torch.Tensor) -> str:
    wrong = int((a != b).any(dim=-1).sum())
    return f"{wrong} of {len(a)}"
