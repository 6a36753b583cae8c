"""The compiled CPU kernels as operations of steps of fixed shape: what such a step needs beside them is torch's."""

from functools import cache

from torch import Tensor

from specd.engine import choice
from specd.engine.kernels import cpu


class NativeOps(cpu.CpuKernels):
    """`ops.StaticOps` by cpu.c. Choosing is done in torch, as sampling.py defines it."""

    def attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        table: Tensor,
        page: int,
        base: int | Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """As `CpuKernels.attention`; mask may be lanes."""
        return super().attention(q, k_cache, v_cache, table, page, base, None if mask is None else choice.as_mask(mask))

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
