"""Kept prompts: the longest beginning is reused, warm equals cold, the budget holds, a cancel loses nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specd.engine import EngineConfig, Loaded, PrefillDone, SamplingParams, StepDone, generate, load
from specd.engine.prefix import Kept, PrefixCache, common_prefix, prepare

TEXT = list(b"def area(shape): return shape.width * shape.height  # in square metres, as the others are")


@pytest.fixture(scope="module")
def loaded(tiny_folder: Callable[..., Path]) -> Loaded:
    return load(tiny_folder(31), engine=EngineConfig(page_size=8, prefill_chunk=16))


def run(loaded: Loaded, ids: list[int], kept: Kept) -> tuple[list[int], int]:
    """Output tokens and how many prompt tokens were reused."""
    events = list(
        generate(loaded.model, ids, max_tokens=30, cache=kept.cache, sampling=SamplingParams(temperature=0.7, seed=3))
    )
    reused = next(event.reused for event in events if isinstance(event, PrefillDone))
    return [token for event in events if isinstance(event, StepDone) for token in event.tokens], reused


def test_warm_equals_cold_wherever_the_prompts_part(loaded: Loaded) -> None:
    prefix = PrefixCache(loaded.model, 1 << 30)
    list(prepare(loaded.model, TEXT, prefix))
    for parts_at in (1, 7, 8, 9, 31, 32, len(TEXT) - 1, len(TEXT)):
        ids = [*TEXT[:parts_at], *b" <- rewrite"]
        cold, none = run(loaded, ids, Kept(loaded.model.new_cache()))
        warm, reused = run(loaded, ids, prefix.take(ids))
        assert (none, reused) == (0, parts_at)
        assert warm == cold
    assert len(prefix) == 1


def test_a_prompt_that_was_generated_from_is_found_again(loaded: Loaded) -> None:
    prefix = PrefixCache(loaded.model, 1 << 30)
    kept = prefix.take(TEXT)
    first, reused = run(loaded, TEXT, kept)
    prefix.put(TEXT, kept)
    assert reused == 0
    again, reused = run(loaded, TEXT, prefix.take(TEXT))
    assert (again, reused) == (first, len(TEXT) - 1)


def test_a_closed_preparation_keeps_what_it_did(loaded: Loaded) -> None:
    prefix = PrefixCache(loaded.model, 1 << 30)
    job = prepare(loaded.model, TEXT, prefix)
    next(job), next(job)
    job.close()
    assert prefix.tokens == 32
    assert prefix.take(TEXT).cache.length == 32


def test_the_budget_holds_and_the_oldest_goes_first(loaded: Loaded) -> None:
    page = loaded.model.pool.bytes_per_page
    free = loaded.model.pool.free_pages
    prefix = PrefixCache(loaded.model, 8 * page)
    for number in range(6):
        list(prepare(loaded.model, [number, *TEXT[:20]], prefix))  # 21 tokens: 3 pages
        assert prefix.bytes <= 8 * page
    assert [prefix.take([number, *TEXT]).cache.length for number in (3, 4, 5)] == [0, 21, 21]
    assert prefix.make_room(loaded.model.pool.pages) is False
    prefix.clear()
    assert (len(prefix), prefix.bytes) == (0, 0)
    assert loaded.model.pool.free_pages == free - 6  # the two caches taken above still hold theirs


def test_shared_pages_count_once(loaded: Loaded) -> None:
    page = loaded.model.pool.bytes_per_page
    prefix = PrefixCache(loaded.model, 1 << 30)
    list(prepare(loaded.model, TEXT[:40], prefix))
    before = prefix.bytes
    list(prepare(loaded.model, [*TEXT[:40], 1, 2, 3], prefix))
    assert prefix.bytes <= before + page
    assert len(prefix) == 1  # the longer one covers the shorter


def test_common_prefix_is_the_longest() -> None:
    for n in range(20):
        a = list(range(20))
        b = [*a[:n], -1, *a[n + 1 :]]
        assert common_prefix(a, b) == n
    assert common_prefix([1, 2], [1, 2, 3]) == 2
    assert common_prefix([], [1]) == 0
