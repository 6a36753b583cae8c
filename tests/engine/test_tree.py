"""Trees through one verify step: who sees whom, what is accepted, and what stays in the cache."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import VOCAB, ScriptedTree, assert_fresh, random_tree, rows, run, tokens_of

from specd.engine import Draft, EngineConfig, NonFiniteLogits, SamplingParams, StepDone, generate, load
from specd.engine import sampling as sampling_module
from specd.engine import verify as verify_module
from specd.engine.choice import accept
from specd.engine.kv_cache import KVCache
from specd.engine.model import Hidden, Qwen3
from specd.engine.ops import TorchOps
from specd.engine.verify import Step, tree_layout, verify

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
PROMPT = list(b"a tree has one root, many leaves, and one way down")
SAMPLED = SamplingParams(temperature=0.8, top_p=0.95, seed=11)


def make(folder: Path, ops: str) -> Qwen3:
    model = load(folder, engine=EngineConfig(page_size=8, prefill_chunk=32)).model
    if ops == "torch":
        model.ops = TorchOps()
    elif model.ops.name != "native":
        pytest.skip("the native kernels are off, or there is no C compiler")
    return model


@pytest.fixture(scope="module", params=["native", "torch"])
def model(tiny_folder: Maker, request: pytest.FixtureRequest) -> Qwen3:
    return make(tiny_folder(41), request.param)


@st.composite
def topologies(draw: st.DrawFn, most: int = 14) -> list[int]:
    """Parents of a tree's nodes."""
    size = draw(st.integers(0, most))
    return [draw(st.integers(-1, node - 1)) for node in range(size)]


def ancestors(parents: list[int], node: int) -> list[int]:
    """The nodes above, the root (-1) first."""
    return [*ancestors(parents, parents[node]), parents[node]] if node >= 0 else []


@given(topologies())
def test_a_row_sees_its_ancestors_and_itself_and_stands_at_its_depth(parents: list[int]) -> None:
    depth, mask = tree_layout(torch.tensor(parents, dtype=torch.int32))
    for node in range(-1, len(parents)):
        above = ancestors(parents, node)
        assert int(depth[node + 1]) == len(above)
        assert (mask[node + 1].nonzero()[:, 0] - 1).tolist() == [*above, node]


@pytest.mark.parametrize("parents", [[0], [-2], [-1, 1], [1, -1], [-1, 0, 5]])
def test_a_child_before_its_parent_is_refused(parents: list[int]) -> None:
    with pytest.raises(ValueError, match="parents stand before their children"):
        tree_layout(torch.tensor(parents, dtype=torch.int32))


@given(st.data(), topologies())
def test_the_accepted_path_is_the_one_that_the_targets_name(data: st.DataObject, parents: list[int]) -> None:
    few = st.integers(0, 2)  # many siblings with one token, and many that agree
    drafted = [data.draw(few) for _ in parents]
    targets = [data.draw(few) for _ in range(len(parents) + 1)]
    node, path = -1, []
    while (nexts := [n for n, p in enumerate(parents) if p == node and drafted[n] == targets[node + 1]]) != []:
        node = nexts[0]
        path.append(node)
    found = accept(drafted, parents, targets)
    assert found.path == path
    assert found.tokens == [*(drafted[n] for n in path), targets[node + 1]]


@given(st.lists(st.integers(0, 1), max_size=9), st.lists(st.integers(0, 1), min_size=10, max_size=10))
def test_a_chain_is_a_tree_with_one_path(drafted: list[int], targets: list[int]) -> None:
    targets = targets[: len(drafted) + 1]
    assert accept(drafted, None, targets) == accept(drafted, list(range(-1, len(drafted) - 1)), targets)


def tree(tokens: list[int], parents: list[int]) -> Draft:
    return Draft(torch.tensor(tokens, dtype=torch.int32), torch.tensor(parents, dtype=torch.int32))


def prefilled(model: Qwen3, ids: list[int]) -> KVCache:
    cache = model.new_cache()
    model.forward(torch.tensor(ids), torch.arange(len(ids)), cache)
    return cache


def truth(model: Qwen3, sampling: SamplingParams, count: int = 24) -> list[int]:
    return tokens_of(generate(model, PROMPT, sampling=sampling, max_tokens=count, stop_ids=NEVER))


def check_step(model: Qwen3, cache: KVCache, step: Step, ids: list[int], sampling: SamplingParams) -> None:
    """What one step after the prompt left is what single steps would have left: cache, logits and taps."""
    out = step.accepted.tokens
    after = (ids + out)[: len(ids) + len(out) - 1]
    assert_fresh(model, cache, after)
    start = len(ids) - 1
    plain = prefilled(model, after[:start])
    for index, token in enumerate(after[start:]):
        hidden = model.forward(torch.tensor([token]), torch.tensor([start + index]), plain, taps=(0, 2))
        assert torch.equal(model.logits(hidden.last)[0], step.logits[index])
        assert hidden.taps is not None
        assert step.taps is not None
        assert torch.equal(hidden.taps[0], step.taps[index])
    assert len(step.logits) == len(step.taps if step.taps is not None else []) == len(out)
    plain.free()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), nodes=st.integers(0, 20), sampled=st.booleans())
def test_a_random_tree_leaves_what_single_steps_leave_to_the_bit(
    model: Qwen3, seed: int, nodes: int, sampled: bool
) -> None:
    sampling = SAMPLED if sampled else SamplingParams()
    ahead = truth(model, sampling)
    tokens, parents = random_tree(random.Random(seed), ahead, nodes, hit=0.8)
    cache = prefilled(model, PROMPT[:-1])
    step = verify(model, cache, PROMPT[-1], tree(tokens, parents), sampling, (0, 2))
    out = step.accepted.tokens
    assert out == ahead[: len(out)]
    check_step(model, cache, step, PROMPT, sampling)
    cache.free()


def test_a_path_through_the_middle_moves_its_rows_and_leaves_no_ghost(model: Qwen3) -> None:
    a, b, c, d = truth(model, SamplingParams(), 4)
    wrong = [(token + 1) % VOCAB for token in (a, b, c, d)]
    #        0         1  2         3  4         5         6  7
    tokens = [wrong[0], a, wrong[1], b, wrong[1], wrong[2], c, d]
    parents = [-1, -1, 0, 1, 1, 3, 3, 5]  # the last `d` hangs below a wrong token
    cache = prefilled(model, PROMPT[:-1])
    free = model.pool.free_pages
    step = verify(model, cache, PROMPT[-1], tree(tokens, parents), SamplingParams(), (0, 2))
    assert (step.accepted.path, step.accepted.tokens) == ([1, 3, 6], [a, b, c, d])
    check_step(model, cache, step, PROMPT, SamplingParams())
    assert model.pool.free_pages == free - (len(cache.pages) - -(-(len(PROMPT) - 1) // 8))
    cache.free()


def test_of_siblings_with_one_token_the_first_is_followed(model: Qwen3) -> None:
    a, b, c = truth(model, SamplingParams(), 3)
    cache = prefilled(model, PROMPT[:-1])
    step = verify(model, cache, PROMPT[-1], tree([a, a, b], [-1, -1, 1]), SamplingParams(), (0, 2))
    assert (step.accepted.path, step.accepted.tokens) == ([0], [a, b])
    check_step(model, cache, step, PROMPT, SamplingParams())
    cache.truncate(len(PROMPT) - 1)
    step = verify(model, cache, PROMPT[-1], tree([a, a, b], [-1, -1, 0]), SamplingParams(), (0, 2))
    assert (step.accepted.path, step.accepted.tokens) == ([0, 2], [a, b, c])
    check_step(model, cache, step, PROMPT, SamplingParams())
    cache.free()


def test_positions_are_depths_and_the_noise_is_the_positions(model: Qwen3, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    forward = model.forward

    def spy(tokens: torch.Tensor, positions: torch.Tensor, *rest: object) -> Hidden:
        seen.append(positions.tolist())
        return forward(tokens, positions, *rest)  # type: ignore[arg-type]

    drawn: list[list[int]] = []
    sample = sampling_module.sample

    def sampled(logits: torch.Tensor, positions: torch.Tensor, params: SamplingParams) -> torch.Tensor:
        drawn.append(positions.tolist())
        return sample(logits, positions, params)

    cache = prefilled(model, PROMPT[:-1])
    monkeypatch.setattr(model, "forward", spy)
    monkeypatch.setattr(verify_module, "sample", sampled)
    verify(model, cache, PROMPT[-1], tree([1, 2, 3, 4, 5], [-1, 0, -1, 2, 1]), SAMPLED)
    start = len(PROMPT) - 1
    assert seen == [[start, start + 1, start + 2, start + 1, start + 2, start + 3]]
    assert drawn == [[position + 1 for position in seen[0]]]
    cache.free()


@pytest.mark.parametrize("where", ["forward", "logits", "sample"])
def test_a_step_that_raises_leaves_the_cache_as_it_was(
    model: Qwen3, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    cache = prefilled(model, PROMPT[:-1])
    before, free = rows(cache), model.pool.free_pages

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    if where == "sample":  # after the forward pass
        monkeypatch.setattr(model, "logits", lambda last: torch.full((len(last), 5), torch.nan))
    elif where == "logits":
        monkeypatch.setattr(model, "logits", fail)
    else:  # in its middle: some layers have written
        monkeypatch.setattr(model.ops, "silu_mul", fail)
    with pytest.raises(NonFiniteLogits if where == "sample" else KeyboardInterrupt):
        verify(model, cache, PROMPT[-1], tree([1, 2, 3], [-1, -1, 0]), SAMPLED)
    monkeypatch.undo()
    assert cache.length == len(PROMPT) - 1
    assert model.pool.free_pages == free
    assert all(torch.equal(a, b) for a, b in zip(before, rows(cache), strict=True))
    ahead = truth(model, SAMPLED, 3)
    assert verify(model, cache, PROMPT[-1], Draft.chain(ahead[:2]), SAMPLED).accepted.tokens == ahead
    cache.free()


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), hit=st.floats(0.2, 1.0), sampled=st.booleans())
def test_a_job_of_random_trees_emits_what_plain_decoding_emits(
    model: Qwen3, seed: int, hit: float, sampled: bool
) -> None:
    sampling = SAMPLED if sampled else SamplingParams()
    job = partial(generate, model, PROMPT, sampling=sampling, max_tokens=40, stop_ids=NEVER)
    plain = tokens_of(job())
    cache = model.new_cache()
    out = list(PROMPT)
    for event in job(cache=cache, speculative=ScriptedTree(PROMPT + plain + [0] * 40, seed, hit)):
        if isinstance(event, StepDone):
            out += event.tokens
            assert cache.length == len(out) - 1
    assert out == PROMPT + plain
    assert_fresh(model, cache, out[:-1])
    cache.free()


def test_right_trees_are_accepted(model: Qwen3) -> None:
    """The scripts above would prove nothing if nothing were ever accepted."""
    plain = tokens_of(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER))
    script = ScriptedTree(PROMPT + plain + [0] * 60, 5, hit=0.9)
    tokens, stats = run(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=script))
    assert tokens == plain
    assert stats.tokens_per_step > 2
