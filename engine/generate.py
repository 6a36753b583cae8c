"""The loop: prefill, then draft, verify, commit until a finish rule hits. `generate` is the engine's public function.

A plain generator: one verify step per next(), so a caller can interleave jobs step by step, and close() is a cancel.
However it ends, the caches are at the last committed length, or given back where the generator made them.
"""

import time
from collections.abc import Callable, Generator
from collections.abc import Sequence as Tokens
from dataclasses import dataclass

import torch

from specd.engine.draft import Committed, Proposer, Sequence
from specd.engine.errors import ContextOverflow, EngineError, OutOfMemory
from specd.engine.finish import FinishRules, Reason, cut
from specd.engine.kv_cache import KVCache
from specd.engine.model import Qwen3
from specd.engine.policy import Fixed, StepPolicy
from specd.engine.prefill import PrefillProgress, prefill, prefilled
from specd.engine.sampling import AcceptRule, SamplingParams
from specd.engine.stats import StepRecord, Summary
from specd.engine.tokenizer import TextStream, Tokenizer
from specd.engine.verify import verify


@dataclass(frozen=True)
class PrefillDone:
    """reused + new = prompt tokens - 1; the newest one goes with the first step."""

    reused: int
    new: int
    seconds: float


@dataclass(frozen=True)
class StepDone:
    """tokens: what the step committed. text: what left the text stream with it (its last characters may be held back).
    logprobs: log-probability of each token under the target's own law at temperature 1, where asked for."""

    tokens: list[int]
    text: str
    record: StepRecord
    logprobs: list[float] | None = None


@dataclass(frozen=True)
class Finished:
    """text_tail: the rest of the text. Always the last event of a job that was not cancelled and did not fail."""

    reason: Reason
    text_tail: str
    stats: Summary


Event = PrefillProgress | PrefillDone | StepDone | Finished


def generate(
    model: Qwen3,
    ids: Tokens[int],
    *,
    tokenizer: Tokenizer | None = None,
    sampling: SamplingParams | None = None,
    stop_ids: frozenset[int] | None = None,
    stop_strings: Tokens[str] = (),
    max_tokens: int | None = None,
    speculative: Proposer | StepPolicy | None = None,
    accept: AcceptRule = "exact",
    cache: KVCache | None = None,
    logprobs: bool = False,
) -> Generator[Event, None, None]:
    """Generates after the prompt `ids`, one verify step per StepDone, and ends with Finished.

    tokenizer: needed for text and for stop strings. stop_ids: None takes the model's. max_tokens: None runs to the
    context's end. speculative: a proposer, or a policy that chooses among several; the output does not depend on it.
    accept: `rejection` judges sampled drafts by the rule of rejection.py, which keeps the output's law, not its tokens.
    cache: holds some first tokens of ids already, and afterwards all committed tokens but the newest; without one, a
    fresh cache is used and given back. Raises EngineError (ContextOverflow, OutOfMemory, NonFiniteLogits).
    """
    room = model.config.max_positions - len(ids)
    if not ids:
        raise ValueError("the prompt is empty")
    if not 0 <= min(ids) <= max(ids) < model.config.vocab_size:
        raise ValueError(f"the prompt holds ids outside 0..{model.config.vocab_size - 1}")
    if room < 1:
        raise ContextOverflow(
            f"the prompt has {len(ids)} tokens: no room to answer in a context of {model.config.max_positions}"
        )
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens must be 1 or more, not {max_tokens}")
    if stop_strings and tokenizer is None:
        raise ValueError("stop strings need a tokenizer")
    if accept not in ("exact", "rejection"):
        raise ValueError(f"accept must be exact or rejection, not {accept!r}")
    budget = room if max_tokens is None else min(max_tokens, room)
    rules = FinishRules(
        model.config.stop_ids if stop_ids is None else stop_ids,
        tuple(stop_strings),
        budget,
        context_full=budget == room,
    )
    policy = speculative if isinstance(speculative, StepPolicy) else Fixed(speculative)
    own = cache is None
    held = model.new_cache() if cache is None else cache
    try:
        params = sampling or SamplingParams()
        yield from _Job(model, list(ids), tokenizer, params, rules, policy, held, logprobs, accept).run()
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            "the device is out of memory; nothing was changed, try again or use a smaller model"
        ) from error
    except RuntimeError as error:
        raise EngineError(f"the engine failed in a step: {error}") from error
    finally:
        if own:
            held.free()


class _Job:
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
        self.stats = Summary(prompt_tokens=len(ids))
        self.text = TextStream(tokenizer) if tokenizer is not None else None
        self._decode = self.text.push if self.text is not None else lambda ids: ""
        self._cut_by_string = False
        self._unrecorded: list[StepRecord] = []  # the last step's
        asked = [getattr(each, "meanwhile", None) for each in (policy, *policy.proposers)]
        self._unhurried: list[Callable[[Sequence], None]] = [each for each in asked if each is not None]
        self.held = ""  # text that may be the beginning of a stop string
        taps = {tuple(getattr(proposer, "tap_layers", ())) for proposer in policy.proposers} - {()}
        if len(taps) > 1:
            raise ValueError("the proposers tap different layers of the target; use one of them")
        self.taps = taps.pop() if taps else ()

    def run(self) -> Generator[Event, None, None]:
        try:
            yield from self._prefill()
            reason: Reason | None = None
            while reason is None:
                with self.model.ops.alone():
                    done, reason = self._step()
                yield done
            self._meanwhile()  # what the last step taught is for the next job too
        except BaseException:  # a cancel too
            self._rewind()
            raise
        tail = self.held + (self.text.finish() if self.text is not None and not self._cut_by_string else "")
        yield Finished(reason, tail, self.stats)

    def _prefill(self) -> Generator[Event, None, None]:
        self.cache.truncate(len(self.seq) - 1)
        reused = self.stats.reused_tokens = self.cache.length
        begin = time.perf_counter()
        for progress, taps in prefill(self.model, self.seq.tokens, self.cache, self.taps, self._meanwhile):
            self._observe(prefilled(progress, taps))
            self.stats.seconds_prefill = time.perf_counter() - begin
            yield progress
        self._observe(Committed([]))
        yield PrefillDone(reused, self.cache.length - reused, self.stats.seconds_prefill)

    def _step(self) -> tuple[StepDone, Reason | None]:
        seq, cache = self.seq, self.cache
        start = len(seq.tokens)
        begin = time.perf_counter()
        choice = self.policy.choose(seq, self._longest_draft())
        draft, name = choice.draft, choice.proposer
        drafted = time.perf_counter()
        step = verify(
            self.model, cache, seq.tokens[-1], draft, self.sampling, self.taps, self.accept, self.logprobs,
            self._meanwhile,
        )  # fmt: skip
        emitted = step.accepted.tokens
        ending = cut(self.rules, start - seq.prompt_length, self.held, emitted, self._decode)
        kept = emitted[: ending.kept]
        self.held = ending.held
        self._cut_by_string = ending.reason == "stop" and kept[-1] not in self.rules.stop_ids
        seq.tokens.extend(kept)
        cache.truncate(len(seq.tokens) - 1)
        size, accepted = draft.size, min(len(step.accepted.path), len(kept))
        taps = None if step.taps is None else step.taps[: len(kept)]
        self._observe(Committed(kept, name, size, accepted, taps, start - 1))
        scores = None
        if step.logits is not None and self.logprobs:
            rows = step.logits[: len(kept)].log_softmax(dim=-1)
            scores = rows.gather(-1, torch.tensor(kept, device=rows.device)[:, None])[:, 0].tolist()
        ended = time.perf_counter()
        record = StepRecord(name, size, accepted, len(kept), drafted - begin, ended - drafted, step.rule)
        self._unrecorded.append(record)
        return StepDone(kept, ending.text, record, scores), ending.reason

    def _meanwhile(self) -> None:
        """While the device works: what can wait until then, and what policy and proposers would otherwise do before the
        next draft."""
        while self._unrecorded:
            record = self._unrecorded.pop()
            self.policy.record(record)
            self.stats.add(record)
        for work in self._unhurried:
            work(self.seq)

    def _longest_draft(self) -> int:
        """k drafts emit up to k + 1 tokens and take k + 1 positions."""
        budget = self.rules.max_tokens - (len(self.seq) - self.seq.prompt_length)
        return max(0, min(budget - 1, self.cache.max_positions - self.cache.length - 1))

    def _rewind(self) -> None:
        """Every cache back to the last committed length, wherever a step was left."""
        self.cache.truncate(len(self.seq) - 1)
        for proposer in self.policy.proposers:
            proposer.truncate(len(self.seq))

    def _observe(self, committed: Committed) -> None:
        for proposer in self.policy.proposers:
            proposer.observe(self.seq, committed)
