"""The loop: speculation changes nothing, endings are clean, failures and cancels leave the engine as it was."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from specd.engine import (
    Committed,
    ContextOverflow,
    Draft,
    EngineConfig,
    EngineError,
    Event,
    Finished,
    Loaded,
    NgramProposer,
    NonFiniteLogits,
    PrefillDone,
    SamplingParams,
    Sequence,
    StepDone,
    generate,
    load,
)
from specd.engine.kv_cache import KVCache

Maker = Callable[..., Path]
SAMPLED = SamplingParams(temperature=0.8, top_k=40, top_p=0.95, seed=7)
PROMPT = list(b"rewrite the rewrite of the rewrite")


@pytest.fixture(scope="module")
def loaded(tiny_folder: Maker) -> Loaded:
    return load(tiny_folder(11), engine=EngineConfig(page_size=16, prefill_chunk=16))


def tokens_of(events: Iterator[Event]) -> list[int]:
    return [token for event in events if isinstance(event, StepDone) for token in event.tokens]


def prefilled_cache(loaded: Loaded, ids: list[int]) -> KVCache:
    cache = loaded.model.new_cache()
    loaded.model.forward(torch.tensor(ids), torch.arange(len(ids)), cache)
    return cache


def same_cache(a: KVCache, b: KVCache) -> bool:
    every = list(range(a.length))
    return a.length == b.length and all(
        torch.equal(x[a.slots(0, every)], y[b.slots(0, every)])
        for layer_a, layer_b in zip(a.pool.layers, b.pool.layers, strict=True)
        for x, y in zip(layer_a, layer_b, strict=True)
    )


class Wrong:
    """Proposes tokens that are mostly wrong, and observes that everything is told to it."""

    name, max_k = "wrong", 5

    def __init__(self) -> None:
        self.seen: list[int] = []

    def propose(self, seq: Sequence, k: int) -> Draft:
        assert self.seen == seq.output
        return Draft.chain([(seq.tokens[-1] * 7 + n) % 256 for n in range(k)])

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self.seen.extend(committed.tokens)
        assert self.seen == seq.output

    def truncate(self, length: int) -> None:
        raise AssertionError("nobody truncates in a plain generation")


@pytest.mark.parametrize("sampling", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("seed", range(3))
def test_speculation_changes_nothing(tiny_folder: Maker, sampling: SamplingParams, seed: int) -> None:
    loaded = load(tiny_folder(seed), engine=EngineConfig(page_size=16, prefill_chunk=16))
    options = {"sampling": sampling, "max_tokens": 120, "stop_ids": frozenset({258})}
    plain = tokens_of(generate(loaded.model, PROMPT, **options))
    assert len(plain) > 20
    for k in (1, 3, 7, 15, 31):
        assert tokens_of(generate(loaded.model, PROMPT, speculative=NgramProposer(k=k), **options)) == plain
    assert tokens_of(generate(loaded.model, PROMPT, speculative=Wrong(), **options)) == plain
    oracle = NgramProposer(k=31, seeds=[PROMPT + plain])
    events = list(generate(loaded.model, PROMPT, speculative=oracle, **options))
    assert tokens_of(iter(events)) == plain


def test_a_seed_that_holds_the_answer_is_drafted_from(loaded: Loaded) -> None:
    plain = tokens_of(generate(loaded.model, PROMPT, max_tokens=100))
    *_, last = generate(loaded.model, PROMPT, max_tokens=100, speculative=NgramProposer(k=24, seeds=[PROMPT + plain]))
    assert isinstance(last, Finished)
    assert last.stats.tokens_per_step > 3
    assert last.stats.accepted > 60


def test_text_deltas_concatenate_to_the_decode(loaded: Loaded) -> None:
    events = list(
        generate(loaded.model, PROMPT, tokenizer=loaded.tokenizer, max_tokens=90, speculative=NgramProposer(k=7))
    )
    text = "".join(event.text for event in events if isinstance(event, StepDone)) + events[-1].text_tail  # type: ignore[union-attr]
    assert text == loaded.tokenizer.decode(tokens_of(iter(events)))


def test_a_stop_string_ends_it_and_does_not_leak(loaded: Loaded) -> None:
    tokenizer = loaded.tokenizer
    plain = tokenizer.decode(tokens_of(generate(loaded.model, PROMPT, max_tokens=90)))
    stop = plain[30:33]
    for speculative in (None, NgramProposer(k=15, seeds=[PROMPT + tokenizer.encode(plain)])):
        events = list(
            generate(
                loaded.model, PROMPT, tokenizer=tokenizer, max_tokens=90, stop_strings=[stop], speculative=speculative,
                logprobs=True,
            )
        )  # fmt: skip
        last = events[-1]
        assert isinstance(last, Finished)
        text = "".join(event.text for event in events if isinstance(event, StepDone)) + last.text_tail
        assert (text, last.reason) == (plain[: plain.index(stop)], "stop")
        steps = [event for event in events if isinstance(event, StepDone)]
        assert all(len(step.logprobs or []) == len(step.tokens) for step in steps)
        assert last.stats.tokens == len(tokens_of(iter(events)))
        assert last.stats.accepted <= last.stats.tokens


def test_a_stop_id_inside_an_accepted_run_cuts_it(loaded: Loaded) -> None:
    plain = tokens_of(generate(loaded.model, PROMPT, max_tokens=60))
    stop = plain[25]
    first = plain.index(stop)
    cache = loaded.model.new_cache()
    events = list(
        generate(
            loaded.model, PROMPT, max_tokens=60, stop_ids=frozenset({stop}), cache=cache,
            speculative=NgramProposer(k=31, seeds=[PROMPT + plain]),
        )
    )  # fmt: skip
    assert tokens_of(iter(events)) == plain[: first + 1]
    assert same_cache(cache, prefilled_cache(loaded, PROMPT + plain[:first]))


@pytest.mark.parametrize("budget", [1, 2, 17])
def test_the_budget_is_exact(loaded: Loaded, budget: int) -> None:
    *events, last = generate(loaded.model, PROMPT, max_tokens=budget, speculative=NgramProposer(k=15))
    assert isinstance(last, Finished)
    assert (len(tokens_of(iter(events))), last.reason) == (budget, "length")


def test_the_context_end_is_exact(tiny_folder: Maker) -> None:
    loaded = load(tiny_folder(12, max_position_embeddings=60, eos_token_id=None))
    for speculative in (None, NgramProposer(k=31)):
        *events, last = generate(loaded.model, PROMPT, stop_ids=frozenset(), speculative=speculative)
        assert isinstance(last, Finished)
        assert (len(PROMPT) + len(tokens_of(iter(events))), last.reason) == (60, "context")
    with pytest.raises(ContextOverflow, match="no room to answer"):
        next(generate(loaded.model, PROMPT * 2))


def test_a_cache_that_holds_a_prefix_is_reused_and_warm_equals_cold(loaded: Loaded) -> None:
    cold = tokens_of(generate(loaded.model, PROMPT, max_tokens=40, sampling=SAMPLED))
    for prefix in (1, 15, 16, 17, len(PROMPT) - 1, len(PROMPT)):
        cache = prefilled_cache(loaded, PROMPT[:prefix])
        events = list(generate(loaded.model, PROMPT, max_tokens=40, sampling=SAMPLED, cache=cache))
        done = next(event for event in events if isinstance(event, PrefillDone))
        assert (done.reused, done.reused + done.new) == (min(prefix, len(PROMPT) - 1), len(PROMPT) - 1)
        assert tokens_of(iter(events)) == cold


def test_a_cancel_leaves_the_cache_at_the_committed_tokens(loaded: Loaded) -> None:
    cache = loaded.model.new_cache()
    job = generate(loaded.model, PROMPT, max_tokens=60, cache=cache, speculative=NgramProposer(k=7))
    out: list[int] = []
    for event in job:
        if isinstance(event, StepDone):
            out += event.tokens
            if len(out) > 20:
                break
    job.close()
    assert same_cache(cache, prefilled_cache(loaded, (PROMPT + out)[:-1]))
    free = loaded.model.pool.free_pages
    job = generate(loaded.model, PROMPT, max_tokens=60)
    next(job)  # one chunk of prefill
    job.close()
    assert loaded.model.pool.free_pages == free


class Broken(Wrong):
    def propose(self, seq: Sequence, k: int) -> Draft:
        if len(seq.output) > 10:
            raise RuntimeError("a proposer broke")
        return super().propose(seq, k)

    def truncate(self, length: int) -> None:
        assert length == len(PROMPT) + len(self.seen)


def test_a_failure_in_a_step_is_an_engine_error_and_leaves_the_engine_usable(loaded: Loaded) -> None:
    cache, out = loaded.model.new_cache(), list[int]()
    job = generate(loaded.model, PROMPT, max_tokens=60, cache=cache, speculative=Broken())
    with pytest.raises(EngineError, match="a proposer broke"):
        out.extend(token for event in job if isinstance(event, StepDone) for token in event.tokens)
    assert same_cache(cache, prefilled_cache(loaded, (PROMPT + out)[:-1]))
    cache.free()
    assert len(tokens_of(generate(loaded.model, PROMPT, max_tokens=20))) == 20


def test_nan_logits_stop_the_job_with_a_clear_error(tiny_folder: Maker) -> None:
    loaded = load(tiny_folder(13))
    loaded.model.weights.layers[1].down[0, 0] = float("nan")
    with pytest.raises(NonFiniteLogits, match="NaN or infinite"):
        list(generate(loaded.model, PROMPT, max_tokens=5))
    assert loaded.model.pool.free_pages == loaded.model.pool.pages


def test_padded_vocabulary_rows_are_never_emitted(tiny_folder: Maker) -> None:
    loaded = load(tiny_folder(14))
    loaded.model.weights.embedding[260:] *= 100  # the tokenizer knows 260 of 272
    assert loaded.model.vocab_limit == 260
    for sampling in (SamplingParams(), SamplingParams(temperature=5.0)):
        assert max(tokens_of(generate(loaded.model, PROMPT, max_tokens=80, sampling=sampling))) < 260


def test_bad_arguments_are_refused(loaded: Loaded) -> None:
    with pytest.raises(ValueError, match="prompt is empty"):
        next(generate(loaded.model, []))
    with pytest.raises(ValueError, match="outside"):
        next(generate(loaded.model, [1, 100000]))
    for count in (0, -1):
        with pytest.raises(ValueError, match="max_tokens"):
            next(generate(loaded.model, [1, 2], max_tokens=count))
    with pytest.raises(ValueError, match="tokenizer"):
        next(generate(loaded.model, [1], stop_strings=["x"]))
    with pytest.raises(ValueError, match="top_p"):
        SamplingParams(top_p=0.0)
