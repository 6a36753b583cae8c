"""The drafter's context: it holds what it was told and nothing else, whatever is truncated, forked or missing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from specd.engine.errors import OutOfMemory
from specd.engine.kv_cache import KVCache, PagePool
from specd.engine.propose.dflash import DFlashContext

PAGE = 4


class Sizes:
    """Of the smallest cache there is."""

    num_layers = 1
    num_kv_heads = 1
    head_dim = 1


def pool(pages: int = 200) -> PagePool:
    return PagePool(Sizes(), pages, PAGE, torch.device("cpu"), torch.float32)


def write(context: DFlashContext, position: int, values: list[float]) -> None:
    with context.append(position, len(values)) as slots:
        context.cache.pool.layers[0][0][slots, 0, 0] = torch.tensor(values)


def read(context: DFlashContext) -> list[float]:
    slots = context.cache.slots(0, list(range(context.rows)))
    values: list[float] = context.cache.pool.layers[0][0][slots, 0, 0].tolist()
    return values


class Contexts(RuleBasedStateMachine):
    """Several contexts on one pool against dictionaries from position to value."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = pool()
        self.contexts = [(DFlashContext(KVCache(self.pool, 300)), dict[int, float]())]
        self.written = 0.0

    @rule(which=st.integers(0, 9), gap=st.integers(-6, 3), n=st.integers(1, 9))
    def append(self, which: int, gap: int, n: int) -> None:
        context, model = self.contexts[which % len(self.contexts)]
        position = max(context.length + gap, 0)
        values = [self.written + place for place in range(n)]
        self.written += n
        write(context, position, values)
        for gone in [key for key in model if key >= position]:
            del model[gone]
        model.update(zip(range(position, position + n), values, strict=True))

    @rule(which=st.integers(0, 9), length=st.integers(0, 60))
    def truncate(self, which: int, length: int) -> None:
        context, model = self.contexts[which % len(self.contexts)]
        context.truncate(length)
        for gone in [key for key in model if key >= length]:
            del model[gone]

    @rule(which=st.integers(0, 9), length=st.integers(0, 60))
    def fork(self, which: int, length: int) -> None:
        context, model = self.contexts[which % len(self.contexts)]
        if len(self.contexts) < 5:
            self.contexts.append((context.fork(length), {key: value for key, value in model.items() if key < length}))

    @rule(which=st.integers(0, 9), n=st.integers(1, 9))
    def draft_a_block(self, which: int, n: int) -> None:
        context, _ = self.contexts[which % len(self.contexts)]
        with context.scratch(n) as slots:
            context.cache.pool.layers[0][0][slots, 0, 0] = -1.0

    @rule(which=st.integers(1, 9))
    def free(self, which: int) -> None:
        if len(self.contexts) > 1:
            context, _ = self.contexts.pop(which % len(self.contexts))
            context.free()

    @invariant()
    def contexts_hold_what_the_dictionaries_hold(self) -> None:
        for context, model in self.contexts:
            assert read(context) == list(model.values())
            assert context.length == max(model, default=-1) + 1
            for position in (0, 3, 17, context.length, context.length + 2):
                assert context.place(position) == sum(key < position for key in model)
        held = {page for context, _ in self.contexts for page in context.pages}
        assert self.pool.free_pages == self.pool.pages - len(held)


Contexts.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestContexts = Contexts.TestCase


@given(st.integers(0, 9), st.booleans())
@settings(deadline=None)
def test_an_append_that_fails_leaves_the_context_as_it_was(held: int, later: bool) -> None:
    context = DFlashContext(KVCache(pool(), 300))
    values = [float(place) for place in range(held)]
    if held:
        write(context, 2, values)
    pages = context.pages
    with pytest.raises(KeyError), context.append(context.length + later, 7):
        raise KeyError
    assert (read(context), context.pages, context.length) == (values, pages, held + 2 if held else 0)
    write(context, context.length, [9.0])
    assert read(context) == [*values, 9.0]


def test_a_full_pool_is_said_and_costs_nothing() -> None:
    small = pool(pages=3)
    context = DFlashContext(KVCache(small, 300))
    write(context, 0, [1.0] * 6)
    with pytest.raises(OutOfMemory):
        write(context, 6, [2.0] * 20)
    assert read(context) == [1.0] * 6
    assert small.free_pages == 1


def test_a_context_that_is_let_go_gives_its_pages_back() -> None:
    small = pool(pages=3)
    context = DFlashContext(KVCache(small, 300))
    write(context, 0, [1.0] * 6)
    other = context.fork(5)
    del context
    assert small.free_pages == 1
    assert read(other) == [1.0] * 5
    del other
    assert small.free_pages == 3
