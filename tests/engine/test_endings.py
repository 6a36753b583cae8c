"""However a job ends, every cache holds what a fresh prefill of its committed tokens would leave, whoever drafts."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from drafters import NEVER, PROMPT, PROPOSERS, AtMost, a_little_off, make
from scripted import assert_fresh, tokens_of
from torch import Tensor

from specd.engine import (
    Draft,
    EngineError,
    Event,
    Finished,
    Loaded,
    SamplingParams,
    StepDone,
    generate,
)
from specd.engine import Sequence as Row
from specd.engine.kv_cache import KVCache
from specd.engine.model import Hidden
from specd.engine.propose.draft_model import DraftModelProposer

Maker = Callable[..., Path]
SPECULATIVE = (
    "script",
    "script tree",
    "ngram tree",
    "draft model",
    "ngram and dflash tree",
    "ngram and draft model tree",
)


@pytest.fixture(scope="module", params=["native", "torch"])
def loaded(tiny_folder: Maker, request: pytest.FixtureRequest) -> Loaded:
    return make(tiny_folder(51), request.param)


@pytest.fixture(scope="module")
def near(loaded: Loaded, tiny_folder: Maker) -> Loaded:
    return make(a_little_off(tiny_folder(51)), loaded.model.ops.name)


class Job:
    """A job on a cache of its own, its proposer, and what it committed so far."""

    def __init__(self, loaded: Loaded, near: Loaded, name: str, plain: list[int], **options: Any) -> None:
        self.loaded, self.near, self.name = loaded, near, name
        self.plain = plain
        self.proposer = PROPOSERS[name](loaded, near, plain, SamplingParams())
        self.cache = loaded.model.new_cache()
        self.committed: list[int] = []
        self.options = options

    def events(self) -> Generator[Event, None, None]:
        for event in generate(
            self.loaded.model, PROMPT, cache=self.cache, speculative=AtMost(self.proposer, 9), **self.options
        ):
            if isinstance(event, StepDone):
                self.committed += event.tokens
            yield event

    def check(self) -> None:
        """Every cache is a fresh prefill's, nothing is lost, and the engine goes on as if nothing had happened."""
        row = PROMPT + self.committed
        assert self.committed == self.plain[: len(self.committed)]
        assert_fresh(self.loaded.model, self.cache, row[:-1])
        for part in (self.proposer, *getattr(self.proposer, "sources", ())):
            if isinstance(part, DraftModelProposer):
                held = part.context.cache
                assert_fresh(self.near.model, held, row[: held.length])
                part.close()
        rest = self.plain[len(self.committed) :]
        again = generate(self.loaded.model, row, cache=self.cache, max_tokens=len(rest) or 1, stop_ids=NEVER)
        assert tokens_of(again)[: len(rest)] == rest
        self.cache.free()
        for model in (self.loaded.model, self.near.model):
            assert model.pool.free_pages == model.pool.pages


@pytest.fixture(scope="module")
def plain(loaded: Loaded) -> list[int]:
    return tokens_of(generate(loaded.model, PROMPT, max_tokens=40, stop_ids=NEVER))


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_stop_id_inside_an_accepted_run(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for stop in sorted(set(plain))[:6]:
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=frozenset({stop}))
        *_, last = job.events()
        assert isinstance(last, Finished)
        assert last.reason == "stop"
        assert job.committed == plain[: plain.index(stop) + 1]
        assert last.stats.accepted <= last.stats.tokens == len(job.committed)
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_stop_string(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    text = loaded.tokenizer.decode(plain)
    for at in (5, 11, 17):
        stop = text[at : at + 2]
        job = Job(
            loaded, near, name, plain, max_tokens=40, stop_ids=NEVER, stop_strings=[stop], tokenizer=loaded.tokenizer
        )
        events = list(job.events())
        last = events[-1]
        assert isinstance(last, Finished)
        said = "".join(event.text for event in events if isinstance(event, StepDone)) + last.text_tail
        assert (last.reason, said) == ("stop", text[: text.index(stop)])
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_the_budgets_end(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for budget in (1, 2, 13):
        job = Job(loaded, near, name, plain, max_tokens=budget, stop_ids=NEVER)
        *_, last = job.events()
        assert isinstance(last, Finished)
        assert (last.reason, len(job.committed)) == ("length", budget)
        job.check()


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_cancel_at_any_event(loaded: Loaded, near: Loaded, plain: list[int], name: str) -> None:
    for after in (1, 3, 6, 9):  # events: chunks of the prefill, its end, steps
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
        events = job.events()
        for _ in range(after):
            next(events)
        events.close()
        if job.committed:
            job.check()
        else:
            assert_fresh(loaded.model, job.cache, PROMPT[: job.cache.length])
            job.cache.free()


class Boom(Exception):
    pass


@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_proposer_that_raises_before_or_after_it_drafted(
    loaded: Loaded, near: Loaded, plain: list[int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_late in (False, True):
        job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
        propose, calls = job.proposer.propose, 0

        def raising(seq: Row, k: int, propose: Any = propose, is_late: bool = is_late) -> Draft:
            nonlocal calls
            calls += 1
            if calls == 3:
                if is_late:
                    propose(seq, k)
                raise Boom
            return propose(seq, k)  # type: ignore[no-any-return]

        monkeypatch.setattr(job.proposer, "propose", raising)
        with pytest.raises(Boom):
            list(job.events())
        assert job.committed
        job.check()


@pytest.mark.parametrize("error", [Boom, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SPECULATIVE)
def test_a_verify_step_that_raises(
    loaded: Loaded,
    near: Loaded,
    plain: list[int],
    name: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(loaded, near, name, plain, max_tokens=40, stop_ids=NEVER)
    forward, calls = loaded.model.forward, 0

    def raising(
        tokens: Tensor, positions: Tensor, cache: KVCache, mask: Tensor | None = None, taps: Sequence[int] = ()
    ) -> Hidden:
        nonlocal calls
        hidden = forward(tokens, positions, cache, mask, taps)
        calls += 1
        if calls == 7:
            raise error("in a step")
        return hidden

    with monkeypatch.context() as patch:
        patch.setattr(loaded.model, "forward", raising)
        with pytest.raises(EngineError if error is RuntimeError else error):
            list(job.events())
    assert job.committed
    job.check()
