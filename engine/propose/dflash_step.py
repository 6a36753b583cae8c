"""A DFlash drafter's passes of fixed shape: committed rows into its context, and a block of drafts, in one go.

What static_step.py is for the target: nothing in a pass waits for the device, so that each is captured as a CUDA graph;
one copy brings the inputs, one record brings the drafts. For drafters whose rows see all of the context and the block.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from specd.engine.choice import as_tensor
from specd.engine.graphs import Recorder
from specd.engine.kv_cache import LONGEST_READ, KVCache
from specd.engine.ops import StaticOps
from specd.engine.passes import Passes
from specd.engine.propose.dflash_context import DFlashContext
from specd.engine.propose.dflash_model import DFlashDrafter
from specd.engine.sampling import SamplingParams
from specd.engine.step_inputs import StepInputs

WITH_BLOCK = (16, 64)  # rows that may be taken in before a block
ALONE = (192, 512, LONGEST_READ)  # ... and without one: what gathered while others drafted, and a part of a prompt


class DFlashStep(Passes[int, bool]):
    """The passes of one drafter, by the rows that there is room to take in, and whether a block is drafted."""

    def __init__(self, drafter: DFlashDrafter) -> None:
        """Raises ValueError for a drafter whose rows do not see everything, and where operations wait."""
        c = drafter.config
        if not isinstance(drafter.model.ops, StaticOps):
            raise ValueError(f"the {drafter.model.ops.name} operations have no pass of fixed shape")
        if any(window is not None for window in c.windows) or any(c.is_causal):
            raise ValueError("only drafters with two-way attention to everything have passes of fixed shape")
        super().__init__(drafter.device)
        self.drafter = drafter
        self._ops: StaticOps = drafter.model.ops
        self._greedy = as_tensor(SamplingParams(temperature=0.0)).to(drafter.device)
        self._pool = drafter.pool
        self._rope = drafter.rope(c.max_positions + LONGEST_READ + c.block_size)
        self._taps = torch.zeros(
            LONGEST_READ, len(c.target_layer_ids), c.hidden_size, dtype=drafter.model.dtype, device=drafter.device
        )
        table = len(drafter.new_context().cache.table)
        self._inputs = _DraftInputs(table, self._pool.page_size, self._pool.dummy, drafter.device)
        self._first = torch.zeros(1, dtype=torch.int32, device=drafter.device)
        self._drafts = torch.zeros(c.block_size - 1, dtype=torch.int32, pin_memory=drafter.device.type == "cuda")

    def takes(self, rows: int) -> bool:
        """Whether so many committed rows can be taken in together with a block."""
        return rows <= WITH_BLOCK[-1]

    def draft(self, context: DFlashContext, position: int, taps: Tensor | None, anchor: int, start: int) -> list[int]:
        """Takes in taps [n, K, H] of positions position.. (None: none), and drafts a whole block after the token
        `anchor` at position `start`. Raises OutOfMemory; the context then ends before `position`."""
        size, taken = self.drafter.config.block_size, 0 if taps is None else len(taps)
        room = next(room for room in WITH_BLOCK if room >= taken)
        with context.held(position if taken else start, taken, size):
            self._settle(taps)
            block = [anchor, *[self.drafter.config.mask_token_id] * (size - 1)]
            self._inputs.write_pass(context.cache, taken, room, position, block, start)
            self.launch(room, True)
            self.wait()
        return [max(token, 0) for token in self._drafts.tolist()]  # -1 where the drafter's logits are broken

    def take_in(self, context: DFlashContext, position: int, taps: Tensor) -> None:
        """DFlashDrafter.ingest, without waiting for the device."""
        taken = len(taps)
        room = next(room for room in ALONE if room >= taken)
        with context.held(position, taken, 0):
            self._settle(taps)
            self._inputs.write_pass(context.cache, taken, room, position)
            self.launch(room, False)

    def _settle(self, taps: Tensor | None) -> None:
        self.wait()  # a pass that nobody waited for may still read its inputs
        if taps is not None:
            self._taps[: len(taps)].copy_(taps)

    @torch.inference_mode()
    def run(self, room: int, with_block: bool) -> None:
        """All operations of a pass, copies included."""
        drafter, inputs = self.drafter, self._inputs
        width = room + (drafter.config.block_size if with_block else 0)
        inputs.copy(width, False)
        tokens, positions, slots = inputs.chain(width)
        cosine, sine = self._rope[0][positions], self._rope[1][positions]
        drafter.write_context(self._taps[:room], (cosine[:room], sine[:room]), slots[:room], self._pool)
        if with_block:
            spans: list[tuple[int | Tensor, Tensor | None]] = [(self._first, None)] * drafter.config.num_layers
            rope = (cosine[room:], sine[room:])
            hidden = drafter.fill_in(tokens[room:], rope, slots[room:], self._pool, inputs.table, spans, inputs.base)
            chosen = self._ops.choose(drafter.scores(hidden[1:]), positions[room + 1 :], self._greedy)
            self._drafts.copy_(chosen.int(), non_blocking=True)

    def blank(self, room: int, with_block: bool) -> None:
        """Inputs of nothing but padding."""
        self._inputs.blank(room + (self.drafter.config.block_size if with_block else 0))


class _DraftInputs(StepInputs):
    """Rows: those taken in, padded to `room`, then the block's. base: one beyond the block's last place."""

    def write_pass(
        self, cache: KVCache, taken: int, room: int, position: int, block: Sequence[int] = (), start: int = 0
    ) -> None:
        """`taken` rows from `position` on go to the cache's next places, the block's tokens, from position `start` on,
        to those behind."""
        size = len(block)
        width, place = room + size, cache.length
        tokens, positions, slots = self._chain_of(width)
        tokens[:room], tokens[room:] = 0, block
        np.add(self._iota[:room], position, out=positions[:room])
        np.add(self._iota[:size], start, out=positions[room:])
        self._write_pages(cache)
        self._write_slots(slots[:taken], cache, place)
        slots[taken:room] = self._dummies[taken:room]
        self._write_slots(slots[room:], cache, place + taken)
        self._w_head[0] = place + taken + size


def capture(drafter: DFlashDrafter) -> None:
    """Captures the drafter's passes, on its device, and has it use them. Not for drafters of other attention."""
    try:
        steps = DFlashStep(drafter)
    except ValueError:
        return
    shapes = [(room, False) for room in ALONE[::-1]] + [(room, True) for room in WITH_BLOCK[::-1]]
    Recorder(drafter.device).record_all(steps, shapes)
    drafter.steps = steps
