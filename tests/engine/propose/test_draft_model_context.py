"""What the draft model holds: pages, a kept prefix, after failures; and that its chain never waits."""

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from drafters import ENGINE, NEVER
from scripted import assert_fresh, run, tokens_of

from specd.engine import (
    EngineConfig,
    EngineError,
    Loaded,
    SamplingParams,
    Sequence,
    StepDone,
    generate,
    load,
)
from specd.engine.kv_cache import KVCache
from specd.engine.model import Hidden, Qwen3
from specd.engine.prefix import PrefixCache, prepare
from specd.engine.propose.draft_model import DraftContext, DraftModelProposer
from specd.engine.sampling import AcceptRule

Maker = Callable[..., Path]
PROMPT = list(b"the model that drafts is the model that judges")
SAMPLED = SamplingParams(temperature=0.9, top_p=0.95, seed=3)


def test_a_full_page_pool_means_no_drafts_and_one_warning(
    tiny_folder: Maker, loaded: Loaded, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EngineConfig(page_size=16, prefill_chunk=16, kv_tokens=64)
    cramped = load(tiny_folder(21), engine=engine).model
    drafter = DraftModelProposer(cramped, 7, target=loaded.model)
    with caplog.at_level(logging.WARNING):
        tokens, stats = run(generate(loaded.model, PROMPT, speculative=drafter, max_tokens=60, stop_ids=NEVER))
    assert tokens == tokens_of(generate(loaded.model, PROMPT, max_tokens=60, stop_ids=NEVER))
    assert 0 < stats.accepted < 30
    assert caplog.text.count("its own cache is full") == 1
    assert_fresh(loaded.model, drafter.context.cache, (PROMPT + tokens)[: drafter.context.cache.length])


def test_a_prepared_prompt_is_read_by_the_draft_model_too(loaded: Loaded, near: Loaded) -> None:
    prefix = PrefixCache(loaded.model, 1 << 24)
    drafter = DraftModelProposer(near.model, 7, target=loaded.model)
    steps = prepare(loaded.model, PROMPT, prefix, [drafter])
    next(steps)
    assert drafter.context.cache.length == 16  # chunk by chunk, so a cancel waits for no more than one
    list(steps)
    drafter.close()
    kept = prefix.take([*PROMPT, 7])
    context = kept.states["draft_model"]
    assert isinstance(context, DraftContext)
    assert context.cache.length == len(PROMPT)
    assert_fresh(near.model, context.cache, PROMPT)
    warm = DraftModelProposer(near.model, 7, target=loaded.model, context=context)
    cold = DraftModelProposer(near.model, 7, target=loaded.model)
    seq = Sequence([*PROMPT, 7], len(PROMPT) + 1)
    assert warm.propose(seq, 7).tokens.tolist() == cold.propose(seq, 7).tokens.tolist()
    kept.free()


def test_a_failure_inside_the_chain_leaves_it_usable(
    loaded: Loaded, near: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = DraftModelProposer(near.model, 5, target=loaded.model)
    forward, calls = near.model.forward, 0

    def fails(tokens: torch.Tensor, positions: torch.Tensor, cache: KVCache) -> Hidden:
        nonlocal calls
        calls += 1
        if calls == 11:
            raise RuntimeError("the draft model broke")
        return forward(tokens, positions, cache)

    monkeypatch.setattr(near.model, "forward", fails)
    cache, out = loaded.model.new_cache(), list(PROMPT)
    job = generate(loaded.model, PROMPT, speculative=drafter, cache=cache, max_tokens=60, stop_ids=NEVER)
    with pytest.raises(EngineError, match="the draft model broke"):
        out.extend(token for event in job if isinstance(event, StepDone) for token in event.tokens)
    assert len(out) > len(PROMPT)
    assert_fresh(loaded.model, cache, out[:-1])
    assert_fresh(near.model, drafter.context.cache, out[: drafter.context.cache.length])
    again = tokens_of(generate(loaded.model, out, speculative=drafter, cache=cache, max_tokens=20, stop_ids=NEVER))
    assert again == tokens_of(generate(loaded.model, out, max_tokens=20, stop_ids=NEVER))
    cache.free()


def test_a_kept_prefix_is_not_read_again_and_another_prompt_is_never_mistaken_for_it(
    loaded: Loaded, near: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = load(near.path, engine=ENGINE).model
    drafter = DraftModelProposer(draft, 3, target=loaded.model)
    first = drafter.propose(Sequence(list(PROMPT), len(PROMPT)), 3).tokens.tolist()
    kept = drafter.fork(len(PROMPT) - 5)
    fed = 0
    forward = draft.forward

    def spy(tokens: torch.Tensor, positions: torch.Tensor, cache: KVCache) -> Hidden:
        nonlocal fed
        fed += len(tokens)
        return forward(tokens, positions, cache)

    monkeypatch.setattr(draft, "forward", spy)
    warm = DraftModelProposer(draft, 3, target=loaded.model, context=kept.fork(10**6))
    assert warm.propose(Sequence(list(PROMPT), len(PROMPT)), 3).tokens.tolist() == first
    assert fed == 5 + 2
    other = [*PROMPT[:7], *b" another tail"]
    cold = DraftModelProposer(draft, 3, target=loaded.model)
    expected = cold.propose(Sequence(list(other), len(other)), 3)
    for proposer in (warm, drafter):  # each used for another prompt without being told
        assert torch.equal(proposer.propose(Sequence(list(other), len(other)), 3).tokens, expected.tokens)
    drafter.close()
    drafter.close()
    kept.free()
    assert draft.pool.free_pages < draft.pool.pages
    del warm, cold, proposer  # no close: what is dropped gives its pages back
    assert draft.pool.free_pages == draft.pool.pages


def on_meta(value: Any) -> Any:
    """Weights without values: whatever looks at one raises."""
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    if isinstance(value, list | tuple):
        return type(value)(map(on_meta, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: on_meta(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


@pytest.mark.parametrize("accept", ["exact", "rejection"])
@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED, SamplingParams(temperature=0.7, top_k=20, min_p=0.02)])
def test_no_step_of_the_chain_waits_for_the_device(
    loaded: Loaded, sampling: SamplingParams, accept: AcceptRule
) -> None:
    """On the meta device no tensor has a value, so that reading one fails where it would wait elsewhere."""
    model = loaded.model
    blank = Qwen3(model.config, on_meta(model.weights), engine=ENGINE, vocab_limit=model.vocab_limit)
    with pytest.raises(RuntimeError):
        blank.weights.norm.tolist()
    drafter = DraftModelProposer(blank, 15, target=model, sampling=sampling, accept=accept)
    draft = drafter.propose(Sequence(list(PROMPT), len(PROMPT)), 15)
    assert draft.tokens.shape == (15,)
    assert draft.tokens.is_meta
    assert (draft.probs is None) == (accept == "exact" or sampling.greedy)
    assert drafter.context.cache.length == len(PROMPT) + 14
