"""One generation: its state, its loop, and the events that it yields.

Where steps are launched and awaited apart, the next one is launched before the caller hears of the last: while the
caller works, so does the device. What can wait, as the text can, is done between a launch and its result. Whatever
fails or interrupts a job, its caches are at the length that the caller was told: a step that he has not heard of is
taken back.
"""

import time
from collections.abc import Callable, Generator
from collections.abc import Sequence as Tokens
from typing import NamedTuple

import torch

from specd.engine.draft import Committed, Draft, Sequence, common_taps, concluding, unhurried
from specd.engine.events import Event, Finished, PrefillDone, StepDone
from specd.engine.finish import FinishRules, Reason, cut
from specd.engine.foresight import Foresight
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.policy import StepPolicy
from specd.engine.prefill import prefill, prefilled
from specd.engine.sampling import AcceptRule, SamplingParams
from specd.engine.static_step import Flight
from specd.engine.stats import StepRecord, Summary
from specd.engine.tokenizer import TextStream, Tokenizer
from specd.engine.verify import land, launch, verify

_AT_ONCE = 3e-5  # seconds: a wait no longer than this waited for nothing


class _Begun(NamedTuple):
    """A step up to its launch. flight: None where it runs in one piece. drafted, launched: when, in seconds."""

    draft: Draft
    proposer: str | None
    flight: Flight | None
    seconds_draft: float
    drafted: float
    launched: float


class _Landed(NamedTuple):
    """A step that is committed and that nobody was told of. kept: its tokens. text: what leaves with them before what
    the job has not read yet."""

    kept: list[int]
    reason: Reason | None
    text: str
    scores: list[float] | None
    begun: _Begun
    accepted: int
    seconds: float
    rule: AcceptRule
    is_timed: bool


class Job:
    """The state of one generation. Between two steps the cache holds all committed tokens but the newest."""

    def __init__(
        self,
        model: Qwen3,
        ids: list[int],
        tokenizer: Tokenizer | None,
        sampling: SamplingParams,
        rules: FinishRules,
        policy: StepPolicy,
        cache: KVCache,
        logprobs: bool,
        accept: AcceptRule,
    ) -> None:
        self.model, self.sampling, self.rules, self.policy, self.cache = model, sampling, rules, policy, cache
        self.logprobs, self.accept = logprobs, accept
        self.seq = Sequence(ids, len(ids))
        self._told = len(ids)  # tokens of seq that the caller knows of
        self.stats = Summary(prompt_tokens=len(ids))
        self.text = TextStream(tokenizer) if tokenizer is not None else None
        self._decode = self.text.push if self.text is not None else lambda ids: ""
        self._unread: Tokens[int] = ()  # what the last step committed and nobody has decoded
        self._cut_by_string = False
        self._begun: _Begun | None = None  # the step that runs ahead of the caller
        self._unrecorded: list[tuple[StepRecord, bool]] = []  # the last step's, and whether it tells what a step costs
        self._unhurried = unhurried((policy, *policy.proposers))
        self._foresight = Foresight(policy)
        self.held = ""  # text that may be the beginning of a stop string
        self.taps = common_taps(policy.proposers)

    def run(self) -> Generator[Event, None, None]:
        try:
            yield from self._prefill()
            reason: Reason | None = None
            while reason is None:
                with self.model.ops.alone():
                    if self._begun is None:
                        self._begun = self._begin()
                    landed = self._end(self._begun)
                    reason = landed.reason
                    failure = self._run_ahead() if reason is None else None
                    done = self._tell(landed)
                length = len(self.seq)
                self._told = length  # nothing is called between here and the yield: no signal comes between them
                yield done
                if failure is not None:
                    raise failure
            failure = _failure_of(self._conclude)  # what the last step taught is for the next job too
            tail = self.held + (self.text.finish() if self.text is not None and not self._cut_by_string else "")
            yield Finished(reason, tail, self.stats)
            if failure is not None:
                raise failure
        except BaseException:  # a cancel too
            self._rewind()
            raise

    def _prefill(self) -> Generator[Event, None, None]:
        self.cache.truncate(len(self.seq) - 1)
        reused = self.stats.reused_tokens = self.cache.length
        begin = time.perf_counter()
        for progress, taps in prefill(self.model, self.seq.tokens, self.cache, self.taps, self._while_reading):
            self._observe(prefilled(progress, taps))
            self.stats.seconds_prefill = time.perf_counter() - begin
            yield progress
        self._observe(Committed([]))
        self._foresight.meet(())
        yield PrefillDone(reused, self.cache.length - reused, self.stats.seconds_prefill)

    def _run_ahead(self) -> BaseException | None:
        """Begins the next step, so that the device works while the caller does, where steps are launched and awaited
        apart. -> what failed or interrupted it, which is told when the next step is asked for."""
        if self.model.steps is None or self.logprobs:
            return None
        try:
            self._begun = self._begin()
        except BaseException as error:  # an interrupt too: the step before it is committed, and not told yet
            return error
        return None

    def _begin(self) -> _Begun:
        """Chooses the next step's draft, and launches the step where that can be done apart from the rest."""
        seq = self.seq
        begin = time.perf_counter()
        limit = self._longest_draft(len(seq))
        choice = self._foresight.take(seq, limit) or self.policy.choose(seq, limit)
        drafted = time.perf_counter()
        flight = launch(
            self.model, self.cache, seq.tokens[-1], choice.draft, self.sampling, self.taps, self.accept, self.logprobs
        )
        return _Begun(choice.draft, choice.proposer, flight, drafted - begin, drafted, time.perf_counter())

    def _end(self, begun: _Begun) -> _Landed:
        """The rest of the step: its result is waited for and committed. Of what follows, the next step waits for all
        and the caller for nothing."""
        seq, cache, draft, name = self.seq, self.cache, begun.draft, begun.proposer
        start = len(seq.tokens)
        resumed = time.perf_counter()
        if begun.flight is not None:
            self._meanwhile()
            self._look_ahead(begun, begun.flight)
            awaited = time.perf_counter()
            step = land(begun.flight, self.taps)
        else:
            awaited = 0.0
            step = verify(
                self.model, cache, seq.tokens[-1], draft, self.sampling, self.taps, self.accept, self.logprobs,
                self._meanwhile,
            )  # fmt: skip
        self._begun = None
        landed = time.perf_counter()
        emitted = step.accepted.tokens
        read = self._decode if self.rules.stop_strings else self._read_later
        ending = cut(self.rules, start - seq.prompt_length, self.held, emitted, read)
        kept = emitted[: ending.kept]
        self.held = ending.held
        self._cut_by_string = ending.reason == "stop" and kept[-1] not in self.rules.stop_ids
        seq.tokens.extend(kept)
        self._foresight.meet(kept)
        cache.truncate(len(seq.tokens) - 1)
        size, accepted = draft.size, min(len(step.accepted.path), len(kept))
        taps = None if step.taps is None else step.taps[: len(kept)]
        self._observe(Committed(kept, name, size, accepted, taps, start - 1))
        scores = None
        if step.logits is not None and self.logprobs:
            rows = step.logits[: len(kept)].log_softmax(dim=-1)
            scores = rows.gather(-1, torch.tensor(kept, device=rows.device)[:, None])[:, 0].tolist()
        # Where the device was done before anyone asked, when is not known: what the host spent is all there is to tell.
        # While the caller was away nothing was done for the step, but by a device that works aside and is awaited.
        is_aside = begun.flight is not None and begun.flight.steps.works_aside
        is_timed = not is_aside or landed - awaited > _AT_ONCE
        away = 0.0 if is_aside and is_timed else resumed - begun.launched
        seconds = time.perf_counter() - begun.drafted - away
        return _Landed(kept, ending.reason, ending.text, scores, begun, accepted, seconds, step.rule, is_timed)

    def _tell(self, landed: _Landed) -> StepDone:
        """What the caller hears of a step, and only he waits for."""
        kept, _, text, scores, begun, accepted, seconds, rule, is_timed = landed
        text, self._unread = text + self._decode(self._unread), ()
        record = StepRecord(begun.proposer, begun.draft.size, accepted, len(kept), begun.seconds_draft, seconds, rule)
        self._unrecorded.append((record, is_timed))
        return StepDone(kept, text, record, scores)

    def _read_later(self, ids: Tokens[int]) -> str:
        self._unread = ids
        return ""

    def _meanwhile(self) -> None:
        """While the device works: what can wait until then, and what policy and proposers would otherwise do before the
        next draft."""
        self._record()
        for work in self._unhurried:
            work(self.seq)

    def _conclude(self) -> None:
        self._record()
        for work in concluding((self.policy, *self.policy.proposers)):
            work(self.seq)

    def _record(self) -> None:
        while self._unrecorded:
            record, is_timed = self._unrecorded.pop(0)
            self.stats.add(record)
            if is_timed:
                self.policy.record(record)

    def _while_reading(self) -> None:
        """While the device works on a part of the prompt: what proposers do with one, and the first draft."""
        self._meanwhile()
        if self.model.steps is not None and self.model.steps.is_busy() and not self._foresight.is_ready:
            self._observe(Committed([]))
            self._foresight.begin(self.seq, self._longest_draft(len(self.seq)))

    def _look_ahead(self, begun: _Begun, flight: Flight) -> None:
        """While the device works still: what the next step needs, if this one goes as may be expected."""
        is_busy, ends, draft = flight.steps.is_busy, self.rules.stop_ids, begun.draft
        if is_busy():
            self._foresight.look(self.seq, draft, begun.launched, ends, self._longest_draft, is_busy)
        if is_busy():
            flight.steps.rehearse(flight, self.seq.tokens[-1], draft, self.sampling)

    def _longest_draft(self, length: int) -> int:
        """Behind so many tokens. k drafts emit up to k + 1 tokens and take k + 1 positions."""
        budget = self.rules.max_tokens - (length - self.seq.prompt_length)
        return max(0, min(budget - 1, self.cache.max_positions - length))

    def _rewind(self) -> None:
        """All that a step changes back to what the caller was told of, wherever it was left."""
        self._foresight.restore()
        if self.model.steps is not None:
            self.model.steps.leave(self.cache)
        del self.seq.tokens[self._told :]
        self.cache.truncate(self._told - 1)
        for proposer in self.policy.proposers:
            proposer.truncate(self._told)

    def _observe(self, committed: Committed) -> None:
        for proposer in self.policy.proposers:
            proposer.observe(self.seq, committed)


def _failure_of(work: Callable[[], None]) -> BaseException | None:
    """Does the work. -> what failed or interrupted it."""
    try:
        work()
    except BaseException as error:
        return error
    return None
