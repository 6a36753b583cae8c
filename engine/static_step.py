"""A verify step of fixed shape, from the draft's tokens to the accepted ones, all on the device.

Any draft runs at one of a few widths, padded: padding rows write to a page that is nobody's, and no row's result
depends on another's. Nothing in a step waits for the device, so each width can be captured as a CUDA graph
(graphs.py); on a CPU the same step runs as it stands, which is how it is tested. One copy brings the inputs, one record
goes back. What it gives is what `verify` gives, to the bit.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from specd.engine.draft import Draft
from specd.engine.errors import NonFiniteLogits
from specd.engine.kv_cache import LONGEST_READ, LONGEST_STEP, KVCache, PagePool
from specd.engine.model import Qwen3
from specd.engine.ops import StaticOps
from specd.engine.passes import Passes, nothing
from specd.engine.sampling import NOT_FINITE, SamplingParams
from specd.engine.step_inputs import StepInputs

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
TREE_WIDTHS = (4, 8, 16, 32, 64, 128)
READ_WIDTHS = (64, 128, 256, 384, 512, 768, 1024)
# Rows of a part of a prompt by where it ends at the latest: some 20 ms for 4 billion weights on an H200, so that a
# cancel is seen soon. Attention takes the longer the more there is before.
_READS = ((2048, 1024), (10240, 512), (24576, 256))
_LEAST_READ = 128
assert WIDTHS[-1] == TREE_WIDTHS[-1] == LONGEST_STEP
assert READ_WIDTHS[-1] == LONGEST_READ

Kind = Literal["chain", "tree", "read"]  # a read is a part of a prompt: no head, nothing chosen
Override = Callable[[Tensor, Tensor], Tensor]


@dataclass(eq=False)
class Flight:
    """A step that was launched: what it needs to be taken in. words: its record, once another step needed the place;
    tapped: its rows' taps, likewise."""

    steps: "StaticStep"
    cache: KVCache
    start: int
    width: int
    is_tree: bool
    words: npt.NDArray[np.int32] | None = None
    tapped: Tensor | None = None


class StaticStep(Passes[int, Kind]):
    """The steps of one model, by width and kind.

    It holds on to all that captured steps point to: the weights and the page pool (through the model), its own buffers
    and the rotary tables. They are dropped together.
    """

    def __init__(self, model: Qwen3, taps: Sequence[int] = (), override: Override | None = None) -> None:
        """taps: layers whose output every step keeps. override: (choices [W] int64, positions [W] int64 of those
        choices) -> choices, part of the step on the device: a target that chooses otherwise, for measurements."""
        if not isinstance(model.ops, StaticOps):
            raise ValueError(f"the {model.ops.name} operations have no step of fixed shape")
        super().__init__(model.device)
        self.model = model
        self.taps = tuple(taps)
        self._ops: StaticOps = model.ops
        self._override = override
        self._pool = model.pool
        self._rope = model.rope(model.config.max_positions + LONGEST_READ)
        self._tapped = model.new_taps(LONGEST_READ, taps)
        table = len(model.new_cache().table)
        self.inputs = StepInputs(table, self._pool.page_size, self._pool.dummy, model.device)
        self._unused = StepInputs(table, self._pool.page_size, self._pool.dummy, torch.device("cpu"))
        on_gpu = model.device.type == "cuda"
        self._record = torch.zeros(2 + 2 * LONGEST_STEP, dtype=torch.int32, pin_memory=on_gpu)
        self._record_words = self._record.numpy()
        self._flying: Flight | None = None  # whose inputs and record the buffers hold

    @property
    def works_aside(self) -> bool:
        """Whether a launched step runs while the host does something else, and not within its launch."""
        return self.model.device.type != "cpu"

    @property
    def widths(self) -> tuple[int, ...]:
        """Rows of the steps of chains, ascending."""
        return WIDTHS

    def takes(self, rows: int, taps: Sequence[int]) -> bool:
        """Whether a step of so many rows, with these layers tapped, runs here."""
        return rows <= LONGEST_STEP and (not taps or tuple(taps) == self.taps)

    def reads(self, rows: int, taps: Sequence[int]) -> bool:
        """Whether a part of a prompt of so many tokens runs here."""
        return rows <= LONGEST_READ and (not taps or tuple(taps) == self.taps)

    def longest_read(self, start: int) -> int:
        """Rows of the longest part of a prompt to read at once from position `start` on."""
        return next((rows for limit, rows in _READS if start + rows <= limit), _LEAST_READ)

    def read(
        self,
        cache: KVCache,
        tokens: Sequence[int],
        taps: Sequence[int] = (),
        meanwhile: Callable[[], None] = nothing,
    ) -> Tensor | None:
        """Appends a prompt's next tokens to the cache -> their taps [n, T, H]. If anything raises, it is as before.
        meanwhile: as in `step`."""
        self._land()
        start, rows = cache.length, len(tokens)
        width = READ_WIDTHS[bisect_left(READ_WIDTHS, rows)]
        try:
            cache.hold(rows)
            self.inputs.write(cache, tokens, width)
            self.launch(width, "read")
            meanwhile()
            self.wait()
            kept = self._tapped[:rows].clone() if taps and self._tapped is not None else None
            cache.advance(rows)
        except BaseException:
            self.wait()
            cache.truncate(start)
            raise
        return kept

    def step(
        self,
        cache: KVCache,
        newest: int,
        draft: Draft,
        sampling: SamplingParams,
        taps: Sequence[int] = (),
        meanwhile: Callable[[], None] = nothing,
    ) -> tuple[list[int], list[int], Tensor | None]:
        """One step: accepted draft indices from the root down, their tokens and the one after them, and the taps
        [accepted + 1, T, H] of the rows that stay. The cache then holds the newest token and the accepted ones; if
        anything raises (NonFiniteLogits, OutOfMemory, ContextOverflow, a cancel), it is as before. meanwhile: what to
        do while the device works."""
        return self.end(self.begin(cache, newest, draft, sampling), taps, meanwhile)

    def begin(self, cache: KVCache, newest: int, draft: Draft, sampling: SamplingParams) -> Flight:
        """The first half of `step`: launches it. The cache's length does not move until `end`, and nobody else writes
        behind it. Every flight is ended or abandoned; others may begin before that, and then it waits for this one."""
        self._land()
        start, parents = cache.length, draft.parents
        width = _width_of(draft)
        flight = Flight(self, cache, start, width, parents is not None)
        try:
            cache.hold(draft.size + 1)
            self.inputs.write(cache, (newest,), width, sampling, draft.on_host())
            if parents is not None:
                self.inputs.write_tree(parents.tolist(), width)
            self._flying = flight  # before the launch: whatever interrupts it, what runs is known
            self.launch(width, "chain" if parents is None else "tree")
        except BaseException:
            self.abandon(flight)
            raise
        return flight

    def end(
        self, flight: Flight, taps: Sequence[int] = (), meanwhile: Callable[[], None] = nothing
    ) -> tuple[list[int], list[int], Tensor | None]:
        """The second half of `step`: waits for its record."""
        cache, start, width = flight.cache, flight.start, flight.width
        try:
            meanwhile()
            words, tapped = flight.words, flight.tapped
            if words is None:
                self.wait()
                words, tapped = self._record_words, self._tapped
            if self._flying is flight:
                self._flying = None
            accepted = int(words[0])
            if not words[1]:
                raise NonFiniteLogits(NOT_FINITE)
            emitted = words[2 : 3 + accepted].tolist()
            path = list(range(accepted))
            if flight.is_tree:
                path = (words[2 + width : 2 + width + accepted] - 1).tolist()
            cache.advance(accepted + 1)
            cache.truncate(start + accepted + 1)
            kept = tapped[: accepted + 1].clone() if taps and tapped is not None else None
        except BaseException:
            self.abandon(flight)
            raise
        return path, emitted, kept

    def rehearse(self, flight: Flight, newest: int, draft: Draft, sampling: SamplingParams) -> None:
        """Writes a step's inputs again, where nobody reads them. What the host does right after a wait takes twice the
        time if it did other things before; done once in vain while the device works, it is fast when it counts."""
        self._unused.write(flight.cache, (newest,), flight.width, sampling, draft.on_host())
        if draft.parents is not None:
            self._unused.write_tree(draft.parents.tolist(), flight.width)

    def abandon(self, flight: Flight) -> None:
        """The cache is as before the flight. Idempotent, and harmless before any step of the cache that follows."""
        if self._flying is flight:
            self.wait()  # the next step must not write its inputs while this one reads its own
            self._flying = None
        flight.cache.truncate(flight.start)

    def leave(self, cache: KVCache) -> None:
        """Abandons what flies for the cache, whoever holds its flight. Idempotent."""
        if self._flying is not None and self._flying.cache is cache:
            self.abandon(self._flying)

    def _land(self) -> None:
        """Makes room for another step: the one that flies is waited for, and keeps what it found. An interrupt anywhere
        in it costs that flight nothing: it flies until it has all."""
        flight = self._flying
        if flight is not None:
            self.wait()
            flight.tapped = None if self._tapped is None else self._tapped[: flight.width].clone()
            flight.words = self._record_words[: 2 + 2 * flight.width].copy()
            self._flying = None

    def blank(self, width: int, kind: Kind) -> None:
        """A step of nothing but padding, after nothing."""
        self.inputs.blank(width)

    @torch.inference_mode()
    def run(self, width: int, kind: Kind) -> None:
        """All operations of a step, copies included."""
        ops, model, inputs = self._ops, self.model, self.inputs
        is_tree = kind == "tree"
        inputs.copy(width, is_tree)
        tokens, positions, slots = inputs.chain(width)
        parents, lanes = inputs.tree(width) if is_tree else (None, None)
        rope = (self._rope[0][positions], self._rope[1][positions])
        tapped = None if self._tapped is None else self._tapped[:width]
        last = model.layers(tokens, rope, self._pool, slots, inputs.table, inputs.base, lanes, self.taps, tapped)
        if kind == "read":
            return
        targets = positions + 1
        choices = ops.choose(model.head(last), targets, inputs.params)
        if self._override is not None:
            choices = self._override(choices, targets)
        record = ops.accept(tokens, choices, inputs.rows, parents)
        if is_tree:
            keep_path(self._pool, slots, record)
            if tapped is not None:  # what the record says behind the accepted rows means nothing
                tapped[1:] = tapped[record[2 + width : -1].clamp(0, width - 1)]
        self._record[: len(record)].copy_(record, non_blocking=True)


def _width_of(draft: Draft) -> int:
    """Rows of the step that verifies it."""
    widths = WIDTHS if draft.parents is None else TREE_WIDTHS
    return widths[bisect_left(widths, draft.size + 1)]


def keep_path(pool: PagePool, slots: Tensor, record: Tensor) -> None:
    """Keys and values of the accepted rows that `accept`'s record names move to the rows after the block's first, in
    order: slots [W] int64 are the block's cache rows. Does not wait for the device."""
    if pool.k.device.type == "cuda":
        from specd.engine.kernels import compact

        compact.keep_path(pool.k, pool.v, slots, record)
        return
    count = int(record[0])
    target, source = slots[1 : count + 1], slots[record[2 + len(slots) :][:count]]
    pool.move(source, target)
