"""DFlash in a job: the output never changes, the context follows the target, failures and limits only cost drafts.

Random drafters are never right, so acceptance comes from the trained little pair of tests/fixtures/dflash.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_dflash
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import run, tokens_of

from specd.engine import Committed, Draft, Event, NgramProposer, Proposer, SamplingParams, Sequence, generate, load
from specd.engine.config import EngineConfig, model_config
from specd.engine.model import Qwen3
from specd.engine.prefix import PrefixCache, prepare
from specd.engine.propose.dflash import (
    DFlashContext,
    DFlashDrafter,
    DFlashProposer,
    DFlashTreeProposer,
    load_dflash,
)
from specd.engine.weights import load_weights

FOLDER = Path(__file__).parents[2] / "fixtures" / "dflash"
PROMPT = [1, 5, 326, 6, 344, 7, 314, 3, 165, 117, 28, 72, 27, 326, 50, 90, 3, 198, 32, 160, 31, 314, 68, 143, 190, 3]
SAMPLED = SamplingParams(temperature=0.8, seed=11)


def trained_target(kv_tokens: int = 4096) -> Qwen3:
    config = model_config(FOLDER / "target")
    weights = load_weights(FOLDER / "target", config, device=torch.device("cpu"), dtype=torch.float32)
    return Qwen3(config, weights, engine=EngineConfig(page_size=16, prefill_chunk=16, kv_tokens=kv_tokens))


@pytest.fixture(scope="module", params=["draft_full", "draft_swa"])
def drafter(request: pytest.FixtureRequest) -> DFlashDrafter:
    return load_dflash(FOLDER / request.param, trained_target())


@pytest.fixture(scope="module")
def full() -> DFlashDrafter:
    return load_dflash(FOLDER / "draft_full", trained_target())


class Shorter:
    """At most k drafts a step."""

    name = "shorter"

    def __init__(self, inner: DFlashProposer, k: int) -> None:
        self.inner, self.max_k, self.tap_layers = inner, k, inner.tap_layers

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.inner.observe(seq, committed)

    def truncate(self, length: int) -> None:
        self.inner.truncate(length)

    def propose(self, seq: Sequence, k: int) -> Draft:
        return self.inner.propose(seq, k)


class Turns(Shorter):
    """Every third step is DFlash's; the others are another proposer's, or nobody's."""

    def __init__(self, inner: DFlashProposer) -> None:
        super().__init__(inner, 7)
        self.other = NgramProposer(k=5)
        self.turn = 0

    def propose(self, seq: Sequence, k: int) -> Draft:
        self.turn += 1
        if self.turn % 3 == 0:
            return self.inner.propose(seq, k)
        return self.other.propose(seq, k if self.turn % 3 == 1 else 0)


WAYS: dict[str, Callable[[DFlashProposer], Any]] = {
    "whole blocks": lambda inner: inner,
    "k = 1": lambda inner: Shorter(inner, 1),
    "k = 3": lambda inner: Shorter(inner, 3),
    "tree of 7": lambda inner: DFlashTreeProposer(inner, 7),
    "tree of 24": lambda inner: DFlashTreeProposer(inner, 24),
    "in turns": Turns,
}


@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("way", WAYS)
def test_output_is_plain_decodings(drafter: DFlashDrafter, way: str, sampling: SamplingParams) -> None:
    def out(proposer: Proposer | None) -> Any:
        events = generate(
            drafter.model, PROMPT, sampling=sampling, stop_ids=frozenset(), max_tokens=90, speculative=proposer
        )
        return run(events)

    plain, _ = out(None)
    tokens, stats = out(WAYS[way](DFlashProposer(drafter)))
    assert tokens == plain
    assert stats.accepted > (10 if way == "k = 1" or sampling is SAMPLED else 20)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6, "use_sliding_window": True},
    ],
)
@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
def test_output_is_plain_decodings_with_a_drafter_that_knows_nothing(
    tmp_path: Path, keys: dict[str, Any], sampling: SamplingParams
) -> None:
    model = load(tiny.write(tmp_path / "target", 4), engine=EngineConfig(page_size=16)).model
    proposer = DFlashProposer(load_dflash(tiny_dflash.write(tmp_path / "drafter", 5, **keys), model))
    ids = list(b"def f(x):\n    return x")
    plain, _ = run(generate(model, ids, sampling=sampling, max_tokens=60))
    tokens, stats = run(generate(model, ids, sampling=sampling, max_tokens=60, speculative=proposer))
    assert tokens == plain
    assert stats.drafted > 100


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_targets_in_16_bits_are_drafted_for(tmp_path: Path, dtype: str) -> None:
    model = load(tiny.write(tmp_path / "target", 4), dtype=dtype).model
    drafter = load_dflash(tiny_dflash.write(tmp_path / "drafter", 5), model)
    assert drafter.dtype == torch.bfloat16  # float16 overflows on what taps carry
    ids = list(b"def f(x):\n    return x")
    plain, _ = run(generate(model, ids, max_tokens=30))
    tokens, stats = run(generate(model, ids, max_tokens=30, speculative=DFlashProposer(drafter)))
    assert tokens == plain
    assert stats.drafted > 50


def contents(context: DFlashContext) -> torch.Tensor:
    """All keys and values [layers, 2, rows, G, D]."""
    slots = context.cache.slots(0, list(range(context.rows)))
    return torch.stack([torch.stack([part[slots] for part in layer]) for layer in context.cache.pool.layers])


def fresh_context(drafter: DFlashDrafter, tokens: list[int]) -> DFlashContext:
    """The context of tokens, from one prefill."""
    cache, context = drafter.model.new_cache(), drafter.new_context()
    hidden = drafter.model.forward(
        torch.tensor(tokens), torch.arange(len(tokens)), cache, taps=drafter.config.target_layer_ids
    )
    assert hidden.taps is not None
    drafter.ingest(context, 0, hidden.taps)
    cache.free()
    return context


@pytest.mark.parametrize("way", WAYS)
def test_after_a_job_the_context_is_that_of_a_fresh_prefill(drafter: DFlashDrafter, way: str) -> None:
    inner = DFlashProposer(drafter)
    proposer = WAYS[way](inner)
    tokens, _ = run(generate(drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=61, speculative=proposer))
    committed = (PROMPT + tokens)[:-1]
    found = inner.fork(10**6)
    assert found.length == found.rows == len(committed)
    expected = fresh_context(drafter, committed)
    torch.testing.assert_close(contents(found), contents(expected), rtol=1e-5, atol=1e-5)


def test_fewer_drafts_are_the_first_of_a_whole_block(drafter: DFlashDrafter) -> None:
    seq = Sequence([*PROMPT, 9], len(PROMPT))
    proposer = DFlashProposer(drafter, context=fresh_context(drafter, PROMPT))
    whole = proposer.propose(seq, 7).tokens.tolist()
    assert len(whole) == proposer.max_k == 7
    for k in range(8):
        assert proposer.propose(seq, k).tokens.tolist() == whole[:k]


def test_what_the_context_holds_beyond_the_newest_token_is_not_seen(full: DFlashDrafter) -> None:
    seq = Sequence(PROMPT[:20], 20)
    expected = DFlashProposer(full, context=fresh_context(full, PROMPT[:19])).propose(seq, 7)
    longer = DFlashProposer(full, context=fresh_context(full, PROMPT))
    assert longer.propose(seq, 7).tokens.tolist() == expected.tokens.tolist()
    assert longer.context.length == 19


@settings(deadline=None, max_examples=15)
@given(st.integers(0, len(PROMPT)), st.lists(st.integers(3, 500), min_size=1, max_size=20))
def test_a_truncated_or_forked_context_drafts_as_a_fresh_one(
    full: DFlashDrafter, length: int, other: list[int]
) -> None:
    tokens = [*PROMPT[:length], *other]
    seq = Sequence(tokens, len(tokens))
    expected = (
        DFlashProposer(full, context=fresh_context(full, tokens[:-1])) if len(tokens) > 1 else DFlashProposer(full)
    )
    draft = expected.propose(seq, 7).tokens.tolist()
    first = DFlashProposer(full, context=fresh_context(full, PROMPT))
    second = DFlashProposer(full, context=first.fork(length))
    before = contents(first.context).clone()
    for proposer in (second, first):
        if proposer is first:
            assert torch.equal(contents(first.context), before)  # what the fork did is not seen here
        proposer.truncate(length)
        rest = fresh_context(full, tokens[:-1]) if len(tokens) > 1 else full.new_context()
        for start in range(length, len(tokens) - 1):
            taps = taps_at(full, tokens, start)
            proposer.observe(seq, Committed([0], taps=taps, taps_start=start))
        assert proposer.propose(seq, 7).tokens.tolist() == draft
        torch.testing.assert_close(contents(proposer.context), contents(rest), rtol=1e-5, atol=1e-5)


def taps_at(drafter: DFlashDrafter, tokens: list[int], position: int) -> torch.Tensor:
    cache = drafter.model.new_cache()
    ids = torch.tensor(tokens[: position + 1])
    hidden = drafter.model.forward(ids, torch.arange(len(ids)), cache, taps=drafter.config.target_layer_ids)
    cache.free()
    assert hidden.taps is not None
    return hidden.taps[-1:]


def test_a_kept_prompt_keeps_the_drafters_context(full: DFlashDrafter) -> None:
    prefix = PrefixCache(full.model, 1 << 30)
    list(prepare(full.model, PROMPT, prefix, [DFlashProposer(full)]))
    for parts_at in (3, 16, 20, len(PROMPT)):
        ids = [*PROMPT[:parts_at], 5, 326, 6]
        cold, cold_stats = run(generate(full.model, ids, max_tokens=40, speculative=DFlashProposer(full)))
        kept = prefix.take(ids)
        context = kept.states["dflash"]
        assert isinstance(context, DFlashContext)
        assert (kept.cache.length, context.length) == (parts_at, parts_at)
        proposer = DFlashProposer(full, context=context)
        warm, warm_stats = run(generate(full.model, ids, max_tokens=40, speculative=proposer, cache=kept.cache))
        assert warm == cold
        assert (warm_stats.reused_tokens, warm_stats.accepted) == (parts_at, cold_stats.accepted)
        kept.free()


def test_a_prefix_without_its_context_costs_acceptance_only(full: DFlashDrafter) -> None:
    plain, _ = run(generate(full.model, PROMPT, stop_ids=frozenset(), max_tokens=60))
    cache = full.model.new_cache()
    full.model.forward(torch.tensor(PROMPT[:20]), torch.arange(20), cache)
    proposer = DFlashProposer(full)
    events = generate(full.model, PROMPT, stop_ids=frozenset(), max_tokens=60, speculative=proposer, cache=cache)
    tokens, stats = run(events)
    assert (tokens, stats.reused_tokens) == (plain, 20)
    assert proposer.fork(10**6).rows == len(PROMPT) + 60 - 1 - 20
    cache.free()


def test_a_full_pool_costs_drafts_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    drafter = load_dflash(FOLDER / "draft_full", trained_target(kv_tokens=320))
    plain, _ = run(generate(drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=60))
    taken = [drafter.pool.take() for _ in range(drafter.pool.free_pages - 3)]
    proposer = DFlashProposer(drafter)
    events = generate(drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=60, speculative=proposer)
    tokens, stats = run(events)
    assert tokens == plain
    assert stats.drafted > 0
    assert len([record for record in caplog.records if "its own cache is full" in record.message]) == 1
    proposer.close()
    assert drafter.pool.free_pages == 3
    assert len(taken) == drafter.pool.pages - 3


@pytest.mark.parametrize("limit", [1, 20, 27, 40, 63])
def test_the_drafters_own_position_limit_ends_its_drafts_not_the_output(tmp_path: Path, limit: int) -> None:
    model = load(tiny.write(tmp_path / "target", 4)).model
    drafter = load_dflash(tiny_dflash.write(tmp_path / "drafter", 5, max_position_embeddings=limit), model)
    ids = list(b"0123456789" * 3)
    plain, _ = run(generate(model, ids, max_tokens=40, stop_ids=frozenset()))
    proposer = DFlashProposer(drafter)
    tokens, stats = run(generate(model, ids, max_tokens=40, stop_ids=frozenset(), speculative=proposer))
    assert tokens == plain
    assert (stats.drafted > 0) == (limit > len(ids))
    assert proposer.fork(10**6).length == min(limit, len(ids) + 39)
    seq = Sequence([65] * (limit - 2), 1) if limit > 2 else Sequence([65], 1)
    assert proposer.propose(seq, 7).size == (2 if limit > 2 else 0)


def test_a_long_context_drafts_and_answers_as_ever(tmp_path: Path) -> None:
    model = load(tiny.write(tmp_path / "target", 4), engine=EngineConfig(kv_tokens=4096)).model
    keys = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 100, "use_sliding_window": True}
    proposer = DFlashProposer(load_dflash(tiny_dflash.write(tmp_path / "drafter", 5, **keys), model))
    ids = [(7 * place * place + place) % 250 for place in range(1970)]
    plain, _ = run(generate(model, ids, stop_ids=frozenset()))
    tokens, stats = run(generate(model, ids, stop_ids=frozenset(), speculative=proposer))
    assert tokens == plain
    assert len(ids) + len(tokens) == 2048
    assert stats.drafted > 0


def pages_in_use(drafter: DFlashDrafter) -> tuple[int, int]:
    return tuple(pool.pages - pool.free_pages for pool in (drafter.model.pool, drafter.pool))  # type: ignore[return-value]


@pytest.mark.parametrize("events", [1, 2, 3, 5, 9])
def test_a_cancel_leaves_the_context_at_the_committed_length_and_close_frees_it(events: int) -> None:
    drafter = load_dflash(FOLDER / "draft_full", trained_target())
    proposer = DFlashProposer(drafter)
    job: Generator[Event, None, None] = generate(
        drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=60, speculative=proposer
    )
    seen = [next(job) for _ in range(events)]
    job.close()
    done = tokens_of(seen)
    context = proposer.fork(10**6)
    prefilled = min(16 * events, len(PROMPT) - 1)
    assert context.length == (len(PROMPT) + len(done) - 1 if done else prefilled)
    context.free()
    proposer.close()
    assert pages_in_use(drafter) == (0, 0)
    again, _ = run(generate(drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=60, speculative=proposer))
    assert again == run(generate(drafter.model, PROMPT, stop_ids=frozenset(), max_tokens=60))[0]


@pytest.mark.parametrize("place", ["attention", "ingest"])
def test_a_failure_inside_a_pass_loses_nothing(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    drafter = load_dflash(FOLDER / "draft_full", trained_target())
    proposer = DFlashProposer(drafter, context=fresh_context(drafter, PROMPT))
    seq = Sequence([*PROMPT, 9, 10], len(PROMPT))
    taps = torch.randn(1, 3, 64)
    before = contents(proposer.context).clone()

    def fail(*_: Any) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        name = "span_attention" if place == "attention" else "qk_norm_rope_store"
        patch.setattr(type(drafter.ops), name, fail)
        if place == "ingest":
            proposer.observe(seq, Committed([10], taps=taps, taps_start=len(PROMPT)))
        with pytest.raises(RuntimeError, match="planted"):
            proposer.propose(seq, 7)
    assert torch.equal(contents(proposer.context), before)
    assert len(proposer.context.pages) == -(-len(PROMPT) // 16)
    assert proposer.propose(seq, 7).size == 7
    assert proposer.context.length == len(PROMPT) + (place == "ingest")


def test_a_tree_of_one_path_is_the_chain_and_marginals_say_how_sure_each_row_is(full: DFlashDrafter) -> None:
    seq = Sequence([*PROMPT, 107], len(PROMPT))
    proposer = DFlashProposer(full, context=fresh_context(full, PROMPT))
    chain = proposer.propose(seq, 7).tokens.tolist()
    found = proposer.marginals(seq, 4)
    assert found is not None
    logprobs, ids = found
    assert ids[:, 0].tolist() == chain
    assert logprobs.shape == ids.shape == (7, 4)
    assert bool((logprobs.diff(dim=1) <= 0).all())
    everything = proposer.marginals(seq, 10**6)
    assert everything is not None
    torch.testing.assert_close(everything[0].exp().sum(-1), torch.ones(7))
    tree = proposer.propose_tree(seq, 24)
    assert tree.parents is not None
    assert tree.size == 24
    parents, tokens = tree.parents.tolist(), tree.tokens.tolist()
    assert len({(parent, token) for parent, token in zip(parents, tokens, strict=True)}) == 24  # no twins
    assert (parents[0], tokens[0]) == (-1, chain[0])
    assert isinstance(proposer, Proposer)
