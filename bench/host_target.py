"""A target, and a DFlash drafter, whose passes compute nothing: they read their inputs and say what a script has.

Everything around a pass is the engine's own: the inputs are written, copied and read where a graph would read them, and
the record comes back where a graph would put it. So what is left of a job's time is the host's.
"""

import random
import time
from functools import partial

import numpy as np
import torch

from specd.engine.choice import accept
from specd.engine.costs import CostTable
from specd.engine.model import Qwen3
from specd.engine.propose.dflash_model import DFlashDrafter
from specd.engine.propose.dflash_step import ALONE, WITH_BLOCK, DFlashStep
from specd.engine.static_step import READ_WIDTHS, TREE_WIDTHS, WIDTHS, Kind, StaticStep


class ScriptedStep(StaticStep):
    """Steps that choose `script[position]`, whatever the rows say."""

    def __init__(self, model: Qwen3, taps: tuple[int, ...] = ()) -> None:
        super().__init__(model, taps)
        self.script: list[int] = []  # tokens by position
        kinds: dict[Kind, tuple[int, ...]] = {"read": READ_WIDTHS, "tree": TREE_WIDTHS, "chain": WIDTHS}
        for kind, widths in kinds.items():
            for width in widths:
                self.replays[width, kind] = partial(self.run, width, kind)

    @property
    def works_aside(self) -> bool:
        """So that a job does meanwhile what it would with a device: the clock counts it as hidden."""
        return True

    def is_busy(self) -> bool:
        """A device's steps take longer than what the host does meanwhile."""
        return True

    def wait(self) -> None:
        """Longer than nothing, so that it counts as having been waited for."""
        until = time.perf_counter() + 5e-5
        while time.perf_counter() < until:
            pass

    @torch.inference_mode()
    def run(self, width: int, kind: Kind) -> None:
        """In place of the model: the record of what the script accepts."""
        self.inputs.copy(width, kind == "tree")
        if kind == "read":
            return
        count = int(self.inputs.rows)
        tokens, positions, _ = (words[:count].tolist() for words in self.inputs.chain(width))
        parents = [row - 1 for row in self.inputs.tree(width)[0][1:count].tolist()] if kind == "tree" else None
        script = self.script
        targets = [script[place + 1] if place + 1 < len(script) else 0 for place in positions]
        found = accept(tokens[1:], parents, targets)
        words, taken = self._record.numpy(), len(found.path)
        words[0], words[1] = taken, 1
        words[2 : 3 + taken] = found.tokens
        words[2 + width : 2 + width + taken] = np.add(found.path, 1) if taken else 0


class ScriptedDrafts(DFlashStep):
    """Blocks that follow the target's script, each token wrong with a chance of `miss`."""

    def __init__(self, drafter: DFlashDrafter, target: ScriptedStep, miss: float = 0.1) -> None:
        super().__init__(drafter)
        self._target, self._miss, self._draw = target, miss, random.Random(1)
        for rooms, with_block in ((ALONE, False), (WITH_BLOCK, True)):
            for room in rooms:
                self.replays[room, with_block] = partial(self.run, room, with_block)

    @torch.inference_mode()
    def run(self, room: int, with_block: bool) -> None:
        """In place of the drafter: the script's next tokens."""
        size = self.drafter.config.block_size
        self._inputs.copy(room + (size if with_block else 0), False)
        if not with_block:
            return
        start = int(self._inputs.chain(room + size)[1][room]) + 1
        ahead = self._target.script[start : start + size - 1]
        ahead += [0] * (size - 1 - len(ahead))
        words = self._drafts.numpy()
        words[:] = [token ^ (self._draw.random() < self._miss) for token in ahead]


class KnownCosts(CostTable):
    """A cost table that is told what a step took on the GPU whose figures it began with, and a block of drafts too, so
    that a policy weighs and learns as it does there. Drafts made on the host count as they are."""

    def __init__(self, milliseconds: dict[int, float], block: float = 0.7e-3) -> None:
        seconds = {rows: value / 1e3 for rows, value in milliseconds.items()}
        super().__init__(seconds, {"dflash": block})
        self._known, self._block = dict(seconds), block

    def saw_verify(self, rows: int, seconds: float) -> None:
        super().saw_verify(rows, self._known[min(width for width in self._known if width >= rows)])

    def saw_draft(self, name: str, seconds: float) -> None:
        super().saw_draft(name, self._block if name == "dflash" else seconds)
