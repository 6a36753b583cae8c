"""DFlash drafting in a job: keeps the drafter's context in step with the target, and drafts a block or a tree from it.

    drafter = load_dflash("z-lab/Qwen3-4B-DFlash-b16", model)      # once
    generate(model, ids, speculative=DFlashProposer(drafter))       # a proposer a job

The taps of every step come through `observe`, whoever drafted it. They are turned into context rows when a block needs
them, or when enough have gathered; a prompt's at once, so that the first draft does not wait for them. Where nothing
works aside that is time of the job's own, so more may gather: a job that never asks for a block does not pay for it.

With a kept prefix: `fork(length)` gives a context for the store to keep beside the target's cache, and
`DFlashProposer(drafter, context=kept.fork(length))` starts from it. A prefix without its context is no error: the
drafter then sees only what was committed since.
"""

import logging

import torch
from torch import Tensor

from specd.engine.draft import EMPTY, Committed, Draft, Sequence
from specd.engine.errors import OutOfMemory
from specd.engine.propose.dflash_context import DFlashContext
from specd.engine.propose.dflash_model import DFlashDrafter, load_dflash
from specd.engine.propose.dflash_tree import best_first

__all__ = ["DFlashContext", "DFlashDrafter", "DFlashProposer", "DFlashTreeProposer", "load_dflash"]

log = logging.getLogger(__name__)

_GATHER = 64  # committed rows that may wait for their keys and values, which are made while the host goes on
_HOARD = 2048  # ... where the host has to make them


class DFlashProposer:
    """The drafts of one job. Free it with `close`, or let it go: its context's pages go back with it."""

    name = "dflash"

    def __init__(
        self, drafter: DFlashDrafter, *, context: DFlashContext | None = None, clip_at: int | None = None
    ) -> None:
        """context: what is known of the prompt's beginning; the proposer owns it from now on. clip_at: no block reaches
        this absolute position (the policy of the PyPI package `dflash` 0.1.0, which shortens the last blocks); None
        always drafts whole blocks as the drafter was trained, and cuts what is verified."""
        self.drafter = drafter
        self.max_k = drafter.config.block_size - 1
        self.tap_layers = drafter.config.target_layer_ids
        self.context = drafter.new_context() if context is None else context
        self._clip_at = clip_at
        self._waiting: list[tuple[int, Tensor]] = []  # (position, taps [n, K, H]), ascending
        self._is_full = False

    def propose(self, seq: Sequence, k: int) -> Draft:
        """The first k drafts of a block, [k] int32, on the CPU or the device; fewer at the drafter's position limit."""
        if (drafts := self._block_at_once(seq, k)) is not None:
            return drafts
        hidden = self._block(seq, k)
        if hidden is None:
            return EMPTY
        return Draft(self.drafter.logits(hidden[:k]).argmax(dim=-1).int())

    def propose_tree(self, seq: Sequence, budget: int) -> Draft:
        """The tree of the `budget` most probable nodes by the block's marginals, best first: see dflash_tree."""
        found = self.marginals(seq, budget)
        if found is None:
            return EMPTY
        logprobs, ids = found
        tokens, parents = best_first(logprobs.tolist(), ids.tolist(), budget)
        return Draft(torch.tensor(tokens, dtype=torch.int32), torch.tensor(parents, dtype=torch.int32))

    def marginals(self, seq: Sequence, n: int) -> tuple[Tensor, Tensor] | None:
        """Per row of the block its n most probable tokens: log-probabilities [B-1, n] float32 and ids [B-1, n] int64,
        falling. Each row's law stands alone: it is not given the tokens drafted before it. None without a block."""
        hidden = self._block(seq, n)
        if hidden is None:
            return None
        logprobs = self.drafter.logits(hidden).log_softmax(dim=-1)
        values, ids = logprobs.topk(min(n, logprobs.shape[-1]), dim=-1)
        return values, ids

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """Take over the taps of the positions that entered the target's cache."""
        if committed.taps is None or not len(committed.taps):
            return
        self.truncate(committed.taps_start)
        self._waiting.append((committed.taps_start, committed.taps))
        rows = committed.taps_start + len(committed.taps) - self._waiting[0][0]
        is_prompt = not committed.tokens
        if is_prompt or rows >= (_HOARD if self.drafter.steps is None else _GATHER):
            self._ingest()

    def truncate(self, length: int) -> None:
        """Forget all positions >= length."""
        self.context.truncate(length)
        while self._waiting:
            start, taps = self._waiting[-1]
            if start + len(taps) <= length:
                break
            self._waiting.pop()
            if start < length:
                self._waiting.append((start, taps[: length - start]))

    def fork(self, length: int) -> DFlashContext:
        """A second context with positions below `length`, to be kept with a fork of the target's cache."""
        self._ingest()
        return self.context.fork(length)

    def close(self) -> None:
        """Give the context's pages back. Idempotent; the proposer may still be used and then knows nothing."""
        self._waiting.clear()
        self.context.free()

    def _block_at_once(self, seq: Sequence, k: int) -> Draft | None:
        """`propose` by a pass of fixed shape, which takes in what is waiting too. None where that is not possible."""
        steps, config, start = self.drafter.steps, self.drafter.config, len(seq) - 1
        self.truncate(start)
        end = config.max_positions if self._clip_at is None else min(self._clip_at, config.max_positions)
        if steps is None or k < 1 or end - start < config.block_size:
            return None
        if len(self._waiting) > 1 or (self._waiting and not steps.takes(len(self._waiting[0][1]))):
            self._ingest()
        position, taps = self._waiting[0] if self._waiting else (start, None)
        try:
            drafts = Draft.chain(steps.draft(self.context, position, taps, seq.tokens[-1], start)[:k])
        except OutOfMemory as error:
            self._warn(error)
            drafts = EMPTY
        self._waiting.clear()
        return drafts

    def _block(self, seq: Sequence, k: int) -> Tensor | None:
        """Hidden rows [B-1, H] of the drafts after seq's newest token, None where there is no room for any."""
        start = len(seq) - 1
        self.truncate(start)
        config = self.drafter.config
        end = config.max_positions if self._clip_at is None else min(self._clip_at, config.max_positions)
        rows = min(config.block_size, end - start)
        if k < 1 or rows < 2:
            return None
        self._ingest()
        try:
            return self.drafter.block(self.context, seq.tokens[-1], start, rows)[1:]
        except OutOfMemory as error:
            self._warn(error)
            return None

    def _ingest(self) -> None:
        """What waits goes into the context, neighbours in one go. An interrupt loses none: it is done again then."""
        while self._waiting:
            start = end = self._waiting[0][0]
            parts: list[Tensor] = []
            for position, taps in self._waiting:
                if position != end:
                    break
                end += len(taps)
                parts.append(taps)
            try:
                self.drafter.ingest(self.context, start, torch.cat(parts) if len(parts) > 1 else parts[0])
            except OutOfMemory as error:  # a hole in the context: drafts get worse, nothing else
                self._warn(error)
            del self._waiting[: len(parts)]

    def _warn(self, error: OutOfMemory) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("DFlash drafts less: its own cache is full (%s)", error)


class DFlashTreeProposer:
    """The tree of a block's most probable nodes in place of its chain: for targets to whom verified rows cost little.

    The context is the inner proposer's.
    """

    name = "dflash-tree"

    def __init__(self, inner: DFlashProposer, budget: int = 31) -> None:
        """budget: nodes of a tree, which may exceed the block's length."""
        if budget < 1:
            raise ValueError(f"a tree needs a budget of 1 node or more, not {budget}")
        self.inner = inner
        self.max_k = budget
        self.tap_layers = inner.tap_layers

    def propose(self, seq: Sequence, k: int) -> Draft:
        """A tree of min(k, budget) nodes."""
        return self.inner.propose_tree(seq, min(k, self.max_k))

    def observe(self, seq: Sequence, committed: Committed) -> None:
        """As the inner proposer does."""
        self.inner.observe(seq, committed)

    def truncate(self, length: int) -> None:
        """Forget all positions >= length."""
        self.inner.truncate(length)
