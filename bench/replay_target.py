"""A target that does all of its work and then chooses what a real edit has: for rates of real edits without a trained
model.

The forward pass, the head, sampling and acceptance are the engine's own, graphs included; only the chosen token is
replaced, on the device, by the one that the edit's `after` text has at that position. Figures made with it say so.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from specd.engine import Finished, Proposer, SamplingParams, StepDone, StepPolicy, generate
from specd.engine.kv_cache import LONGEST_READ
from specd.engine.model import Qwen3
from specd.engine.stats import StepRecord

NOTE = "target's choices replaced by the edit's own tokens (ReplayTarget); the whole pass is computed"


class ReplayTarget:
    """`override` is handed to StaticStep, so that it is a part of the captured step."""

    def __init__(self, model: Qwen3) -> None:
        self._limit = model.config.max_positions
        size = self._limit + LONGEST_READ + 1
        self._forced = torch.full((size,), -1, dtype=torch.int64, device=model.device)  # by position; -1: as it likes

    def override(self, choices: Tensor, positions: Tensor) -> Tensor:
        """choices [W], positions [W] of the tokens chosen -> choices."""
        forced = self._forced[positions]
        return torch.where(forced >= 0, forced, choices)

    @contextmanager
    def answering(self, prompt_length: int, answer: Sequence[int]) -> Iterator[None]:
        """Inside: the tokens from position prompt_length on are `answer`."""
        end = prompt_length + len(answer)
        if end > self._limit:
            raise ValueError(f"prompt and answer have {end} tokens, the model's context {self._limit}")
        self._forced[prompt_length:end] = torch.tensor(answer, device=self._forced.device)
        try:
            yield
        finally:
            self._forced.fill_(-1)


@dataclass(frozen=True)
class Replayed:
    """One edit. seconds: from the first step's start to the last one's end, all that happens on the host included;
    seconds_device: of those, what the steps were waited for."""

    tokens: int
    seconds: float
    seconds_device: float
    seconds_prefill: float
    records: list[StepRecord]


def replay_edit(
    model: Qwen3,
    target: ReplayTarget,
    prompt: list[int],
    answer: list[int],
    speculative: Proposer | StepPolicy | None,
    waiting: Callable[[], float],
) -> Replayed:
    """Generates the answer, which ends with its end token. waiting: tells the seconds for which steps were waited since
    it was last asked. Raises RuntimeError if anything else came out."""
    out: list[int] = []
    records: list[StepRecord] = []
    began, prefill = 0.0, 0.0
    with target.answering(len(prompt), answer):
        steps = generate(
            model, prompt, sampling=SamplingParams(), stop_ids=frozenset(answer[-1:]), max_tokens=len(answer),
            speculative=speculative,
        )  # fmt: skip
        for event in steps:
            if isinstance(event, StepDone):
                out += event.tokens
                records.append(event.record)
            elif isinstance(event, Finished):
                prefill = event.stats.seconds_prefill
            else:
                waiting()
                began = time.perf_counter()
    seconds = time.perf_counter() - began
    device = waiting()
    if out != answer:
        place = next((n for n, (a, b) in enumerate(zip(out, answer, strict=False)) if a != b), len(out))
        raise RuntimeError(f"the replay left the edit at token {place} of {len(answer)}")
    return Replayed(len(out), seconds, device, prefill, records)
