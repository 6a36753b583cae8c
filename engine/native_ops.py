"""The compiled CPU kernels as operations of steps of fixed shape: what such a step needs beside them is torch's."""

from functools import cache

from torch import Tensor

from specd.engine import choice
from specd.engine.kernels import cpu


class NativeOps(cpu.CpuKernels):
    """`ops.StaticOps` by cpu.c. Choosing is done in torch, as sampling.py defines it."""

    def choose(self, logits: Tensor, positions: Tensor, params: Tensor) -> Tensor:
        """As `choice.choose`."""
        return choice.choose(logits, positions, params)

    def accept(self, tokens: Tensor, choices: Tensor, rows: Tensor, parents: Tensor | None) -> Tensor:
        """As `choice.accepted`."""
        return choice.accepted(tokens, choices, rows, parents)


@cache
def load() -> NativeOps | None:
    """The one instance of a process, since its threads are shared; None where the kernels cannot be had."""
    kernels = cpu.load()
    return NativeOps(kernels.library) if kernels is not None else None
