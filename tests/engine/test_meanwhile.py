"""What proposers do while the device works: they are called in every step, and no fault of theirs harms the job."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted, assert_fresh, run, tokens_of

from specd.engine import (
    Acceptance,
    Adaptive,
    Choice,
    CostTable,
    Draft,
    EngineConfig,
    SamplingParams,
    Sequence,
    StepDone,
    StepRecord,
    generate,
    load,
)
from specd.engine.draft import EMPTY
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.propose.ngram_tree import NgramBranches
from specd.engine.propose.tree import TreeProposer
from specd.engine.static_step import StaticStep

Maker = Callable[..., Path]
NEVER: frozenset[int] = frozenset()
SAMPLED = SamplingParams(temperature=0.9, seed=3)
PROMPT = list(b"while one works the other works, and while one works the other waits")
COSTS = {1: 1.0, 8: 1.05, 32: 1.2}


@pytest.fixture(scope="module", params=["one by one", "fixed shape"])
def model(tiny_folder: Maker, request: pytest.FixtureRequest) -> Qwen3:
    model = load(tiny_folder(31), engine=EngineConfig(page_size=8, prefill_chunk=32, kv_tokens=2048)).model
    if request.param == "fixed shape":
        assert isinstance(model.ops, StaticOps)
        model.steps = StaticStep(model)
    return model


@pytest.fixture(scope="module")
def truth(model: Qwen3) -> list[int]:
    return PROMPT + tokens_of(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER))


class Busy(Scripted):
    """Notes the rows that it was called for, and fails in the step with the number `fails`."""

    def __init__(self, truth: list[int], fails: int | None = None) -> None:
        super().__init__(truth, lambda step: step % 4)
        self.rows: list[int] = []
        self._fails = fails

    def meanwhile(self, seq: Sequence) -> None:
        assert seq.tokens == self.truth[: len(seq)]
        self.rows.append(len(seq))
        if self._fails is not None and self.steps > self._fails:
            raise ValueError("a proposer's own fault")


def test_every_chunk_and_every_step_is_used(model: Qwen3, truth: list[int]) -> None:
    busy, rows = Busy(truth), [len(PROMPT)] * 3  # three chunks: nothing is committed yet
    length = len(PROMPT)
    for event in generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=busy):
        if isinstance(event, StepDone):
            rows.append(length)  # the step began there
            length += len(event.tokens)
            assert busy.rows == rows
    assert busy.rows == [*rows, length]  # what the last step taught


@pytest.mark.parametrize("fails", [0, 3])
def test_a_fault_there_ends_the_job_and_leaves_the_cache_as_committed(
    model: Qwen3, truth: list[int], fails: int
) -> None:
    cache, busy, out = model.new_cache(), Busy(truth, fails), list[int]()
    events = generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=busy, cache=cache)
    with pytest.raises(ValueError, match="own fault"):
        out.extend(token for event in events if isinstance(event, StepDone) for token in event.tokens)
    assert_fresh(model, cache, [*PROMPT, *out][:-1])
    cache.free()


def test_lookup_that_catches_up_late_changes_no_output(model: Qwen3, truth: list[int]) -> None:
    tree = TreeProposer([NgramBranches(15, [truth[len(PROMPT) :]])], 15)
    policy = Adaptive([Busy(truth), tree], CostTable(dict(COSTS), frozen=True), Acceptance())
    out, stats = run(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=policy))
    assert PROMPT + out == truth
    assert stats.emitted == stats.tokens == len(out)  # the last step is in it too
    again, _ = run(generate(model, PROMPT, max_tokens=60, stop_ids=NEVER, speculative=tree))
    assert again == out


class Recorded:
    """Always the same draft, and the records that came of it."""

    proposers = ()

    def __init__(self, draft: Draft) -> None:
        self.choice = Choice("always", draft)
        self.records: list[StepRecord] = []
        self.chosen = 0

    def choose(self, seq: Sequence, limit: int) -> Choice:
        assert len(self.records) == max(0, self.chosen - 1)  # a step's record comes after the next choice
        self.chosen += 1
        return self.choice

    def record(self, record: StepRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("options", [{}, {"logprobs": True}, {"accept": "rejection", "sampling": SAMPLED}])
@pytest.mark.parametrize("draft", [EMPTY, Draft.chain([7])])
def test_every_step_is_recorded_once_and_the_callers_time_is_not_its_own(
    model: Qwen3, draft: Draft, options: dict[str, Any]
) -> None:
    policy, steps, began = Recorded(draft), 0, time.perf_counter()
    for event in generate(model, PROMPT, max_tokens=20, stop_ids=NEVER, speculative=policy, **options):
        if isinstance(event, StepDone):
            steps += 1
            time.sleep(0.01)
    worked = time.perf_counter() - began - steps * 0.01
    assert len(policy.records) == policy.chosen == steps
    assert all(record.seconds_verify > 0.0 for record in policy.records)
    assert sum(record.seconds_verify for record in policy.records) <= worked
