"""Whatever interrupts a job, and wherever: its caches are at the length that the caller was told, and it can go on."""

import contextlib
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from drafters import NEVER, PROMPT, a_little_off
from interrupting import Interrupting
from scripted import Scripted, assert_fresh, tokens_of

from specd.engine import (
    Choice,
    Committed,
    Draft,
    EngineConfig,
    Event,
    Finished,
    NgramProposer,
    Sequence,
    StepDone,
    StepRecord,
    generate,
    load,
    static_step,
    verify,
)
from specd.engine import job as job_module
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.policy import PLAIN
from specd.engine.propose.draft_model import DraftModelProposer
from specd.engine.static_step import StaticStep

Maker = Callable[..., Path]
ENGINE = EngineConfig(page_size=8, prefill_chunk=32, kv_tokens=2048)


@pytest.fixture(scope="module", params=["one by one", "fixed shape"])
def model(tiny_folder: Maker, request: pytest.FixtureRequest) -> Qwen3:
    model = load(tiny_folder(51), engine=ENGINE).model
    if request.param == "fixed shape":
        assert isinstance(model.ops, StaticOps)
        model.steps = StaticStep(model)
    return model


@pytest.fixture(scope="module")
def near(tiny_folder: Maker) -> Qwen3:
    return load(a_little_off(tiny_folder(51)), engine=ENGINE).model


@pytest.fixture(scope="module")
def plain(model: Qwen3) -> list[int]:
    return tokens_of(generate(model, PROMPT, max_tokens=24, stop_ids=NEVER))


def hear(events: Iterable[Event], heard: list[Event]) -> None:
    """What a caller has heard of, also where the events end in an error."""
    heard.extend(events)


class Faulty(NgramProposer):
    """Fails once, in the call with number `at` of the method `where`, before or after it has done its work."""

    def __init__(self, where: str, at: int, is_late: bool, error: type[BaseException], seeds: list[int]) -> None:
        super().__init__(2, [seeds])
        self._where, self._left, self._is_late, self._error = where, at, is_late, error

    def propose(self, seq: Sequence, k: int) -> Draft:
        return self._failing("propose", super().propose, seq, k)  # type: ignore[no-any-return]

    def observe(self, seq: Sequence, committed: Committed) -> None:
        self._failing("observe", super().observe, seq, committed)

    def meanwhile(self, seq: Sequence) -> None:
        self._failing("meanwhile", super().meanwhile, seq)

    def _failing(self, name: str, work: Callable[..., Any], *given: object) -> Any:
        self._left -= name == self._where
        fails = self._left == 0 and name == self._where
        if fails and not self._is_late:
            raise self._error("injected")
        found = work(*given)
        if fails:
            raise self._error("injected")
        return found


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("where", ["propose", "observe", "meanwhile"])
def test_a_fault_or_an_interrupt_leaves_the_cache_where_the_caller_was_told(
    model: Qwen3, plain: list[int], where: str, is_late: bool, error: type[BaseException]
) -> None:
    for at in range(1, 8):
        proposer, cache, heard = Faulty(where, at, is_late, error, plain), model.new_cache(), list[Event]()
        events = generate(model, PROMPT, max_tokens=24, stop_ids=NEVER, speculative=proposer, cache=cache)
        with pytest.raises(error):
            hear(events, heard)
        told = tokens_of(heard)
        assert told == plain[: len(told)]
        assert model.steps is None or model.steps._flying is None
        assert_fresh(model, cache, [*PROMPT, *told][:-1] if told else PROMPT[: cache.length])
        rest = generate(
            model, [*PROMPT, *told], max_tokens=24 - len(told) or 1, stop_ids=NEVER, speculative=proposer, cache=cache
        )
        assert [*told, *tokens_of(rest)][:24] == plain
        cache.free()


def test_an_interrupt_at_any_line_of_a_step(model: Qwen3, near: Qwen3, plain: list[int]) -> None:
    """Every line of the engine's own loop in turn."""
    files = {inspect.getsourcefile(module) for module in (job_module, verify, static_step)}
    source = inspect.getsourcelines(job_module)[0]
    told_of = 1 + next(number for number, line in enumerate(source) if line.strip() == "yield done")  # no signal there

    def follows(frame: FrameType) -> bool:
        return frame.f_code.co_filename in files and frame.f_code.co_name != "_rewind"

    total, at = 1, 0
    while at < total:
        at += 3
        proposer = DraftModelProposer(near, 5, target=model)
        cache, told = model.new_cache(), list[int]()
        events = generate(model, PROMPT, max_tokens=9, stop_ids=NEVER, speculative=proposer, cache=cache)
        with contextlib.closing(events), Interrupting(at, follows, spares=told_of) as tried:
            for event in events:
                told += event.tokens if isinstance(event, StepDone) else []
        total = tried.lines if tried.is_through else total + 3
        assert told == plain[: len(told)]
        assert_fresh(model, cache, [*PROMPT, *told][:-1] if told else PROMPT[: cache.length])
        assert proposer.context.tokens == [*PROMPT, *told][: proposer.context.cache.length]
        cache.free()
        proposer.close()
    assert at > 200
    assert model.pool.free_pages == model.pool.pages
    assert tokens_of(generate(model, PROMPT, max_tokens=24, stop_ids=NEVER)) == plain


def test_an_interrupt_while_another_job_begins_costs_the_first_nothing(
    tiny_folder: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(tiny_folder(51), engine=ENGINE).model
    truth = tokens_of(generate(model, PROMPT, max_tokens=12, stop_ids=NEVER))
    steps = model.steps = StaticStep(model)
    first = generate(model, PROMPT, max_tokens=12, stop_ids=NEVER)
    out: list[int] = []
    while len(out) < 3:
        event = next(first)
        out += event.tokens if isinstance(event, StepDone) else []
    flight = steps._flying
    assert flight is not None

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tokens_of(generate(model, PROMPT[::-1], max_tokens=3, stop_ids=NEVER))
    assert tokens_of(generate(model, PROMPT[::-1], max_tokens=3, stop_ids=NEVER))
    assert out + tokens_of(first) == truth


class Strict:
    """Plain steps; `record` fails for the last step of so many."""

    proposers = ()

    def __init__(self, fails_at: int) -> None:
        self.records: list[StepRecord] = []
        self._fails_at = fails_at

    def choose(self, seq: Sequence, limit: int) -> Choice:
        return PLAIN

    def record(self, record: StepRecord) -> None:
        self.records.append(record)
        if len(self.records) == self._fails_at:
            raise ValueError("a policy's own fault")


def test_a_complete_answer_ends_in_finished_whatever_fails_after_it(model: Qwen3, plain: list[int]) -> None:
    events: list[Event] = []
    with pytest.raises(ValueError, match="own fault"):
        hear(generate(model, PROMPT, max_tokens=9, stop_ids=NEVER, speculative=Strict(9)), events)
    last = events[-1]
    assert isinstance(last, Finished)
    assert (last.stats.steps, last.stats.tokens) == (9, 9)
    assert tokens_of(events) == plain[:9]


def test_a_proposer_that_fails_over_the_last_step_spoils_no_answer(model: Qwen3, plain: list[int]) -> None:
    class Last(Scripted):
        def meanwhile(self, seq: Sequence) -> None:
            if len(seq) == len(PROMPT) + 9:
                raise KeyboardInterrupt

    events, cache = list[Event](), model.new_cache()
    job = generate(
        model,
        PROMPT,
        max_tokens=9,
        stop_ids=NEVER,
        speculative=Last(PROMPT + plain, lambda step: 2),
        cache=cache,
    )
    with pytest.raises(KeyboardInterrupt):
        hear(job, events)
    assert isinstance(events[-1], Finished)
    assert_fresh(model, cache, [*PROMPT, *plain[:8]])
    cache.free()
