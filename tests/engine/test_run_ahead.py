"""A step runs while the caller works: what the caller sees of it is what it saw before, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scripted import Scripted, assert_fresh, tokens_of

from specd.engine import (
    Committed,
    EngineConfig,
    Event,
    OutOfMemory,
    SamplingParams,
    Sequence,
    StepDone,
    generate,
    load,
)
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.static_step import Kind, StaticStep

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
PROMPT = list(b"the next step runs before anybody has read what the last one said")
OTHER = list(b"and somebody else's step runs in between")
TAPS = (0, 2)
SAMPLED = SamplingParams(temperature=0.9, seed=5)


@pytest.fixture
def model(tiny_folder: Maker) -> Qwen3:
    model = load(tiny_folder(41), engine=EngineConfig(page_size=8, prefill_chunk=32, kv_tokens=1024)).model
    assert isinstance(model.ops, StaticOps)
    return model


@pytest.fixture
def truth(model: Qwen3) -> list[int]:
    return tokens_of(generate(model, PROMPT, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER))


class Tapped(Scripted):
    """Keeps the taps that it is told."""

    tap_layers = TAPS

    def __init__(self, truth: list[int]) -> None:
        super().__init__(truth, lambda step: step % 5)
        self.taps: list[torch.Tensor] = []

    def observe(self, seq: Sequence, committed: Committed) -> None:
        super().observe(seq, committed)
        if committed.taps is not None and committed.tokens:
            assert len(committed.taps) == len(committed.tokens)
            self.taps.append(committed.taps)


def test_the_next_step_is_launched_before_the_last_one_is_told_of(
    model: Qwen3, truth: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = model.steps = StaticStep(model)
    launched: list[str] = []

    def launch(width: int, kind: Kind) -> None:
        launched.append(kind)
        StaticStep.launch(steps, width, kind)

    monkeypatch.setattr(steps, "launch", launch)
    out: list[int] = []
    for event in generate(model, PROMPT, sampling=SAMPLED, max_tokens=6, stop_ids=NEVER):
        if isinstance(event, StepDone):
            out += event.tokens
            assert launched.count("chain") == min(len(out) + 1, 6)  # none beyond the last
    assert out == truth[:6]


def test_jobs_that_take_turns_keep_what_is_theirs(model: Qwen3, truth: list[int]) -> None:
    beside = tokens_of(generate(model, OTHER, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER))
    alone = Tapped(PROMPT + truth)
    model.steps = StaticStep(model, TAPS)
    tokens_of(generate(model, PROMPT, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER, speculative=alone))
    one, two = Tapped(PROMPT + truth), Tapped(OTHER + beside)
    jobs = [
        generate(model, ids, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER, speculative=proposer)
        for ids, proposer in ((PROMPT, one), (OTHER, two))
    ]
    out: list[list[int]] = [[], []]
    while any(jobs):
        for number, job in enumerate(jobs):
            event: Event | None = next(job, None) if job is not None else None
            out[number] += event.tokens if isinstance(event, StepDone) else []
            jobs[number] = None if event is None else job  # type: ignore[call-overload]
    assert out == [truth, beside]
    assert all(torch.equal(a, b) for a, b in zip(alone.taps, one.taps, strict=True))


@pytest.mark.parametrize("count", [1, 4, 9])
def test_a_cancel_takes_the_step_back_that_runs(model: Qwen3, truth: list[int], count: int) -> None:
    steps = model.steps = StaticStep(model)
    cache, free, out = model.new_cache(), model.pool.free_pages, list[int]()
    script = Scripted(PROMPT + truth, lambda step: 7)
    events = generate(model, PROMPT, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER, speculative=script, cache=cache)
    for event in events:
        out += event.tokens if isinstance(event, StepDone) else []
        if script.steps > count:
            events.close()
    assert steps._flying is None
    assert_fresh(model, cache, [*PROMPT, *out][:-1])
    cache.free()
    assert model.pool.free_pages == free
    assert (
        tokens_of(generate(model, PROMPT, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER)) == truth
    )  # nothing flies any more


def test_what_fails_ahead_is_told_after_the_step_before(model: Qwen3, truth: list[int]) -> None:
    model.steps = StaticStep(model)
    cache, out, taken = model.new_cache(), list[int](), list[int]()
    events = generate(model, PROMPT, sampling=SAMPLED, max_tokens=60, stop_ids=NEVER, cache=cache)

    def drain() -> None:
        for event in events:
            if isinstance(event, StepDone):
                out.extend(event.tokens)
                while model.pool.free_pages:  # somebody takes all that is left
                    taken.append(model.pool.take())

    with pytest.raises(OutOfMemory, match="in use"):
        drain()
    assert 1 < len(out) < 60
    assert out == truth[: len(out)]
    for page in taken:
        model.pool.release(page)
    assert_fresh(model, cache, [*PROMPT, *out][:-1])
    cache.free()
