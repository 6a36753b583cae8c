"""Work of fixed shape on one device, by its shape: what a CUDA graph can be captured of, and how it is run."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVarTuple

import torch

Shape = TypeVarTuple("Shape")


def nothing() -> None:
    """What a host has to do while a device works, where it has nothing to do."""


class Passes(ABC, Generic[*Shape]):
    """`replays`: what runs a shape's work in place of its operations one by one, where it was captured (graphs.py)."""

    def __init__(self, device: torch.device) -> None:
        self.replays: dict[tuple[*Shape], Callable[[], None]] = {}
        self._on = device

    def launch(self, *shape: *Shape) -> None:
        """Starts the work that the inputs describe."""
        replay = self.replays.get(shape)
        if replay is None:
            self.run(*shape)
        else:
            replay()

    def wait(self) -> None:
        """Until what was launched is done, its results on the host."""
        if self._on.type == "cuda":
            torch.cuda.current_stream(self._on).synchronize()

    def is_busy(self) -> bool:
        """Whether what was launched still runs while the host does something else."""
        return self._on.type == "cuda" and not torch.cuda.current_stream(self._on).query()

    @abstractmethod
    def run(self, *shape: *Shape) -> None:
        """All operations, copies included; what a graph captures."""

    @abstractmethod
    def blank(self, *shape: *Shape) -> None:
        """Inputs of nothing but padding."""
