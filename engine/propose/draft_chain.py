"""A draft model's whole chain as one pass of fixed shape: read what is missing, then draft k tokens in a row.

Each step's token is chosen on the device and is the next step's input there, so a chain of k drafts is one launch and
one wait (as CUDA graphs where the device has them) in place of k times the model's some hundred launches.
"""

from bisect import bisect_left

import numpy as np
import torch
from torch import Tensor

from specd.engine.graphs import STAGES, Recorder, capture_steps
from specd.engine.kv_cache import LONGEST_READ, KVCache
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.passes import Passes
from specd.engine.sampling import SamplingParams
from specd.engine.static_step import StaticStep
from specd.engine.step_inputs import StepInputs

LENGTHS = (1, 3, 7, 15)  # drafts of one pass
FIRST = 2  # rows of its first step: after full acceptance the last draft is missing too


class DraftChain(Passes[int]):
    """The chains of one draft model, by their length. What is missing beyond two tokens is read as a part of a
    prompt."""

    def __init__(self, model: Qwen3) -> None:
        if not isinstance(model.ops, StaticOps):
            raise ValueError(f"the {model.ops.name} operations have no step of fixed shape")
        super().__init__(model.device)
        self.model = model
        self.reads = StaticStep(model)
        self._ops: StaticOps = model.ops
        self._rope = model.rope(model.config.max_positions + LONGEST_READ)
        table = len(model.new_cache().table)
        self._inputs = _ChainInputs(table, model.pool.page_size, model.pool.dummy, model.device)
        self._drafts = torch.zeros(LENGTHS[-1], dtype=torch.int64, pin_memory=model.device.type == "cuda")

    def draft(self, cache: KVCache, missing: list[int], k: int, sampling: SamplingParams) -> list[int]:
        """Appends `missing` (the newest token last) to the cache, and k - 1 of the k drafts after it, which come back.
        k is at most LENGTHS[-1]. Raises OutOfMemory and ContextOverflow; the cache may have grown by some of
        `missing` then."""
        length = LENGTHS[bisect_left(LENGTHS, k)]
        while len(missing) > FIRST:
            part, missing = missing[: min(LONGEST_READ, len(missing) - 1)], missing[LONGEST_READ:] or missing[-1:]
            self.reads.read(cache, part)
        start = cache.length
        try:
            room = min(length - 1, cache.max_positions - start - len(missing))  # the longer chain may not have
            cache.hold(len(missing) + room)
            self._inputs.write_chain(cache, missing, length, room, sampling)
            self.launch(length)
            self.wait()
            cache.advance(len(missing) + k - 1)
            cache.truncate(cache.length)
        except BaseException:
            self.wait()
            cache.truncate(start)
            raise
        found: list[int] = self._drafts[:k].tolist()
        return found

    @torch.inference_mode()
    def run(self, length: int) -> None:
        """All operations of a chain, copies included."""
        model, inputs, width = self.model, self._inputs, FIRST + length - 1
        inputs.copy(width, True)
        tokens, positions, slots = inputs.chain(width)
        bases, _ = inputs.tree(width)
        at = slice(0, FIRST)
        chosen, drafts = tokens[at], list[Tensor]()
        for number in range(length):
            rope = (self._rope[0][positions[at]], self._rope[1][positions[at]])
            base = bases[number : number + 1]
            last = model.layers(chosen, rope, model.pool, slots[at], inputs.table, base, None)
            if number == 0:
                last = last.index_select(0, inputs.rows - 1)  # of the newest token
            at = slice(FIRST + number, FIRST + number + 1)
            targets = positions[FIRST + number - 1 : FIRST + number] + 1
            if number == 0:
                targets = positions[:FIRST].index_select(0, inputs.rows - 1) + 1
            chosen = self._ops.choose(model.head(last), targets, inputs.params).clamp(min=0)
            drafts.append(chosen)
        self._drafts[:length].copy_(torch.cat(drafts), non_blocking=True)

    def blank(self, length: int) -> None:
        """Inputs of nothing but padding."""
        self._inputs.blank(FIRST + length - 1)


class _ChainInputs(StepInputs):
    """Rows: the first step's two, then one for each step that follows. The parents' words: each step's base."""

    def write_chain(self, cache: KVCache, missing: list[int], length: int, room: int, sampling: SamplingParams) -> None:
        """room: how many drafts the cache has places for; the rest of a chain goes where padding goes."""
        width, start, rows = FIRST + length - 1, cache.length, len(missing)
        tokens, positions, slots = self._chain_of(width)
        self._write_pages(cache)
        self._write_sampling(sampling)
        self._w_head[0], self._w_head[1] = start, rows
        tokens[:], slots[:] = 0, self._dummies[:width]
        tokens[:rows] = missing
        positions[:FIRST] = self._iota[:FIRST] + start
        positions[FIRST:] = self._iota[: width - FIRST] + (start + rows)
        self._write_slots(slots[:rows], cache, start)
        self._write_slots(slots[FIRST : FIRST + room], cache, start + rows)
        self._w_parents[0] = start
        np.add(self._iota[: length - 1], start + rows, out=self._w_parents[1:length], casting="unsafe")


def capture(model: Qwen3) -> DraftChain:
    """The model's chains and its parts of prompts as CUDA graphs."""
    chain = DraftChain(model)
    capture_steps(chain.reads, stages=[stage for stage in STAGES if stage[1] == "read"])
    Recorder(model.device).record_all(chain, [(length,) for length in LENGTHS[::-1]])
    return chain
