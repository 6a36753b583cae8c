"""Proposers that follow a script, and what a test of speculation compares: emitted tokens, and cache contents.

A script knows the tokens that the target is going to emit and plants errors in its drafts, so that every pattern of
acceptance can be had, whatever the model.
"""

import random
from collections.abc import Callable, Iterable

import torch

from specd.engine import Committed, Draft, Event, Finished, Sequence, StepDone, Summary
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3

VOCAB = 260  # ids that TinyQwen's tokenizer knows


def tokens_of(events: Iterable[Event]) -> list[int]:
    """All tokens that the events emitted."""
    return [token for event in events if isinstance(event, StepDone) for token in event.tokens]


def run(events: Iterable[Event]) -> tuple[list[int], Summary]:
    """The tokens and the summary of a job that came to its end."""
    every = list(events)
    last = every[-1]
    assert isinstance(last, Finished)
    return tokens_of(every), last.stats


def rows(cache: KVCache) -> list[torch.Tensor]:
    """Keys and values of each layer, [length, G, D], copied."""
    slots = cache.slots(0, list(range(cache.length)))
    return [part[slots].clone() for layer in cache.pool.layers for part in layer]


def assert_fresh(model: Qwen3, cache: KVCache, tokens: list[int]) -> None:
    """The cache holds exactly what a prefill of `tokens` into an empty one leaves there, to the bit."""
    assert cache.length == len(tokens)
    fresh = model.new_cache()
    if tokens:
        model.forward(torch.tensor(tokens), torch.arange(len(tokens)), fresh)
    assert all(torch.equal(a, b) for a, b in zip(rows(cache), rows(fresh), strict=True))
    fresh.free()


class Scripted:
    """A chain of which the first `right(step)` tokens are the truth and the rest is wrong."""

    name = "scripted"
    max_k = 127

    def __init__(self, truth: list[int], right: Callable[[int], int]) -> None:
        """truth: prompt and output. right: step number -> length of the right beginning."""
        self.truth, self.right = truth, right
        self.steps = 0
        self.seen: list[int] = []

    def propose(self, seq: Sequence, k: int) -> Draft:
        ahead = self.ahead(seq)[:k]
        right = self.right(self.steps)
        self.steps += 1
        return Draft.chain([token if place < right else wrong(token) for place, token in enumerate(ahead)])

    def ahead(self, seq: Sequence) -> list[int]:
        assert self.truth[: len(seq)] == seq.tokens
        return self.truth[len(seq) :]

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.seen.extend(committed.tokens)
        assert self.seen == seq.output

    def truncate(self, length: int) -> None:
        pass


def wrong(token: int) -> int:
    """Some other token that can be emitted."""
    return (token + 1) % VOCAB


class ScriptedTree(Scripted):
    """A random tree a step, drawn from (seed, step): right tokens here and there, siblings that may be the same, paths
    through the middle, and nodes in any order that has parents before children."""

    name = "scripted-tree"

    def __init__(self, truth: list[int], seed: int, hit: float = 0.6) -> None:
        """hit: chance that a child of a right node carries the right token."""
        super().__init__(truth, lambda step: 0)
        self.seed, self.hit = seed, hit

    def propose(self, seq: Sequence, k: int) -> Draft:
        draw = random.Random(f"{self.seed}:{self.steps}")
        self.steps += 1
        tokens, parents = random_tree(draw, self.ahead(seq), draw.randint(0, k), self.hit)
        return Draft(torch.tensor(tokens, dtype=torch.int32), torch.tensor(parents, dtype=torch.int32))


def random_tree(draw: random.Random, ahead: list[int], nodes: int, hit: float) -> tuple[list[int], list[int]]:
    """tokens and parents of a tree of that many nodes, no deeper than the truth."""
    tokens: list[int] = []
    parents: list[int] = []
    depth, is_right = {-1: 0}, {-1: True}
    shape = draw.choice(["bushy", "deep", "any"])
    while len(tokens) < nodes:
        node = len(tokens)
        low = {"bushy": -1, "deep": max(-1, node - 2), "any": draw.randint(-1, node - 1)}[shape]
        parent = draw.randint(low, node - 1)
        if depth[parent] >= len(ahead):
            if not ahead:
                break
            parent = -1
        truth = ahead[depth[parent]]
        token = truth if draw.random() < self_hit(is_right[parent], hit) else draw.randrange(VOCAB)
        tokens.append(token)
        parents.append(parent)
        depth[node] = depth[parent] + 1
        is_right[node] = is_right[parent] and token == truth
    return tokens, parents


def self_hit(parent_is_right: bool, hit: float) -> float:
    """A node under a wrong one may well carry the token that would be right at its depth: it must not be taken."""
    return hit if parent_is_right else 0.5
