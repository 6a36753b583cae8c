"""Steps of fixed shape give what `verify` gives, to the bit, and padding touches nothing: on a CPU, without graphs."""

import gc
import random
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import VOCAB, Scripted, ScriptedTree, random_tree, rows, tokens_of, wrong

from specd.engine import (
    ContextOverflow,
    Draft,
    EngineConfig,
    NonFiniteLogits,
    OutOfMemory,
    SamplingParams,
    generate,
    load,
)
from specd.engine import choice as choice_module
from specd.engine.choice import accept, as_tensor
from specd.engine.costs import measure
from specd.engine.kernels.lanes import as_lanes, as_mask
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.ops import TorchOps
from specd.engine.sampling import sample
from specd.engine.static_step import TREE_WIDTHS, WIDTHS, StaticStep
from specd.engine.verify import tree_layout, verify

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
PAGE = 8
PROMPT = list(b"a step has a width, and what it lacks of it is padding, which goes nowhere at all")
SAMPLED = SamplingParams(temperature=0.8, top_k=40, top_p=0.95, min_p=0.01, seed=11)
KINDS = {"greedy": SamplingParams(), "sampled": SAMPLED}
TAPS = (0, 2)


def make(folder: Path, ops: str, **engine: int) -> Qwen3:
    sizes = {"page_size": PAGE, "prefill_chunk": 32, "kv_tokens": 1024} | engine
    model = load(folder, engine=EngineConfig(**sizes)).model
    if ops == "torch":
        model.ops = TorchOps()
    elif model.ops.name != "native":
        pytest.skip("the native kernels are off, or there is no C compiler")
    return model


@pytest.fixture(scope="module", params=["native", "torch"])
def model(tiny_folder: Maker, request: pytest.FixtureRequest) -> Qwen3:
    return make(tiny_folder(71), request.param)


@pytest.fixture(scope="module")
def steps(model: Qwen3) -> StaticStep:
    return StaticStep(model, TAPS)


@pytest.fixture(scope="module")
def truths(model: Qwen3) -> dict[str, list[int]]:
    return {
        name: tokens_of(generate(model, PROMPT, sampling=sampling, max_tokens=160, stop_ids=NEVER))
        for name, sampling in KINDS.items()
    }


def chain(tokens: list[int]) -> Draft:
    return Draft(torch.tensor(tokens, dtype=torch.int32))


def tree(tokens: list[int], parents: list[int]) -> Draft:
    return Draft(torch.tensor(tokens, dtype=torch.int32), torch.tensor(parents, dtype=torch.int32))


def prefilled(model: Qwen3, ids: list[int]) -> KVCache:
    cache = model.new_cache()
    if ids:
        model.forward(torch.tensor(ids), torch.arange(len(ids)), cache)
    return cache


def check_same(model: Qwen3, steps: StaticStep, ids: list[int], draft: Draft, sampling: SamplingParams) -> int:
    """A static step and `verify` after ids[:-1]: the same path, tokens, taps and cache. -> tokens emitted."""
    expected_cache = prefilled(model, ids[:-1])
    expected = verify(model, expected_cache, ids[-1], draft, sampling, TAPS)
    cache = prefilled(model, ids[:-1])
    cache.hold(draft.size + 1)
    others = [page for page in range(model.pool.pages) if page not in cache.pages]  # all but its own, and the padding's
    before = [part[:, others].nan_to_num() for part in (model.pool.k, model.pool.v)]
    path, tokens, taps = steps.step(cache, ids[-1], draft, sampling, TAPS)
    assert (path, tokens) == (expected.accepted.path, expected.accepted.tokens)
    assert taps is not None
    assert expected.taps is not None
    assert torch.equal(taps, expected.taps)
    assert cache.length == expected_cache.length
    assert len(cache.pages) == len(expected_cache.pages)
    assert all(torch.equal(a, b) for a, b in zip(rows(cache), rows(expected_cache), strict=True))
    for part, old in zip((model.pool.k, model.pool.v), before, strict=True):
        assert torch.equal(part[:, others].nan_to_num(), old)
    cache.free()
    expected_cache.free()
    return len(tokens)


@settings(deadline=None, max_examples=15)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    start=st.integers(1, len(PROMPT)),
    size=st.one_of(st.integers(0, 40), st.integers(0, 127)),
    right=st.integers(0, 127),
)
def test_a_chain_of_any_length_at_any_place_is_verified_as_ever(
    model: Qwen3, steps: StaticStep, kind: str, start: int, size: int, right: int
) -> None:
    ids = PROMPT[:start]
    ahead = tokens_of(generate(model, ids, sampling=KINDS[kind], max_tokens=min(right, size) + 1, stop_ids=NEVER))
    drafted = [*ahead[: min(right, size)], *[wrong(ahead[-1])] * size][:size]
    emitted = check_same(model, steps, ids, chain(drafted), KINDS[kind])
    assert emitted == min(right, size) + 1


@settings(deadline=None, max_examples=15)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 10**6),
    nodes=st.one_of(st.integers(0, 31), st.integers(0, 127)),
    hit=st.floats(0.3, 1.0),
)
def test_any_tree_is_verified_as_ever_and_its_path_moves_to_the_front(
    model: Qwen3, steps: StaticStep, truths: dict[str, list[int]], kind: str, seed: int, nodes: int, hit: float
) -> None:
    tokens, parents = random_tree(random.Random(seed), truths[kind], nodes, hit)
    emitted = check_same(model, steps, PROMPT, tree(tokens, parents), KINDS[kind])
    assert 1 <= emitted <= nodes + 1


@settings(deadline=None, max_examples=10)
@given(first=st.integers(1, 40), size=st.integers(1, 300))
def test_a_part_of_a_prompt_is_read_as_ever(model: Qwen3, steps: StaticStep, first: int, size: int) -> None:
    ids = (PROMPT * 5)[: first + size]
    expected, cache = prefilled(model, ids[:first]), prefilled(model, ids[:first])
    hidden = model.forward(torch.tensor(ids[first:]), torch.arange(first, len(ids)), expected, taps=TAPS)
    taps = steps.read(cache, ids[first:], TAPS)
    assert cache.length == expected.length == len(ids)
    assert hidden.taps is not None
    assert taps is not None
    assert torch.equal(taps, hidden.taps)
    assert all(torch.equal(a, b) for a, b in zip(rows(cache), rows(expected), strict=True))
    cache.free()
    expected.free()


@pytest.mark.parametrize("width", WIDTHS)
def test_full_widths_need_no_padding_and_all_right_drafts_are_accepted(
    model: Qwen3, steps: StaticStep, truths: dict[str, list[int]], width: int
) -> None:
    assert check_same(model, steps, PROMPT, chain(truths["greedy"][: width - 1]), SamplingParams()) == width


@pytest.mark.parametrize("width", TREE_WIDTHS)
def test_a_tree_that_is_a_chain_is_one(
    model: Qwen3, steps: StaticStep, truths: dict[str, list[int]], width: int
) -> None:
    drafted = truths["sampled"][: width - 1]
    assert check_same(model, steps, PROMPT, tree(drafted, list(range(-1, width - 2))), SAMPLED) == width


@settings(deadline=None, max_examples=3)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 10**6), with_trees=st.booleans())
def test_jobs_by_static_steps_emit_what_plain_decoding_emits(
    model: Qwen3, steps: StaticStep, truths: dict[str, list[int]], kind: str, seed: int, with_trees: bool
) -> None:
    """Two at a time, so that the buffer tells one cache's pages and parameters after the other's."""
    truth, draw = truths[kind], random.Random(seed)
    full = PROMPT + truth
    script = ScriptedTree(full, seed) if with_trees else Scripted(full, lambda step: draw.randint(0, 20))
    other = [*PROMPT[5:], 65]
    expected = tokens_of(generate(model, other, sampling=KINDS["greedy"], max_tokens=30, stop_ids=NEVER))
    model.steps = steps
    try:
        job = generate(model, PROMPT, sampling=KINDS[kind], max_tokens=120, stop_ids=NEVER, speculative=script)
        second = generate(model, other, sampling=KINDS["greedy"], max_tokens=30, stop_ids=NEVER)
        out, beside = [], []
        for event in job:
            out += tokens_of([event])
            beside += tokens_of([found] if (found := next(second, None)) is not None else [])
        beside += tokens_of(second)
    finally:
        model.steps = None
    assert out == truth[:120]
    assert beside == expected


def test_a_job_of_static_steps_leaves_no_page_behind(model: Qwen3, steps: StaticStep) -> None:
    free = model.pool.free_pages
    model.steps = steps
    try:
        job = generate(model, PROMPT, max_tokens=50, stop_ids=NEVER)
        for _ in range(20):
            next(job)
        job.close()  # a cancel
        tokens_of(generate(model, PROMPT, max_tokens=50, stop_ids=NEVER))
    finally:
        model.steps = None
    assert model.pool.free_pages == free


def test_logprobs_and_other_taps_take_the_old_way_and_give_the_same(
    model: Qwen3, steps: StaticStep, truths: dict[str, list[int]]
) -> None:
    assert steps.takes(128, ())
    assert steps.takes(1, TAPS)
    assert not steps.takes(129, ())
    assert not steps.takes(1, (1,))
    model.steps = steps
    try:
        events = list(generate(model, PROMPT, max_tokens=5, stop_ids=NEVER, logprobs=True))
        long = Scripted(PROMPT + truths["greedy"], lambda step: 150)
        long.max_k = 150
        out = tokens_of(generate(model, PROMPT, max_tokens=160, stop_ids=NEVER, speculative=long))
    finally:
        model.steps = None
    assert tokens_of(events) == truths["greedy"][:5]
    assert all(event.logprobs for event in events if hasattr(event, "logprobs"))
    assert out == truths["greedy"]


def test_nan_is_reported_by_the_record_and_the_cache_is_as_before(tiny_folder: Maker) -> None:
    broken = make(tiny_folder(5), "torch")
    steps = StaticStep(broken)
    cache = prefilled(broken, PROMPT[:20])
    before, free = rows(cache), broken.pool.free_pages
    broken.weights.norm[3] = torch.nan
    for draft in (chain([1, 2, 3]), tree([1, 2], [-1, -1])):
        with pytest.raises(NonFiniteLogits, match="NaN"):
            steps.step(cache, 7, draft, SAMPLED)
        assert (cache.length, broken.pool.free_pages) == (20, free)
        assert all(torch.equal(a, b) for a, b in zip(before, rows(cache), strict=True))
    cache.free()


def test_a_step_that_raises_or_has_no_room_leaves_the_cache_as_it_was(
    tiny_folder: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(tiny_folder(6, max_position_embeddings=64), "torch", kv_tokens=48)
    steps = StaticStep(model)
    cache = prefilled(model, PROMPT[:40])
    before, free = rows(cache), model.pool.free_pages
    with pytest.raises(OutOfMemory):
        steps.step(cache, 7, chain([1] * 15), SamplingParams())
    assert (cache.length, model.pool.free_pages) == (40, free)
    with pytest.raises(ContextOverflow):
        steps.step(cache, 7, chain([1] * 30), SamplingParams())
    with pytest.raises(ValueError, match="parents stand before their children"):
        steps.step(cache, 7, tree([1, 2], [1, -1]), SamplingParams())

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model.ops, "silu_mul", fail)
    with pytest.raises(KeyboardInterrupt):
        steps.step(cache, 7, chain([1, 2]), SamplingParams())
    monkeypatch.undo()
    assert (cache.length, model.pool.free_pages) == (40, free)
    assert all(torch.equal(a, b) for a, b in zip(before, rows(cache), strict=True))
    assert len(steps.step(cache, 7, chain([1, 2]), SamplingParams())[1]) >= 1
    cache.free()


def test_at_the_contexts_end_padding_reaches_beyond_it_and_harms_nothing(tiny_folder: Maker) -> None:
    model = make(tiny_folder(8, max_position_embeddings=96), "torch")
    plain = tokens_of(generate(model, PROMPT[:60], stop_ids=NEVER))
    model.steps = StaticStep(model)
    script = Scripted(PROMPT[:60] + plain, lambda step: 40)
    assert tokens_of(generate(model, PROMPT[:60], stop_ids=NEVER, speculative=script)) == plain
    assert len(plain) == 36


def test_a_model_and_its_steps_are_dropped_together(tiny_folder: Maker) -> None:
    model = make(tiny_folder(9), "torch")
    model.steps = StaticStep(model, TAPS)
    tokens_of(generate(model, PROMPT, max_tokens=3, stop_ids=NEVER))
    parts = [weakref.ref(part) for part in (model, model.steps, model.pool, model.pool.k, model.weights.head)]
    del model
    gc.collect()
    assert [part() for part in parts] == [None] * 5


def test_an_override_chooses_in_the_targets_place(model: Qwen3) -> None:
    """What bench/replay_target.py does."""
    wanted = {len(PROMPT): 100, len(PROMPT) + 1: 101}

    def override(choices: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        found = [wanted.get(place, token) for place, token in zip(positions.tolist(), choices.tolist(), strict=True)]
        return torch.tensor(found)

    forced = StaticStep(model, override=override)
    cache = prefilled(model, PROMPT[:-1])
    path, tokens, _ = forced.step(cache, PROMPT[-1], chain([100, 101, 5]), SamplingParams())
    assert (path[:2], tokens[:2]) == ([0, 1], [100, 101])
    cache.free()


def test_costs_are_those_of_the_static_steps_at_their_widths(model: Qwen3, steps: StaticStep) -> None:
    model.steps = steps
    try:
        costs = measure(model, budget=0.2)
    finally:
        model.steps = None
    assert tuple(costs.widths) == WIDTHS
    assert costs.stepped
    assert costs.verify(5) == costs.verify(8)
    assert costs.verify(8) > 0


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**40),
    temperature=st.sampled_from([0.0, 1e-6, 0.3, 1.0, 1.7]),
    top_k=st.integers(0, 60),
    top_p=st.floats(0.05, 1.0),
    min_p=st.sampled_from([0.0, 0.02, 0.3]),
    broken=st.lists(st.integers(0, 5), max_size=2),
)
def test_choose_is_sample_with_its_parameters_in_a_tensor(
    seed: int, temperature: float, top_k: int, top_p: float, min_p: float, broken: list[int]
) -> None:
    params = SamplingParams(temperature, top_k, top_p, min_p, seed)
    logits = torch.randn(6, 50, generator=torch.Generator().manual_seed(seed % 1000)) * 3
    positions = torch.arange(6) + seed % 777
    expected = sample(logits, positions, params).clone()
    expected[broken] = -1
    logits[broken, 3] = torch.nan
    assert torch.equal(choice_module.choose(logits, positions, as_tensor(params)), expected)


@settings(deadline=None)
@given(data=st.data(), width=st.sampled_from(TREE_WIDTHS[:3]), is_tree=st.booleans())
def test_the_record_says_what_accept_says(data: st.DataObject, width: int, is_tree: bool) -> None:
    few = st.integers(0, 2)
    count = data.draw(st.integers(1, width))
    tokens, choices = ([data.draw(few) for _ in range(width)] for _ in range(2))
    parents = [data.draw(st.integers(-1, row - 1)) for row in range(count - 1)] if is_tree else None
    found = accept(tokens[1:count], parents, choices[:count])
    if count < width:
        choices[-1] = -1  # of padding: nobody's fault
    above = None if parents is None else torch.tensor([0, *(p + 1 for p in parents), *[0] * (width - count)]).int()
    record = choice_module.accepted(
        torch.tensor(tokens), torch.tensor(choices), torch.tensor([count], dtype=torch.int32), above
    ).tolist()
    taken = len(found.path)
    assert record[:2] == [taken, 1]
    assert record[2 : 3 + taken] == found.tokens
    assert record[2 + width : 2 + width + taken] == [index + 1 for index in found.path]
    assert len(record) == 2 + 2 * width
    choices[data.draw(st.integers(0, count - 1))] = -1
    broken = choice_module.accepted(
        torch.tensor(tokens), torch.tensor(choices), torch.tensor([count], dtype=torch.int32), above
    )
    assert int(broken[1]) == 0


@given(st.data())
def test_lanes_say_what_the_mask_says(data: st.DataObject) -> None:
    parents = [data.draw(st.integers(-1, node - 1)) for node in range(data.draw(st.integers(0, 12)))]
    _, mask = tree_layout(torch.tensor(parents, dtype=torch.int32))
    lanes = as_lanes(mask)
    assert torch.equal(as_mask(lanes), mask)
    assert lanes.dtype == torch.int32
    assert all(0 <= token < VOCAB for token in lanes.clamp(min=0).flatten().tolist())
