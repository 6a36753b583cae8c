"""The paged cache against a plain list: whatever is reserved, kept or forked, a position holds what was put there."""

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from specd.engine import ContextOverflow, ModelConfig, OutOfMemory
from specd.engine.kv_cache import KVCache, PagePool

CONFIG = ModelConfig("qwen3", 8, 8, 2, 2, 1, 4, 8, 1e-6, 1e4, 64, True, False, True, frozenset())


def pool(pages: int = 40, page_size: int = 4) -> PagePool:
    return PagePool(CONFIG, pages, page_size, torch.device("cpu"), torch.float32)


def write(cache: KVCache, values: list[int]) -> None:
    slots = cache.reserve(len(values))
    for layer, (k, v) in enumerate(cache.pool.layers):
        rows = torch.tensor(values, dtype=torch.float32)[:, None, None].expand(-1, 1, 4)
        k[slots], v[slots] = rows + layer, -rows - layer
    cache.advance(len(values))


def read(cache: KVCache) -> list[int]:
    slots = cache.slots(0, list(range(cache.length)))
    k, v = cache.pool.layers[1]
    assert torch.equal(k[slots], -v[slots])
    return [int(value) - 1 for value in k[slots, 0, 0]]


class Caches(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pool = pool()
        self.expected: dict[int, list[int]] = {}
        self.alive: dict[int, KVCache] = {}
        self.count = 0

    caches = Bundle("caches")

    def add(self, cache: KVCache, values: list[int]) -> int:
        self.count += 1
        self.alive[self.count], self.expected[self.count] = cache, values
        return self.count

    @rule(target=caches)
    def new(self) -> int:
        return self.add(KVCache(self.pool, 64), [])

    @rule(name=caches, values=st.lists(st.integers(0, 9999), min_size=1, max_size=9))
    def append(self, name: int, values: list[int]) -> None:
        if len(self.expected[name]) + len(values) <= 64 and self.pool.free_pages >= 5:
            write(self.alive[name], values)
            self.expected[name] = self.expected[name] + values

    @rule(name=caches, values=st.lists(st.integers(0, 9999), min_size=1, max_size=8), data=st.data())
    def tree_step(self, name: int, values: list[int], data: st.DataObject) -> None:
        if len(self.expected[name]) + len(values) > 64 or self.pool.free_pages < 5:
            return
        path = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1)))
        start = self.alive[name].length
        write(self.alive[name], values)
        self.alive[name].keep(start, path)
        self.expected[name] = self.expected[name] + [values[row] for row in path]

    @rule(name=caches, length=st.integers(0, 70))
    def truncate(self, name: int, length: int) -> None:
        for _ in range(2):
            self.alive[name].truncate(length)
        self.expected[name] = self.expected[name][:length]

    @rule(target=caches, name=caches, share=st.floats(0, 1))
    def fork(self, name: int, share: float) -> int:
        length = int(len(self.expected[name]) * share)
        return self.add(self.alive[name].fork(length), self.expected[name][:length])

    @precondition(lambda self: self.alive)
    @rule(name=consumes(caches))
    def free(self, name: int) -> None:
        self.alive.pop(name).free()
        del self.expected[name]

    @invariant()
    def every_position_holds_what_was_put_there(self) -> None:
        for name, cache in self.alive.items():
            assert cache.length == len(self.expected[name])
            assert read(cache) == self.expected[name]
            assert cache.numbers[: cache.page_count].tolist() == list(cache.pages)

    @invariant()
    def pages_are_counted(self) -> None:
        used = {page for cache in self.alive.values() for page in cache.pages}
        assert self.pool.free_pages == self.pool.pages - len(used)
        for page in used:
            assert self.pool.users(page) == sum(page in cache.pages for cache in self.alive.values())


TestCaches = Caches.TestCase
TestCaches.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_full_pool_and_a_full_context_are_refused_and_change_nothing() -> None:
    small = pool(pages=2)
    cache = KVCache(small, 64)
    write(cache, [1, 2, 3])
    with pytest.raises(OutOfMemory, match="all 8 tokens"):
        cache.reserve(9)
    assert (cache.length, read(cache)) == (3, [1, 2, 3])
    cache.truncate(3)
    assert small.free_pages == 1
    with pytest.raises(ContextOverflow, match="context of 5"):
        KVCache(small, 5).reserve(6)


def test_a_path_must_ascend() -> None:
    cache = KVCache(pool(), 64)
    write(cache, [1, 2, 3])
    with pytest.raises(ValueError, match="ascend"):
        cache.keep(0, [1, 0])
    with pytest.raises(ValueError, match="fork"):
        cache.fork(4)
    with pytest.raises(ValueError, match="truncate"):
        cache.truncate(-1)
